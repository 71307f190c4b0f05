// pickd_queue: see queue.hpp. The C functions are at the end.
#include "libclient/queue.hpp"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "libclient/memory.hpp"
#include "libclient/result.hpp"

namespace abi = pickd::abi;
using pickd::client::Channel;
using pickd::client::CompletionRecord;
using pickd::client::Deadline;
using pickd::client::destroy_object;
using pickd::client::Fd;
using pickd::client::Pending;
using pickd::client::PendingState;
using pickd::client::PendingTable;
using pickd::client::PickRequest;
using pickd::client::PickShape;
using pickd::client::ReadOutcome;
using pickd::client::ReportRequest;
using pickd::client::RingSizes;
using pickd::client::Session;

namespace {

constexpr std::uint32_t kDepthDefault = 256;
constexpr std::uint64_t kCompletionRingBytesAsked = 4 * 1024 * 1024;  // at most
// What a daemon that runs needs to open a channel.
constexpr std::uint32_t kChannelPatienceMs = 50;
constexpr std::uint32_t kEmptyPollsPerLook = 256;

// What the answer of one pick may take, with the padding that it may force at the wrap.
std::uint32_t answer_room(std::uint32_t endpoints_max) {
  return static_cast<std::uint32_t>(
      abi::ring_units_bytes(pickd::client::picked_bytes_max(endpoints_max)));
}

std::uint32_t completion_ring_bytes(std::uint32_t depth) {
  const std::uint64_t wanted = std::uint64_t{depth + 1} * answer_room(abi::kResultEndpointsMax);
  std::uint64_t bytes = abi::kCompletionRingBytesDefault;
  while (bytes < wanted && bytes < kCompletionRingBytesAsked) bytes *= 2;
  return static_cast<std::uint32_t>(bytes);
}

int add_to_epoll(const Fd& epoll, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, descriptor, &event) == 0 ? 0 : -errno;
}

}  // namespace

// ---- Channel ------------------------------------------------------------------------------------

pickd_queue::~pickd_queue() {
  if (channel_ == nullptr) return;
  const Deadline deadline = client->connect_deadline();
  give_up_all(deadline);
  Channel::close(channel_, deadline);
}

void pickd_queue::abandon() {
  if (channel_ != nullptr) {
    channel_->abandon();
    channel_->session().abandon();
    destroy_object(channel_);
    channel_ = nullptr;
  }
  static_cast<void>(epoll_.release());
  static_cast<void>(kick_.release());
}

int pickd_queue::open() {
  if (const int code = pending_.make(depth); code != 0)
    return client->error.set(code, "out of memory");
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  kick_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.valid() || !kick_.valid() || add_to_epoll(epoll_, kick_.get()) != 0) {
    const int code = -errno;
    return client->error.set(code, "no descriptor for the queue's events: error %d", -code);
  }
  return ensure_channel();
}

// Opens the channel if there is none; connects again if the daemon is gone.
int pickd_queue::ensure_channel(pickd_client::WhenBusy when_busy) {
  if (channel_ != nullptr && (channel_->broken() || channel_->session().gone())) lose_channel();
  if (channel_ != nullptr) return 0;
  Session* session = nullptr;
  const bool now = when_busy == pickd_client::WhenBusy::kPick;
  const Deadline deadline =
      now ? Deadline::after_ms(kChannelPatienceMs).or_sooner(client->connect_deadline())
          : client->connect_deadline();
  if (const int code =
          now ? client->acquire_session_now(&session) : client->acquire_session(deadline, &session);
      code != 0) {
    return code;
  }
  RingSizes sizes = client->ring_sizes();
  sizes.completions_bytes = completion_ring_bytes(depth);
  int code = Channel::open(*session, sizes, deadline, client->error, &channel_);
  if (code == -ETIMEDOUT) session->timed_out();
  session->drop();
  if (code == 0) code = add_to_epoll(epoll_, channel_->pipe_descriptor());
  if (code != 0) {
    if (channel_ != nullptr) lose_channel();
    return code;
  }
  // From the start: who waits on the descriptor before the first poll() is woken too.
  channel_->announce_waiting();
  armed_ = true;
  pipe_closed_ = false;
  return 0;
}

