// Channel: see channel.hpp. Mapping and checks are at the top, waiting below.
#include "libclient/channel.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "abi/fence.hpp"
#include "libclient/fork.hpp"

namespace pickd::client {

namespace {

constexpr std::uint64_t kRoomRetryNs = 1'000'000;
constexpr std::uint64_t kBusyPollHangUpCheckNs =
    1'000'000;  // how often a spinner asks whether anybody is there

bool is_power_of_two(std::uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

// A ring of `bytes` at `offset` lies inside the segment, aligned, behind the header.
bool ring_fits(std::uint64_t offset, std::uint64_t bytes, std::uint64_t segment_bytes) {
  return is_power_of_two(bytes) && bytes >= 2 * abi::kRingUnitBytes &&
         offset % abi::kRingUnitBytes == 0 && offset >= sizeof(abi::ChannelHeader) &&
         offset <= segment_bytes && bytes <= segment_bytes - offset;
}

}  // namespace

// ---- Opening ------------------------------------------------------------------------------------

Channel::Channel(Session& session) : session_(&session) { session.retain(); }

Channel::~Channel() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
  session_->drop();
}

void Channel::abandon() {
  base_ = nullptr;
  static_cast<void>(bell_.release());
  static_cast<void>(pipe_.release());
}

int Channel::open(Session& session, const RingSizes& sizes, const Deadline& deadline,
                  LastError& error, Channel** channel, Connection::When when) {
  Owned<Channel> opened(make_object<Channel>(session));
  const Owned<ControlExchange> exchange = make_exchange();
  if (opened == nullptr || exchange == nullptr) return error.set(-ENOMEM, "out of memory");
  exchange->set_body(
      fb::CreateOpenChannel(exchange->builder(), sizes.submissions_bytes, sizes.completions_bytes));
  if (const int code = session.connection().request(*exchange, deadline, error, when); code != 0)
    return code;
  const auto* reply = exchange->reply_as<fb::ChannelOpened>();
  if (reply == nullptr)
    return error.set(-EPROTO, "the daemon answered the opening of a channel with something else");
  if (const int code = opened->take(*exchange, *reply, error); code != 0) {
    session.connection().close_channel(reply->channel());  // it was granted, and would stay there
    return code;
  }
  *channel = opened.release();
  return 0;
}

int Channel::take(ControlExchange& exchange, const fb::ChannelOpened& opened, LastError& error) {
  if (exchange.descriptor_count() != 3)
    return error.set(-EPROTO, "the daemon opened a channel and handed over something else");
  id_ = opened.channel();
  worker_ = opened.worker();
  if (worker_ >= session_->state().workers()) {
    return error.set(-EPROTO, "the daemon has %u workers and named number %u",
                     session_->state().workers(), worker_);
  }
  bell_ = exchange.take_descriptor(1);
  pipe_ = exchange.take_descriptor(2);
  // The reading end has a file description of its own: the daemon's writing end is not changed by
  // this.
  if (::fcntl(pipe_.get(), F_SETFL, O_RDONLY | O_NONBLOCK) != 0) {
    const int code = -errno;
    return error.set(code, "fcntl of a channel's pipe: %s", ::strerror(-code));
  }
  return map(exchange.take_descriptor(0), error);
}

int Channel::map(Fd segment, LastError& error) {
  struct stat status {};
  const int seals = ::fcntl(segment.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(segment.get(), &status) != 0 ||
      status.st_size < static_cast<off_t>(sizeof(abi::ChannelHeader))) {
    // Unsealed, it could be cut under this process, which would then die of SIGBUS.
    return error.set(-EPROTO, "the channel's segment is not a sealed memory file");
  }
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment.get(), 0);
  if (base == MAP_FAILED) {
    const int code = -errno;
    return error.set(code, "mmap of a channel: %s", ::strerror(-code));
  }
  base_ = static_cast<std::byte*>(base);
  bytes_ = bytes;
  if (const int code = keep_from_children(base, bytes); code != 0) {
    return error.set(code, "madvise of a channel: %s", ::strerror(-code));
  }

