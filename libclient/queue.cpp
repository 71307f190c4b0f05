// pickd_queue: see queue.hpp. Channel, events, picks, cancelling; the C functions are in
// queue_calls.cpp, what is answered without the daemon in queue_degraded.cpp.
#include "libclient/queue.hpp"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>

#include "libclient/memory.hpp"
#include "libclient/refusal.hpp"
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

constexpr std::uint64_t kCompletionRingBytesAsked = 4 * 1024 * 1024;  // at most
constexpr std::uint32_t kEmptyPollsPerLook = 256;

// What the answer of one pick may take, with the padding that it may force at the wrap.
std::uint32_t answer_room(std::uint32_t endpoints_max) {
  return static_cast<std::uint32_t>(
      abi::ring_units_bytes(pickd::client::picked_bytes_max(endpoints_max)));
}

// Room for `depth` answers with the winner alone, and a quarter more: while less than that is
// outstanding, answers are whole.
std::uint32_t completion_ring_bytes(std::uint32_t depth) {
  const std::uint64_t least = std::uint64_t{depth} * answer_room(1);
  const std::uint64_t wanted = least + least / 4 + answer_room(abi::kResultEndpointsMax);
  std::uint64_t bytes = abi::kCompletionRingBytesDefault;
  while (bytes < wanted && bytes < kCompletionRingBytesAsked) bytes *= 2;
  return static_cast<std::uint32_t>(bytes);
}

// Room for `depth` records in a row, of prompts of a thousand tokens, though the daemon takes none.
std::uint32_t submission_ring_bytes(std::uint32_t depth, std::uint32_t pooled_bytes) {
  const std::uint64_t wanted =
      std::uint64_t{depth} * 2 * abi::kRingUnitBytes + Channel::kCancelRoom;
  std::uint64_t bytes = std::max(abi::kSubmissionRingBytesDefault, pooled_bytes);
  while (bytes < wanted) bytes *= 2;
  return static_cast<std::uint32_t>(bytes);
}

int add_to_epoll(const Fd& epoll, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, descriptor, &event) == 0 ? 0 : -errno;
}

// When to answer a pick of this timeout without the daemon: that takes a moment too. 0: never.
std::uint64_t deadline_ns(std::int64_t timeout_us) {
  constexpr std::int64_t kKeptBackUsMax = 2000;
  if (timeout_us == 0 || timeout_us >= Deadline::kNeverUs) return 0;
  const std::int64_t quarter_us = timeout_us / 4;
  timeout_us -= quarter_us < kKeptBackUsMax ? quarter_us : kKeptBackUsMax;
  return pickd::client::monotonic_ns() + static_cast<std::uint64_t>(timeout_us) * 1000;
}

}  // namespace

// ---- Channel ------------------------------------------------------------------------------------

pickd_queue::~pickd_queue() {
  // In a forked child all of it is the parent's, and the pool's mutex may be held for ever.
  if (client->fork.in_child()) return;
  give_up_all();
  if (channel_ == nullptr) return;
  if (channel_->left_behind()) client->salvage(*channel_);
  Channel::close(channel_);
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
  static_cast<void>(timer_.release());
}

int pickd_queue::open() {
  if (const int code = pending_.make(2 * depth); code != 0)
    return client->error.set(code, "out of memory");
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  kick_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  timer_ = Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll_.valid() || !kick_.valid() || !timer_.valid() ||
      add_to_epoll(epoll_, kick_.get()) != 0 || add_to_epoll(epoll_, timer_.get()) != 0) {
    const int code = -errno;
    return client->error.set(code, "no descriptor for the queue's events: error %d", -code);
  }
  return ensure_channel();
}

// Opens the channel if there is none; connects again if the daemon is gone.
int pickd_queue::ensure_channel(pickd_client::WhenBusy when_busy) {
  if (channel_ != nullptr && (channel_->broken() || channel_->session().gone())) lose_channel();
  if (channel_ != nullptr) {
    if (client->has_given_up.load(std::memory_order_relaxed)) client->cancel_given_up(*channel_);
    return 0;
  }
  Session* session = nullptr;
  const bool now = when_busy == pickd_client::WhenBusy::kPick;
  const Deadline deadline = now ? Deadline::after_us(pickd::client::kFirstChannelPatienceUs)
                                      .or_sooner(client->connect_deadline())
                                : client->connect_deadline();
  if (const int code =
          now ? client->acquire_session_now(&session) : client->acquire_session(deadline, &session);
      code != 0) {
    return code;
  }
  RingSizes sizes = client->ring_sizes();
  sizes.submissions_bytes = submission_ring_bytes(depth, sizes.submissions_bytes);
  sizes.completions_bytes = completion_ring_bytes(depth);
  // One that was waited for once and has not come is not waited for with every submission.
  const auto when =
      now ? pickd::client::Connection::When::kNow : pickd::client::Connection::When::kWait;
  int code = Channel::open(*session, sizes, deadline, client->error, &channel_, when);
  if (code == -ETIMEDOUT) session->timed_out();
  session->drop();
  if (code == 0) code = add_to_epoll(epoll_, channel_->pipe_descriptor());
  if (code != 0) {
    if (channel_ != nullptr) lose_channel();
    return code;
  }
  client->cancel_given_up(*channel_);
  // From the start: who waits on the descriptor before the first poll() is woken too.
  channel_->announce_waiting();
  armed_ = true;
  pipe_closed_ = false;
  return 0;
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

// The event descriptor becomes readable at this time; 0: not by the timer. Who does not ask for the
// descriptor pays no system call for deadlines.
void pickd_queue::set_timer(std::uint64_t deadline_ns) {
  next_deadline_ns_ = deadline_ns;
  if (!wants_events_) return;
  constexpr std::uint64_t kSecondNs = 1'000'000'000;
  itimerspec at{};
  at.it_value = {static_cast<time_t>(deadline_ns / kSecondNs),
                 static_cast<long>(deadline_ns % kSecondNs)};
  static_cast<void>(::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr));
}