// What is outstanding will be answered without the daemon by poll().
void pickd_queue::lose_channel() {
  for (Pending* pending = pending_.oldest(); pending != nullptr;) {
    Pending* after = pending->after;
    // The daemon, or the next one, may hold a reservation for it.
    if (pending->state != PendingState::kFailed) client->give_up(pending->sequence);
    if (pending->state == PendingState::kCancelled) {
      forget(pending);
    } else if (pending->state == PendingState::kLive) {
      pending->state = PendingState::kFailed;
      ++failed_;
    }
    pending = after;
  }
  answer_bytes_ = 0;
  armed_ = false;
  // Tells the daemon if it is there, without waiting for its word. Closing the pipe takes it out of
  // epoll.
  Channel::close(channel_, Deadline::after_us(0));
  channel_ = nullptr;
  if (failed_ != 0) kick();
}

// Whether the daemon is gone or has closed the channel, for callers that poll without the
// descriptor.
bool pickd_queue::nobody_there() {
  if (++empty_polls_ % kEmptyPollsPerLook != 0) return channel_->session().gone();
  return channel_->pipe_hung_up();
}

// ---- Events -------------------------------------------------------------------------------------

void pickd_queue::kick() {
  const std::uint64_t one = 1;
  kicked_ = ::write(kick_.get(), &one, sizeof one) == static_cast<ssize_t>(sizeof one) || kicked_;
}

// Takes back the request to be woken, and what it led to.
void pickd_queue::disarm() {
  if (kicked_) {
    std::uint64_t count;
    static_cast<void>(!::read(kick_.get(), &count, sizeof count));
    kicked_ = false;
  }
  if (!armed_) return;
  armed_ = false;
  channel_->stop_waiting();
  if (!channel_->drain_pipe()) pipe_closed_ = true;
}

// Asks to be woken. False when something came meanwhile: the caller looks again.
bool pickd_queue::arm() {
  channel_->announce_waiting();
  armed_ = true;
  return channel_->completions().empty();
}

int pickd_queue::event_descriptor() {
  wants_events_ = true;
  if (channel_ != nullptr && !armed_ && !arm()) kick();
  return epoll_.get();
}

// ---- Picks --------------------------------------------------------------------------------------

int pickd_queue::submit(const PickRequest& request, std::uint64_t user_data, pickd_ticket* ticket) {
  if (const int code = ensure_channel(pickd_client::WhenBusy::kPick); code != 0) {
    const bool away = code == -ENOTCONN || code == -ETIMEDOUT;
    return away ? submit_degraded(request, user_data, ticket) : code;
  }
  if (cancelled_ != 0) {
    write_cancels();
    forget_consumed_cancels();
  }
  const std::uint32_t room = answer_room(request.endpoints_max());
  // The longest answer more: padding at the wrap takes less than that.
  const std::uint64_t slack = answer_room(abi::kResultEndpointsMax);
  if (pending_.full() || answer_bytes_ + room + slack > channel_->completions_bytes())
    return -EAGAIN;

  PickShape shape{};
  const pickd::client::StateView& state = channel_->session().state();
  if (const int code = request.shape(state, channel_->keys_max(), shape, client->error); code != 0)
    return code;
  std::byte* to = channel_->submissions().reserve(shape.bytes, Channel::kCancelRoom);
  if (to == nullptr) {
    if (!channel_->broken()) return -EAGAIN;
    lose_channel();
    return submit_degraded(request, user_data, ticket);
  }
  const std::uint64_t sequence = client->draw_sequence();
  Pending* pending = pending_.add(sequence);
  pending->user_data = user_data;
  pending->answer_bytes = room;
  answer_bytes_ += room;
  if (PendingTable::reserve(pending, shape.bytes)) {
    // Not copied back out of the ring: what the daemon can write is not to be believed later.
    static_cast<void>(request.write(shape, state, sequence, pending->record));
    ::memcpy(to, pending->record, shape.bytes);
  } else {
    static_cast<void>(request.write(shape, state, sequence, to));
  }
  channel_->submissions().publish();
  channel_->wake_daemon();
  if (ticket != nullptr) *ticket = {client->id, sequence};
  return 0;
}

// To be answered by the next poll().
int pickd_queue::submit_degraded(const PickRequest& request, std::uint64_t user_data,
                                 pickd_ticket* ticket) {
  if (pending_.full()) return -EAGAIN;
  Session* session = client->last_session();
  PickShape shape{};
  int code = session->state().store().usable()
                 ? request.shape(session->state(), session->keys_max(), shape, client->error)
                 : client->error.set(-ENOTCONN, "the daemon is away, and no endpoint is known");
  if (code == 0) {
    const std::uint64_t sequence = client->draw_sequence();
    Pending* pending = pending_.add(sequence);
    if (PendingTable::reserve(pending, shape.bytes)) {
      static_cast<void>(request.write(shape, session->state(), sequence, pending->record));
      pending->user_data = user_data;
      pending->state = PendingState::kFailed;
      ++failed_;
      kick();
      if (ticket != nullptr) *ticket = {client->id, sequence};
    } else {
      pending_.remove(pending);
      code = client->error.set(-ENOMEM, "out of memory");
    }
  }
  session->drop();
  return code;
}