  const auto* shared = reinterpret_cast<const abi::ChannelHeader*>(base_);
  if (const int code =
          check_segment(shared->segment, abi::kChannelMagic, sizeof *shared, bytes, error);
      code != 0) {
    return code;
  }
  const std::uint64_t indices_offset = shared->indices_offset;
  const std::uint64_t submissions_offset = shared->submissions_offset;
  const std::uint64_t submissions_bytes = shared->submissions_bytes;
  const std::uint64_t completions_offset = shared->completions_offset;
  completions_bytes_ = shared->completions_bytes;
  keys_max_ = shared->keys_max;
  if (indices_offset % alignof(abi::RingIndices) != 0 || indices_offset < sizeof *shared ||
      indices_offset > bytes || bytes - indices_offset < sizeof(abi::RingIndices) ||
      !ring_fits(submissions_offset, submissions_bytes, bytes) ||
      !ring_fits(completions_offset, completions_bytes_, bytes)) {
    return error.set(-EPROTO, "the channel's header describes rings outside of its %zu bytes",
                     bytes);
  }

  // With wrap and padding only half a ring is sure to be contiguous.
  constexpr std::uint64_t kBesidesKeys =
      sizeof(abi::PickRecord) + abi::kFieldBytesMax + 2 * abi::kRingUnitBytes;
  const std::uint64_t half = submissions_bytes / 2;
  const std::uint64_t fitting =
      half > kBesidesKeys ? (half - kBesidesKeys) / sizeof(std::uint64_t) : 0;
  if (keys_max_ > session_->keys_max()) keys_max_ = session_->keys_max();
  if (keys_max_ > fitting) keys_max_ = static_cast<std::uint32_t>(fitting);
  if (keys_max_ < abi::kKeysMin) {
    return error.set(-EPROTO, "the channel's ring of %llu bytes is too small for a submission",
                     static_cast<unsigned long long>(submissions_bytes));
  }

  indices_ = reinterpret_cast<abi::RingIndices*>(base_ + indices_offset);
  submissions_.attach(base_ + submissions_offset, submissions_bytes, &indices_->submissions_tail,
                      &indices_->submissions_head);
  completions_.attach(base_ + completions_offset, completions_bytes_, &indices_->completions_head,
                      &indices_->completions_tail);
  return 0;
}

void Channel::close(Channel* channel) {
  channel->session().connection().close_channel(channel->id_);
  destroy_object(channel);
}

// ---- Waking and waiting -------------------------------------------------------------------------

void Channel::wake_daemon() {
  // publish() stored the tail; the worker stores `asleep` and then looks at the tail.
  abi::announce_then_check();
  if (!session_->state().asleep(worker_)) return;
  const std::uint64_t one = 1;
  ssize_t written;
  do {
    written = ::write(bell_.get(), &one, sizeof one);
  } while (written < 0 && errno == EINTR);
}

void Channel::announce_waiting() {
  // Partner: the worker stores completions_tail, announces, and loads this flag to decide on the
  // pipe.
  indices_->completions_waiting.store(1, abi::kAnnounceStore);
  abi::announce_then_check();
}

void Channel::stop_waiting() { indices_->completions_waiting.store(0, std::memory_order_relaxed); }

bool Channel::drain_pipe() {
  // To the very end: a hang-up that is left unseen would give an edge-triggered poller no new edge.
  char bytes[64];
  for (;;) {
    const ssize_t size = ::read(pipe_.get(), bytes, sizeof bytes);
    if (size == 0) return false;
    if (size < 0 && errno != EINTR) return errno == EAGAIN;
  }
}

