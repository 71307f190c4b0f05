#include "daemon/state/state_segment.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <new>

#include "abi/model_layout.hpp"
#include "daemon/base/clock.hpp"
#include "daemon/base/mappable_fd.hpp"
#include "daemon/base/random.hpp"
#include "daemon/base/step.hpp"
#include "daemon/state/boot_id.hpp"
#include "daemon/state/huge_pages.hpp"
#include "daemon/state/instance_lock.hpp"
#include "daemon/state/memory_limit.hpp"
#include "daemon/state/reuse.hpp"

namespace pickd::state {

namespace {

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A file on a hugetlbfs is a whole number of its pages.
StateParameters with_pages_of(const std::string& path, StateParameters parameters) {
  parameters.page_bytes = page_bytes_at(directory_of(path));
  return parameters;
}

base::Result<void> check_room(const std::string& path, std::uint64_t bytes) {
  const auto limit = memory_limit_bytes();
  if (const auto used = memory_used_bytes(); limit && used && bytes + *used > *limit) {
    return base::Error{
        -ENOMEM, "state.size_mib: " + std::to_string(bytes >> 20) +
                     " MiB do not fit: the memory cgroup allows " + std::to_string(*limit >> 20) +
                     " MiB, and " + std::to_string(*used >> 20) +
                     " MiB of that are in use (a state file that is to be replaced "
                     "is there until the new one is full); lower it, raise the limit "
                     "or remove " +
                     path};
  }
  if (limit && bytes > *limit / 2) {
    return base::Error{-ENOMEM, "state.size_mib: " + std::to_string(bytes >> 20) +
                                    " MiB is more than half of what the memory cgroup allows (" +
                                    std::to_string(*limit >> 20) +
                                    " MiB); lower it or raise the limit"};
  }
  struct statvfs room {};
  if (::statvfs(directory_of(path).c_str(), &room) != 0) {
    return base::errno_error("state.path " + path + ": its directory");
  }
  // Without a limit of its own (a hugetlbfs mostly) a file system tells none: allocating tells
  // then.
  if (room.f_blocks == 0) return {};
  // A file that will be replaced gives its room back only after the rename, so it does not count.
  const std::uint64_t free_bytes = static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize;
  if (free_bytes < bytes) {
    return base::Error{-ENOSPC, "state.path " + path + ": " + std::to_string(bytes >> 20) +
                                    " MiB wanted, its file system has " +
                                    std::to_string(free_bytes >> 20) +
                                    " MiB free; lower state.size_mib or enlarge the tmpfs"};
  }
  return {};
}

void fill_header(abi::StateHeader& header, const StateParameters& parameters,
                 const StateLayout& layout) {
  abi::SegmentHeader& segment = header.segment;
  segment.magic = abi::kStateMagic;
  segment.layout_major = abi::kLayoutMajor;
  segment.layout_minor = abi::kLayoutMinor;
  segment.header_bytes = sizeof(abi::StateHeader);
  segment.total_bytes = layout.total_bytes;
  segment.byte_order_mark = abi::kByteOrderMark;
  segment.features = parameters.hot_holders == 0 ? 0 : abi::kFeatureHotGroups;
  PICKD_STEP("create: half a header");
  read_boot_id(segment.boot_id);
  segment.daemon_epoch = base::random_u64() | 1;

  header.block_tokens = parameters.block_tokens;
  header.clock_mode = static_cast<std::uint32_t>(parameters.clock_mode);
  // The base lies two ticks back, so that a tick, and with it a stamp, is never 0 at the start.
  header.tick_base_ns = base::boot_ns() - 2 * abi::kTickNs;
  header.tick_ns = abi::kTickNs;
  const std::uint32_t block_bytes = parameters.block_tokens * abi::kBytesPerToken;
  header.key_algorithms[0] = {1, abi::KeyKind::kText, 1, 0, block_bytes};
  header.key_algorithms[1] = {2, abi::KeyKind::kTokens, 1, 0, block_bytes};
  base::random_bytes(header.hash_secret, sizeof header.hash_secret);
  PICKD_STEP("create: a header without offsets");
  header.hot_holders = parameters.hot_holders;
  header.endpoint_ids = layout.endpoint_ids;
  header.reservation_slots = layout.reservation_slots;
  header.workers = parameters.workers;
  header.workers_offset = layout.workers_offset;
  header.counters_offset = layout.counters_offset;
  header.endpoints_offset = layout.endpoints_offset;
  header.reservations_offset = layout.reservations_offset;
  header.routing_offset = layout.routing_offset;
  header.routing_bytes = layout.routing_bytes;
  header.models_offset = layout.models_offset;
  header.model_classes = abi::kModelClasses;
  header.model_words = abi::kModelWords;
  header.prefix_offset = layout.prefix_offset;
  header.prefix_lines = layout.prefix_lines;
  header.instance_id = instance_of(header);
  header.ttl_ticks = parameters.ttl_ticks;
  header.blocks_min = parameters.blocks_min;
  header.blocks_max = parameters.blocks_max;
  header.keys_max = parameters.keys_max;
  header.daemon_pid = static_cast<std::uint32_t>(::getpid());
  header.virtual_tick.store(2, std::memory_order_relaxed);
  header.endpoint_high_water.store(1, std::memory_order_relaxed);
  header.heartbeat_ns.store(base::boot_ns(), std::memory_order_relaxed);
}

}  // namespace

base::Result<std::unique_ptr<StateSegment>> StateSegment::create(const std::string& path,
                                                                 const StateParameters& wanted) {
  const StateParameters parameters = with_pages_of(path, wanted);
  auto layout = lay_out(parameters);
  if (!layout) return layout.error();
  if (auto room = check_room(path, layout->total_bytes); !room) return room.error();

  std::unique_ptr<StateSegment> segment(new StateSegment());
  segment->path_ = path;
  segment->page_bytes_ = parameters.page_bytes;
  segment->layout_ = *layout;

  const std::string fresh = path + ".new";
  PICKD_STEP("create: begin");
  ::unlink(fresh.c_str());  // of a daemon that died while filling it; nobody was handed it
  segment->fd_ =
      base::Fd(::open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!segment->fd_.valid()) return base::errno_error("state.path " + path + ": cannot be made");
  PICKD_STEP("create: made, without memory");
  const int fd = segment->fd_.get();
  if (const int code = ::posix_fallocate(fd, 0, static_cast<off_t>(layout->total_bytes));
      code != 0) {
    ::unlink(fresh.c_str());
    return base::Error{-code, "state.path " + path + ": " +
                                  std::to_string(layout->total_bytes >> 20) +
                                  " MiB cannot be allocated: " + std::strerror(code)};
  }
  if (auto mapped = segment->map(layout->total_bytes); !mapped) {
    ::unlink(fresh.c_str());
    return mapped.error();
  }
  PICKD_STEP("create: mapped, of zeros");
  segment->header_ = new (segment->base_) abi::StateHeader{};
  fill_header(*segment->header_, parameters, *layout);
  PICKD_STEP("create: filled, without a version");
  // Readers load this first (acquire): what was filled above is complete when they see it.
  segment->header_->segment.version.store(
      abi::segment_version(abi::kLayoutMajor, abi::kLayoutMinor), std::memory_order_release);
  PICKD_STEP("create: whole, under its working name");
  supersede(path);
  PICKD_STEP("create: the one before is marked");
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    const auto error = base::errno_error("state.path " + path + ": cannot be put in place");
    ::unlink(fresh.c_str());
    return error;
  }
  PICKD_STEP("create: in place");
  return segment;
}