void pickd_queue::forget(Pending* pending) {
  if (pending->state == PendingState::kCancelled) --cancelled_;
  if (pending->state == PendingState::kFailed) {
    --failed_;
  } else if (!pending->answered) {
    answer_bytes_ -= pending->answer_bytes;
  }
  pending_.remove(pending);
}

// True when `record` was an answer that somebody waits for.
bool pickd_queue::take_answer(const CompletionRecord& record, pickd_result& result,
                              std::uint64_t* user_data) {
  Pending* pending =
      record.head.type == abi::RecordType::kPick ? pending_.find(record.head.sequence) : nullptr;
  if (pending == nullptr || pending->state == PendingState::kFailed) {
    channel_->completions().take();
    return false;
  }
  const std::uint64_t sequence = pending->sequence;
  client->saw(sequence);
  if (pending->state == PendingState::kCancelled) {
    channel_->completions().take();
    if (pending->cancel_position != 0) {
      forget(pending);
    } else if (!pending
                    ->answered) {  // kept until its cancel record is written: it reserved something
      pending->answered = true;
      answer_bytes_ -= pending->answer_bytes;
    }
    return false;
  }
  static_cast<void>(result.fill(record));
  channel_->completions().take();
  if (result.status == 0) result.ticket = {client->id, sequence};
  if (user_data != nullptr) *user_data = pending->user_data;
  forget(pending);
  return true;
}

int pickd_queue::take_failed(pickd_result& result, std::uint64_t* user_data) {
  if (failed_ == 0) return 0;
  Pending* pending = pending_.oldest();
  while (pending->state != PendingState::kFailed) pending = pending->after;
  if (user_data != nullptr) *user_data = pending->user_data;
  int code = -ENOTCONN;
  if (pending->record_capacity != 0) {
    Session* session = client->last_session();
    code = client->degraded.pick(session->state(), pending->record, {client->id, pending->sequence},
                                 result);
    session->drop();
  }
  if (code == -ENOTCONN || code == -ENOMEM)
    result.fail(client->error.set(code, "the daemon went away before it answered"));
  forget(pending);
  return 1;
}

int pickd_queue::poll(pickd_result& result, std::uint64_t* user_data) {
  disarm();
  if (failed_ != 0 || channel_ == nullptr) {
    const int taken = take_failed(result, user_data);
    if (taken != 0 || channel_ == nullptr) return taken;
  }
  if (cancelled_ != 0) write_cancels();
  for (;;) {
    CompletionRecord record;
    const ReadOutcome outcome = channel_->completions().next(record);
    if (outcome == ReadOutcome::kRecord) {
      if (take_answer(record, result, user_data)) return 1;
      continue;
    }
    if (outcome == ReadOutcome::kBroken || pipe_closed_) {
      lose_channel();
      return take_failed(result, user_data);
    }
    if (cancelled_ != 0) forget_consumed_cancels();
    if (wants_events_) {
      if (arm()) return 0;
      disarm();
    } else if (!nobody_there()) {
      return 0;
    } else {
      pipe_closed_ = true;  // but the ring is looked at once more: it may have answered before
    }
  }
}

// ---- Cancelling ---------------------------------------------------------------------------------

int pickd_queue::cancel(std::uint64_t sequence) {
  Pending* pending = pending_.find(sequence);
  if (pending == nullptr || pending->state == PendingState::kCancelled) return -ESTALE;
  if (pending->state == PendingState::kFailed) {  // nobody but this side knows of it
    forget(pending);
    return 0;
  }
  pending->state = PendingState::kCancelled;
  ++cancelled_;
  if (channel_ != nullptr) write_cancels();
  return 0;
}

// Writes the cancel records that have not found room in the ring yet.
void pickd_queue::write_cancels() {
  for (Pending* pending = pending_.oldest(); pending != nullptr;) {
    Pending* after = pending->after;
    if (pending->state == PendingState::kCancelled && pending->cancel_position == 0) {
      if (!channel_->cancel(pending->sequence)) return;
      pending->cancel_position = channel_->submissions().position();
      if (pending->answered) forget(pending);
    }
    pending = after;
  }
}