int pickd_queue::event_descriptor() {
  if (!wants_events_) {
    wants_events_ = true;
    set_timer(next_deadline_ns_);
  }
  if (channel_ != nullptr && !armed_ && !arm()) kick();
  return epoll_.get();
}

// One bell for a row of records: each would wait at a fence for its lines to leave this core. A
// pick that awaits its answer was rung for, and the answer makes the caller poll until there is
// none: poll() then looks whether the worker went to sleep meanwhile.
void pickd_queue::publish(bool awaits) {
  channel_->submissions().publish();
  owes_bell_ = awaits;
  if (!awaits) channel_->wake_daemon();
}

// Who tries again and again without polling waits for the worker too.
int pickd_queue::full() {
  pay_bell();
  return client->error.set(-EAGAIN,
                           "the queue is full: %u of %u picks are outstanding, or its ring "
                           "has no room; poll first",
                           awaited(), depth);
}

void pickd_queue::pay_bell() {
  if (owes_bell_) channel_->wake_daemon();
  owes_bell_ = false;
}

// ---- Picks --------------------------------------------------------------------------------------

// Room in the completion ring for one more answer: all that it may take, as long as every further
// pick of `depth` can still have its least; 0 when there is none.
std::uint32_t pickd_queue::room_for_answer(std::uint32_t endpoints_max) const {
  const std::uint64_t whole = answer_room(endpoints_max);
  const std::uint64_t least = answer_room(1);
  // The longest answer more: padding at the wrap takes less than that.
  const std::uint64_t used = answer_bytes_ + answer_room(abi::kResultEndpointsMax);
  if (in_ring() >= depth || used + least > channel_->completions_bytes()) return 0;
  const std::uint64_t free = channel_->completions_bytes() - used;
  const std::uint64_t kept = std::uint64_t{depth - in_ring() - 1} * least;
  if (free >= kept + whole) return static_cast<std::uint32_t>(whole);
  if (free <= kept + least) return static_cast<std::uint32_t>(least);
  return static_cast<std::uint32_t>((free - kept) / abi::kRingUnitBytes * abi::kRingUnitBytes);
}

int pickd_queue::submit(const PickRequest& request, std::uint64_t user_data, pickd_ticket* ticket) {
  if (const int code = ensure_channel(pickd_client::WhenBusy::kPick); code != 0) {
    const bool away = code == -ETIMEDOUT || pickd::client::is_out_of_reach(code);
    return away ? submit_degraded(request, user_data, ticket) : code;
  }
  if (awaited() >= depth) return full();
  const bool timed = request.raw().queue_timeout_us != 0;
  if (timed && channel_->session().stands_still())
    return submit_degraded(request, user_data, ticket);
  if (cancelled_ != 0) {
    write_cancels();
    forget_consumed_cancels();
  }
  PickShape shape{};
  const pickd::client::StateView& state = channel_->session().state();
  if (const int code = request.shape(state, channel_->keys_max(), shape, client->error); code != 0)
    return code;
  const std::uint32_t room = room_for_answer(request.endpoints_max());
  if (room < answer_room(request.endpoints_max())) shape.answer_bytes_max = room;
  std::byte* to =
      room == 0 ? nullptr : channel_->submissions().reserve(shape.bytes, Channel::kCancelRoom);
  if (to == nullptr) {
    const bool broken = channel_->broken();
    if (broken) lose_channel();
    // What it has not answered in time still fills the rings: nor would it answer this in time.
    if (broken || (timed && late_ != 0)) return submit_degraded(request, user_data, ticket);
    return full();
  }
  const std::uint64_t sequence = client->draw_sequence();
  Pending* pending = pending_.add(sequence);
  pending->user_data = user_data;
  pending->answer_bytes = room;
  pending->deadline_ns = deadline_ns(request.raw().queue_timeout_us);
  answer_bytes_ += room;
  if (pending->deadline_ns != 0 &&
      (next_deadline_ns_ == 0 || pending->deadline_ns < next_deadline_ns_)) {
    set_timer(pending->deadline_ns);
  }
  if (PendingTable::reserve(pending, shape.bytes)) {
    // Not copied back out of the ring: what the daemon can write is not to be believed later.
    pending->hash_ns = request.write(shape, state, client->ticks, sequence, pending->record);
    ::memcpy(to, pending->record, shape.bytes);
  } else {
    pending->hash_ns = request.write(shape, state, client->ticks, sequence, to);
  }
  publish(live() > 1);
  if (ticket != nullptr) *ticket = {client->id, sequence};
  return 0;
}

