// Picks of a queue that the library answers itself: the daemon is away, went away, or is late.
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "libclient/queue.hpp"
#include "libclient/refusal.hpp"
#include "libclient/result.hpp"

namespace abi = pickd::abi;
using pickd::client::Channel;
using pickd::client::CompletionRecord;
using pickd::client::Pending;
using pickd::client::PendingState;
using pickd::client::PendingTable;
using pickd::client::PickRequest;
using pickd::client::PickShape;
using pickd::client::ReadOutcome;
using pickd::client::Session;

// Takes the answers that lie in the ring of a channel that is about to go: they hold reservations,
// and the daemon gave them.
void pickd_queue::keep_answers() {
  CompletionRecord record;
  while (channel_->completions().next(record) == ReadOutcome::kRecord) {
    Pending* pending =
        record.head.type == abi::RecordType::kPick ? pending_.find(record.head.sequence) : nullptr;
    const bool awaited = pending != nullptr && pending->state == PendingState::kLive;
    if (awaited && PendingTable::reserve(pending, record.head.bytes)) {
      ::memcpy(pending->record, record.data, record.head.bytes);
      ::memcpy(pending->record, &record.head, sizeof record.head);  // the one that was checked
      pending->state = PendingState::kAnswered;
      ++failed_;
      // Or the next daemon would take it for one that was never seen, and release it.
      client->saw(pending->sequence);
    }
    channel_->completions().take();
  }
}

// What is outstanding will be answered without the daemon by poll().
void pickd_queue::lose_channel() {
  keep_answers();
  for (Pending* pending = pending_.oldest(); pending != nullptr;) {
    Pending* after = pending->after;
    // The daemon, or the next one, may hold a reservation for it.
    if (!needs_no_ring(*pending)) client->give_up(pending->sequence);
    if (pending->state == PendingState::kCancelled) {
      forget(pending);
    } else if (pending->state == PendingState::kLive) {
      pending->state = PendingState::kFailed;
      ++failed_;
    }
    pending = after;
  }
  answer_bytes_ = 0;
  armed_ = owes_bell_ = false;
  set_timer(0);
  // By hand: a child that was forked may hold the pipe open, and closing it here would leave its
  // hang-up in epoll for ever.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, channel_->pipe_descriptor(), nullptr);
  if (channel_->left_behind()) client->salvage(*channel_);
  Channel::close(channel_);
  channel_ = nullptr;
  if (failed_ != 0) kick();
}

// To be answered by the next poll().
int pickd_queue::submit_degraded(const PickRequest& request, std::uint64_t user_data,
                                 pickd_ticket* ticket) {
  if (awaited() >= depth) return full();
  Session* session = client->last_session();
  PickShape shape{};
  int code = session->state().store().usable()
                 ? request.shape(session->state(), session->keys_max(), shape, client->error)
                 : client->error.set(-ENOTCONN, "the daemon is away, and no endpoint is known");
  if (code == 0) {
    const std::uint64_t sequence = client->draw_sequence();
    Pending* pending = pending_.add(sequence);
    if (PendingTable::reserve(pending, shape.bytes)) {
      static_cast<void>(
          request.write(shape, session->state(), client->ticks, sequence, pending->record));
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

// Answers without the daemon; with `otherwise` where that cannot be done.
void pickd_queue::answer_here(const Pending& pending, int otherwise, pickd_result& result,
                              std::uint64_t* user_data) {
  if (user_data != nullptr) *user_data = pending.user_data;
  int code = -ENOTCONN;
  if (pending.record_capacity != 0) {
    Session* session = client->last_session();
    code = client->degraded.pick(session->state(), pending.record, {client->id, pending.sequence},
                                 result);
    session->drop();
  }
  if (code == -ENOTCONN || code == -ENOMEM) {
    result.fail(
        client->error.set(otherwise, "the daemon did not answer: it went away or was late"));
  } else if (code != 0) {
    pickd::client::explain_refusal(client->error, nullptr, true, code);
  }
}

// The oldest that needs no ring.
int pickd_queue::take_failed(pickd_result& result, std::uint64_t* user_data) {
  if (failed_ == 0) return 0;
  Pending* pending = pending_.oldest();
  while (!needs_no_ring(*pending)) pending = pending->after;
  if (pending->state == PendingState::kAnswered) {
    CompletionRecord record;
    ::memcpy(&record.head, pending->record, sizeof record.head);
    record.data = pending->record;
    hand_out(*pending, record, result, user_data);
    forget(pending);
    return 1;
  }
  answer_here(*pending, -ENOTCONN, result, user_data);
  forget(pending);
  return 1;
}

// The oldest pick whose deadline has passed. Its answer, when it comes, will be dropped, and what
// it reserved is released.
bool pickd_queue::take_overdue(pickd_result& result, std::uint64_t* user_data) {
  const std::uint64_t now_ns = pickd::client::monotonic_ns();
  if (now_ns < next_deadline_ns_) return false;
  Pending* overdue = nullptr;
  std::uint64_t next_ns = 0;
  for (Pending* pending = pending_.oldest(); pending != nullptr; pending = pending->after) {
    if (pending->state != PendingState::kLive || pending->deadline_ns == 0) continue;
    if (overdue == nullptr && pending->deadline_ns <= now_ns) {
      overdue = pending;
    } else if (next_ns == 0 || pending->deadline_ns < next_ns) {
      next_ns = pending->deadline_ns;
    }
  }
  set_timer(next_ns);
  if (overdue == nullptr) return false;
  channel_->session().timed_out();
  answer_here(*overdue, -ETIMEDOUT, result, user_data);
  overdue->state = PendingState::kCancelled;
  ++cancelled_;
  overdue->late = true;
  ++late_;
  write_cancels();
  return true;
}