// Cancels all that is outstanding, so that nothing stays reserved for answers that nobody will
// take.
void pickd_queue::give_up_all(const Deadline& deadline) {
  for (Pending* pending = pending_.oldest(); pending != nullptr; pending = pending->after) {
    if (pending->state != PendingState::kLive) continue;
    pending->state = PendingState::kCancelled;
    ++cancelled_;
  }
  for (;;) {
    write_cancels();
    Pending* unwritten = pending_.oldest();
    while (unwritten != nullptr &&
           (unwritten->state != PendingState::kCancelled || unwritten->cancel_position != 0)) {
      unwritten = unwritten->after;
    }
    if (unwritten == nullptr || channel_->session().connection().dead()) return;
    if (channel_->wait_for_room(sizeof(abi::CancelRecord), 0, deadline) == nullptr) return;
  }
}

// A cancelled pick may never be answered. Once the daemon has taken its cancel record and the ring
// of answers is empty, none can come any more: the daemon takes a record only after it has answered
// those before it.
void pickd_queue::forget_consumed_cancels() {
  const std::uint64_t consumed = channel_->submissions().consumed();
  if (!channel_->completions().empty()) return;
  for (Pending* pending = pending_.oldest(); pending != nullptr;) {
    Pending* after = pending->after;
    if (pending->state == PendingState::kCancelled && pending->cancel_position != 0 &&
        pending->cancel_position <= consumed) {
      forget(pending);
    }
    pending = after;
  }
}

int pickd_queue::report(const ReportRequest& request) {
  const bool own = request.ticket().client == client->id &&
                   client->degraded.report(request.ticket().sequence, request.ends());
  if (const int code = ensure_channel(); code != 0) return own && code == -ENOTCONN ? 0 : code;
  std::byte* to = channel_->submissions().reserve(request.bytes(), Channel::kCancelRoom);
  if (to == nullptr) return channel_->broken() ? -ENOTCONN : -EAGAIN;
  request.write(client->draw_sequence(), false, to);
  channel_->submissions().publish();
  channel_->wake_daemon();
  return 0;
}

// ---- The C functions ----------------------------------------------------------------------------

extern "C" {

int pickd_queue_open(pickd_client* client, uint32_t depth, pickd_queue** queue) {
  if (queue != nullptr) *queue = nullptr;
  if (client == nullptr || queue == nullptr) return -EINVAL;
  if (client->fork.in_child()) return -EOWNERDEAD;
  if (depth > abi::kQueueDepthMax) {
    return client->error.set(-EINVAL, "depth %u: 1 to %u", depth, abi::kQueueDepthMax);
  }
  if (depth == 0) depth = kDepthDefault;
  pickd::client::Owned<pickd_queue> opened(pickd::client::make_object<pickd_queue>(client, depth));
  if (opened == nullptr) return client->error.set(-ENOMEM, "out of memory");
  if (const int code = opened->open(); code != 0) return code;
  *queue = opened.release();
  return 0;
}

void pickd_queue_close(pickd_queue* queue) {
  if (queue == nullptr) return;
  if (queue->client->fork.in_child()) queue->abandon();
  destroy_object(queue);
}

int pickd_queue_submit(pickd_queue* queue, const pickd_request* request, uint64_t user_data,
                       pickd_ticket* ticket) {
  if (queue == nullptr || request == nullptr) return -EINVAL;
  if (queue->client->fork.in_child()) return -EOWNERDEAD;
  PickRequest checked;
  if (const int code = checked.read(request, queue->client->error); code != 0) return code;
  return queue->submit(checked, user_data, ticket);
}

int pickd_queue_poll(pickd_queue* queue, pickd_result* result, uint64_t* user_data) {
  if (queue == nullptr || result == nullptr) return -EINVAL;
  if (queue->client->fork.in_child()) return -EOWNERDEAD;
  return queue->poll(*result, user_data);
}

int pickd_queue_cancel(pickd_queue* queue, pickd_ticket ticket) {
  if (queue == nullptr) return -EINVAL;
  if (queue->client->fork.in_child()) return -EOWNERDEAD;
  return ticket.client == queue->client->id ? queue->cancel(ticket.sequence) : -ESTALE;
}

int pickd_queue_report(pickd_queue* queue, const pickd_report_info* report) {
  if (queue == nullptr || report == nullptr) return -EINVAL;
  if (queue->client->fork.in_child()) return -EOWNERDEAD;
  ReportRequest checked;
  if (const int code = checked.read(report, queue->client->error); code != 0) return code;
  return queue->report(checked);
}

int pickd_queue_event_fd(pickd_queue* queue) {
  if (queue == nullptr) return -EINVAL;
  if (queue->client->fork.in_child()) return -EOWNERDEAD;
  return queue->event_descriptor();
}

}  // extern "C"