void pickd_queue::forget(Pending* pending) {
  if (pending->state == PendingState::kCancelled) --cancelled_;
  if (pending->late) --late_;
  if (needs_no_ring(*pending)) {
    --failed_;
  } else if (!pending->answered) {
    answer_bytes_ -= pending->answer_bytes;
  }
  pending_.remove(pending);
}

bool pickd_queue::is_awaited(const CompletionRecord& record) const {
  const Pending* pending =
      record.head.type == abi::RecordType::kPick ? pending_.find(record.head.sequence) : nullptr;
  return pending != nullptr && pending->state == PendingState::kLive;
}

// True when `record` was an answer that somebody waits for.
bool pickd_queue::take_answer(const CompletionRecord& record, pickd_result& result,
                              std::uint64_t* user_data) {
  Pending* pending =
      record.head.type == abi::RecordType::kPick ? pending_.find(record.head.sequence) : nullptr;
  if (pending == nullptr || needs_no_ring(*pending)) {
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
  hand_out(*pending, record, result, user_data);
  channel_->completions().take();
  forget(pending);
  return true;
}

// The daemon's answer to `pending`.
void pickd_queue::hand_out(const Pending& pending, const CompletionRecord& record,
                           pickd_result& result, std::uint64_t* user_data) {
  static_cast<void>(result.fill(record));
  if (result.status == 0) result.ticket = {client->id, pending.sequence};
  if (result.status != 0)
    pickd::client::explain_refusal(client->error, nullptr, false, result.status);
  result.hash_ns = pending.hash_ns;
  if (user_data != nullptr) *user_data = pending.user_data;
}

int pickd_queue::poll(pickd_result& result, std::uint64_t* user_data) {
  disarm();
  if (channel_ == nullptr) return take_failed(result, user_data);
  if (cancelled_ != 0) write_cancels();
  for (;;) {
    CompletionRecord record;
    const ReadOutcome outcome = channel_->completions().next(record);
    if (outcome == ReadOutcome::kRecord) {
      // What is to be answered here comes first; but what nobody waits for makes room on the way.
      if (failed_ != 0 && is_awaited(record)) return take_failed(result, user_data);
      if (take_answer(record, result, user_data)) return 1;
      continue;
    }
    if (outcome == ReadOutcome::kBroken || pipe_closed_) {
      lose_channel();
      return take_failed(result, user_data);
    }
    if (failed_ != 0) return take_failed(result, user_data);
    if (next_deadline_ns_ != 0 && take_overdue(result, user_data)) return 1;
    if (cancelled_ != 0) forget_consumed_cancels();
    pay_bell();
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
  if (needs_no_ring(*pending)) {
    // Of one that has its answer the daemon, or the next one, holds a reservation.
    if (pending->state == PendingState::kAnswered) client->give_up(sequence);
    forget(pending);
    return 0;
  }
  pending->state = PendingState::kCancelled;
  ++cancelled_;
  if (channel_ == nullptr) return 0;
  write_cancels();
  pay_bell();  // there may be no answer left to poll for
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
// take. Without waiting for room: the oldest first, which the daemon may have taken; what it has
// not taken when it hears of the end it drops.
void pickd_queue::give_up_all() {
  for (Pending* pending = pending_.oldest(); pending != nullptr; pending = pending->after) {
    if (pending->state == PendingState::kAnswered) client->give_up(pending->sequence);
    if (pending->state != PendingState::kLive) continue;
    pending->state = PendingState::kCancelled;
    ++cancelled_;
  }
  if (channel_ != nullptr) write_cancels();
  for (Pending* pending = pending_.oldest(); pending != nullptr; pending = pending->after) {
    if (pending->state == PendingState::kCancelled && pending->cancel_position == 0)
      client->give_up(pending->sequence);
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
  const bool own =
      request.ticket().client == client->id &&
      client->degraded.report(request.ticket().sequence, request.kind(), request.endpoint());
  if (int code = ensure_channel(pickd_client::WhenBusy::kPick); code != 0) {
    if (code == -ETIMEDOUT) code = -ENOTCONN;  // there, but it stands still
    const bool away = pickd::client::is_out_of_reach(code);
    return away && (own || client->keep_end(request)) ? 0 : code;
  }
  std::byte* to = channel_->submissions().reserve(request.bytes(), Channel::kCancelRoom);
  if (to == nullptr) {
    if (!channel_->broken()) return full();
    return own || client->keep_end(request) ? 0 : -ENOTCONN;
  }
  request.write(client->draw_sequence(), false, to);
  publish(live() > 0);
  return 0;
}