base::Result<void> StateSegment::map(std::uint64_t bytes) {
  try {
    region_ = std::make_unique<boost::interprocess::mapped_region>(
        base::MappableFd{fd_.get()}, boost::interprocess::read_write, 0, bytes);
  } catch (const boost::interprocess::interprocess_exception& failure) {
    return base::Error{-ENOMEM, "state.path " + path_ + ": cannot be mapped: " + failure.what()};
  }
  base_ = static_cast<std::byte*>(region_->get_address());
  advise_huge_pages(base_, bytes);
  return {};
}

base::Result<std::unique_ptr<StateSegment>> StateSegment::open_or_create(
    const std::string& path, const StateParameters& wanted, std::string* origin) {
  const StateParameters parameters = with_pages_of(path, wanted);
  auto layout = lay_out(parameters);
  if (!layout) return layout.error();
  std::unique_ptr<StateSegment> segment(new StateSegment());
  segment->path_ = path;
  segment->page_bytes_ = parameters.page_bytes;
  segment->layout_ = *layout;
  if (auto free = check_state_is_free(path); !free) return free.error();
  std::string why;
  segment->fd_ = open_for_reuse(path, layout->total_bytes, &why);
  if (segment->fd_.valid()) {
    if (auto locked = lock_state(segment->fd_.get(), path); !locked) return locked.error();
  }
  if (segment->fd_.valid() && parameters.clock_mode == abi::ClockMode::kVirtual)
    why = "the clock is virtual";
  if (why.empty()) {
    if (auto mapped = segment->map(layout->total_bytes); !mapped) return mapped.error();
    segment->header_ = reinterpret_cast<abi::StateHeader*>(segment->base_);
    why = why_not_reusable(*segment->header_, parameters, *layout);
  }
  if (!why.empty()) {
    *origin = "empty: " + why;
    auto made = create(path, parameters);
    if (!made) return made;
    // Nobody can have it by another name yet.
    if (auto locked = lock_state((*made)->fd_.get(), path); !locked) return locked.error();
    return made;
  }
  *origin = "warm";
  segment->warm_ = true;
  take_over(*segment->header_, parameters);
  return segment;
}

StateSegment::~StateSegment() = default;

base::Result<base::Fd> StateSegment::open_read_only() const {
  // Through /proc, because the path may name another file by now.
  const std::string self = "/proc/self/fd/" + std::to_string(fd_.get());
  base::Fd fd(::open(self.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return base::errno_error("state segment: cannot be opened read-only");
  return fd;
}

abi::WorkerWord& StateSegment::worker_word(std::uint32_t worker) const {
  return at<abi::WorkerWord>(layout_.workers_offset)[worker];
}
abi::Word* StateSegment::counters(std::uint32_t thread) const {
  return at<abi::Word>(layout_.counters_offset) +
         static_cast<std::size_t>(thread) * abi::kCountersMax;
}
abi::EndpointRecord* StateSegment::endpoints() const {
  return at<abi::EndpointRecord>(layout_.endpoints_offset);
}
abi::Reservation* StateSegment::reservations() const {
  return at<abi::Reservation>(layout_.reservations_offset);
}
std::byte* StateSegment::routing_buffer(std::uint32_t which) const {
  return at<std::byte>(layout_.routing_offset + which * layout_.routing_bytes);
}
std::byte* StateSegment::models() const { return at<std::byte>(layout_.models_offset); }
abi::Word* StateSegment::prefix_words() const { return at<abi::Word>(layout_.prefix_offset); }

}  // namespace pickd::state
