#include "daemon/state/reuse.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "abi/key.hpp"
#include "abi/model_layout.hpp"
#include "daemon/base/clock.hpp"
#include "daemon/base/random.hpp"
#include "daemon/base/step.hpp"
#include "daemon/state/boot_id.hpp"

namespace pickd::state {

namespace {

constexpr std::uint64_t kAwayNsMax = 3600ULL * 1'000'000'000;

// Downtime and TTL together stay below seven eighths of the wrap: beyond it a stamp that nobody
// swept meanwhile would be taken for a young one.
std::uint64_t away_ns_max(std::uint64_t ttl_ticks) {
  constexpr std::uint64_t kTicksMax = (7ULL << abi::kStampBits) / 8;
  return ttl_ticks >= kTicksMax ? 0 : std::min(kAwayNsMax, (kTicksMax - ttl_ticks) * abi::kTickNs);
}

std::string mib(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

struct Check {
  bool fits;
  const char* why;
};

}  // namespace

base::Fd open_for_reuse(const std::string& path, std::uint64_t bytes, std::string* why) {
  base::Fd fd(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) {
    *why = errno == ENOENT ? "there was no file"
                           : std::string("the file cannot be opened: ") + std::strerror(errno);
    return fd;
  }
  struct stat file {};
  if (::fstat(fd.get(), &file) != 0 || !S_ISREG(file.st_mode)) {
    *why = "what is there is no regular file";
  } else if (file.st_uid != ::geteuid()) {
    *why = "the file belongs to uid " + std::to_string(file.st_uid);
  } else if ((file.st_mode & 0777) != 0600) {
    *why = "others may use the file: its mode is not 0600";
  } else if (static_cast<std::uint64_t>(file.st_size) != bytes) {
    *why = "the file has " + mib(static_cast<std::uint64_t>(file.st_size)) + ", " + mib(bytes) +
           " are wanted";
  } else if (::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)) != 0) {
    *why = "the file has holes and its file system is full";
  }
  if (!why->empty()) fd.reset();
  return fd;
}

std::uint64_t instance_of(const abi::StateHeader& header) {
  const std::uint64_t fixed[] = {header.tick_base_ns,      header.tick_ns,      header.block_tokens,
                                 header.prefix_offset,     header.prefix_lines, header.endpoint_ids,
                                 header.reservation_slots, header.hot_holders};
  const std::uint64_t seed = ::XXH3_64bits(header.segment.boot_id, sizeof header.segment.boot_id);
  return ::XXH3_64bits_withSeed(fixed, sizeof fixed, seed) ^
         ::XXH3_64bits_withSeed(header.hash_secret, sizeof header.hash_secret, seed);
}