bool Channel::pipe_hung_up() const {
  pollfd waiting{pipe_.get(), 0, 0};
  return ::poll(&waiting, 1, 0) > 0 && (waiting.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

int Channel::find(std::uint64_t sequence, CompletionRecord& record) {
  for (;;) {
    switch (completions_.next(record)) {
      case ReadOutcome::kNone: return -EAGAIN;
      case ReadOutcome::kBroken: return -EPROTO;
      case ReadOutcome::kRecord: break;
    }
    if (record.head.sequence == sequence) return 0;
    completions_.take_quietly();
  }
}

int Channel::hang_up() {
  broken_ = true;
  static_cast<void>(session_->connection().hung_up());  // is it the daemon, or this channel alone?
  return -ENOTCONN;
}

int Channel::sleep(const Deadline& deadline) {
  announce_waiting();
  if (!completions_.empty()) {
    stop_waiting();
    return 0;
  }
  pollfd waiting[2] = {{pipe_.get(), POLLIN, 0}, {session_->connection().descriptor(), 0, 0}};
  const timespec left = deadline.is_never() ? timespec{} : deadline.left();
  const int ready = ::ppoll(waiting, 2, deadline.is_never() ? nullptr : &left, nullptr);
  stop_waiting();
  if (ready == 0) return -ETIMEDOUT;
  if (ready < 0) return 0;  // a signal: look again
  constexpr short kGone = POLLHUP | POLLERR | POLLNVAL;
  if ((waiting[0].revents & POLLIN) != 0 && !drain_pipe()) return -ENOTCONN;
  if (((waiting[0].revents | waiting[1].revents) & kGone) != 0) return -ENOTCONN;
  return 0;
}

// -EAGAIN: not while spinning.
int Channel::spin_for(std::uint64_t sequence, const Deadline& deadline, const WaitPolicy& policy,
                      CompletionRecord& record) {
  const std::uint64_t start_ns = monotonic_ns();
  std::uint64_t looked_ns = start_ns;
  std::uint64_t asked_ns = start_ns;
  for (;;) {
    int code = -EAGAIN;
    for (int turn = 0; turn < 8 && code == -EAGAIN; ++turn) {
      abi::spin_pause();
      code = find(sequence, record);
    }
    if (code != -EAGAIN && policy.busy_poll) return code;  // it spins whatever that costs
    const std::uint64_t now_ns = monotonic_ns();
    const bool lost_core = now_ns - looked_ns >= abi::kSpinGapNs;
    looked_ns = now_ns;
    if (lost_core) spin_.preempted();
    if (code != -EAGAIN) {
      if (!lost_core) spin_.paid();
      return code;
    }
    if (!policy.busy_poll && now_ns - start_ns >= spin_.ns()) return -EAGAIN;
    if (deadline.passed()) return -ETIMEDOUT;
    if (now_ns - asked_ns >= kBusyPollHangUpCheckNs) {
      asked_ns = now_ns;
      if (session_->connection().hung_up() || pipe_hung_up()) {
        return find(sequence, record) == 0 ? 0 : hang_up();
      }
    }
  }
}

int Channel::wait_for(std::uint64_t sequence, const Deadline& deadline, const WaitPolicy& policy,
                      CompletionRecord& record) {
  int code = find(sequence, record);
  if (code != -EAGAIN) return code;

  const std::uint64_t cap_ns = std::uint64_t{policy.spin_us} * 1000;
  if (spin_.cap_ns() != cap_ns) spin_ = abi::SpinBudget(cap_ns);
  if (policy.busy_poll || spin_.ns() != 0) {
    code = spin_for(sequence, deadline, policy, record);
    if (code != -EAGAIN) return code;
  }

  for (;;) {
    const int slept = sleep(deadline);
    code = find(sequence, record);
    if (code != -EAGAIN) {  // even from a daemon that is gone: it had answered
      spin_.failed();
      return code;
    }
    if (slept == -ENOTCONN) return hang_up();
    if (slept == -ETIMEDOUT) return -ETIMEDOUT;
  }
}

std::byte* Channel::wait_for_room(std::uint64_t bytes, std::uint64_t spare,
                                  const Deadline& deadline) {
  for (;;) {
    std::byte* room = submissions_.reserve(bytes, spare);
    if (room != nullptr || submissions_.broken() || deadline.passed()) return room;
    pollfd waiting{session_->connection().descriptor(), 0, 0};
    const timespec pause{0, static_cast<long>(kRoomRetryNs)};
    if (::ppoll(&waiting, 1, &pause, nullptr) > 0) {
      static_cast<void>(hang_up());
      return nullptr;
    }
  }
}

bool Channel::cancel(std::uint64_t sequence, std::uint64_t spare) {
  std::byte* at = submissions_.reserve(sizeof(abi::CancelRecord), spare);
  if (at == nullptr) return false;
  const abi::CancelRecord record{
      {sizeof(abi::CancelRecord), abi::RecordType::kCancel, 0, 0, sequence}};
  ::memcpy(at, &record, sizeof record);
  submissions_.publish();
  wake_daemon();
  return true;
}

}  // namespace pickd::client