std::string why_not_reusable(const abi::StateHeader& header, const StateParameters& parameters,
                             const StateLayout& layout) {
  std::uint8_t boot_id[16];
  read_boot_id(boot_id);
  const abi::SegmentHeader& segment = header.segment;
  const std::uint64_t now_ns = base::boot_ns();
  const std::uint64_t heartbeat_ns = header.heartbeat_ns.load(std::memory_order_relaxed);
  const std::uint32_t block_bytes = parameters.block_tokens * abi::kBytesPerToken;
  const auto fits_algorithm = [&](std::size_t at, std::uint8_t id, abi::KeyKind kind) {
    const abi::KeyAlgorithm& algorithm = header.key_algorithms[at];
    return algorithm.id == id && algorithm.kind == kind && algorithm.tail == 1 &&
           algorithm.block_bytes == block_bytes;
  };
  bool secret = false;
  for (const std::uint8_t byte : header.hash_secret) secret |= byte != 0;
  const Check checks[] = {
      {segment.magic == abi::kStateMagic, "it is no state file"},
      {segment.version.load(std::memory_order_acquire) ==
           abi::segment_version(abi::kLayoutMajor, abi::kLayoutMinor),
       "its layout is another version's"},
      {segment.byte_order_mark == abi::kByteOrderMark &&
           segment.header_bytes == sizeof(abi::StateHeader),
       "its layout is another version's"},
      {std::memcmp(segment.boot_id, boot_id, sizeof boot_id) == 0, "it is of another boot"},
      {segment.features == (parameters.hot_holders == 0 ? 0U : abi::kFeatureHotGroups),
       "its features are others"},
      {segment.total_bytes == layout.total_bytes, "its size is another"},
      {header.block_tokens == parameters.block_tokens, "its block size is another"},
      {fits_algorithm(0, 1, abi::KeyKind::kText) && fits_algorithm(1, 2, abi::KeyKind::kTokens),
       "its key algorithms are others"},
      {secret, "it has no hash secret"},
      {header.clock_mode == static_cast<std::uint32_t>(abi::ClockMode::kBoot) &&
           header.tick_ns == abi::kTickNs && header.tick_base_ns < now_ns,
       "its clock is another"},
      {heartbeat_ns <= now_ns &&
           now_ns - heartbeat_ns < away_ns_max(std::max(header.ttl_ticks, parameters.ttl_ticks)),
       "the daemon was away too long"},
      {header.hot_holders == parameters.hot_holders, "its threshold of hot blocks is another"},
      {header.endpoint_ids == layout.endpoint_ids, "its number of endpoints is another"},
      {header.reservation_slots == layout.reservation_slots,
       "its number of reservations is another"},
      {header.workers_offset == layout.workers_offset &&
           header.counters_offset == layout.counters_offset &&
           header.endpoints_offset == layout.endpoints_offset &&
           header.reservations_offset == layout.reservations_offset &&
           header.routing_offset == layout.routing_offset &&
           header.routing_bytes == layout.routing_bytes &&
           header.models_offset == layout.models_offset &&
           header.model_classes == abi::kModelClasses && header.model_words == abi::kModelWords &&
           header.prefix_offset == layout.prefix_offset &&
           header.prefix_lines == layout.prefix_lines,
       "its parts lie elsewhere"},
      {header.superseded.load(std::memory_order_relaxed) == 0, "it was replaced"},
      {header.endpoint_high_water.load(std::memory_order_relaxed) - 1 < layout.endpoint_ids,
       "its endpoint table is damaged"},
      {header.instance_id == instance_of(header), "what was fixed when it was made is damaged"},
  };
  for (const Check& check : checks) {
    if (!check.fits) return check.why;
  }
  return {};
}

void take_over(abi::StateHeader& header, const StateParameters& parameters) {
  PICKD_STEP("take over: begin");
  header.workers = parameters.workers;
  header.ttl_ticks = parameters.ttl_ticks;
  header.blocks_min = parameters.blocks_min;
  header.blocks_max = parameters.blocks_max;
  PICKD_STEP("take over: half");
  header.keys_max = parameters.keys_max;
  header.daemon_pid = static_cast<std::uint32_t>(::getpid());
  header.heartbeat_ns.store(base::boot_ns(), std::memory_order_relaxed);
  PICKD_STEP("take over: without an epoch");
  // Last: clients of the daemon before see by it that another one writes now. They read it as a
  // word.
  __atomic_store_n(&header.segment.daemon_epoch, base::random_u64() | 1, __ATOMIC_RELEASE);
}

void supersede(const std::string& path) {
  const base::Fd fd(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat file {};
  if (!fd.valid() || ::fstat(fd.get(), &file) != 0 || !S_ISREG(file.st_mode) ||
      file.st_uid != ::geteuid() ||
      static_cast<std::size_t>(file.st_size) < sizeof(abi::StateHeader)) {
    return;
  }
  void* memory =
      ::mmap(nullptr, sizeof(abi::StateHeader), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return;
  auto* header = static_cast<abi::StateHeader*>(memory);
  if (header->segment.magic == abi::kStateMagic)
    header->superseded.store(1, std::memory_order_release);
  ::munmap(memory, sizeof(abi::StateHeader));
}

}  // namespace pickd::state
