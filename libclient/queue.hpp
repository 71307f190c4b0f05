// The queue behind pickd_queue: a channel of its own for an event loop. One thread at a time.
//
// Answers never overflow the completion ring: each outstanding pick has room in it, as much as its
// longest answer may take while there is plenty, less when many are outstanding, and the daemon is
// told how much that is. So a ring is small, and `depth` picks always find room.
//
// A pick with a deadline that the daemon has not answered by then is answered by poll() as if the
// daemon were away, and cancelled in the ring; its entry stays until the daemon has taken that. So
// there are twice as many entries as `depth`: those in the ring, and those that go past it
// meanwhile.
//
// The event descriptor is an epoll descriptor that holds the channel's pipe, so its number outlives
// the channel; an eventfd of this process, for what the daemon does not ring about; and a timer for
// the next deadline.
#pragma once

#include <cstdint>

#include "libclient/channel.hpp"
#include "libclient/client.hpp"
#include "libclient/pending_table.hpp"
#include "libclient/pick_request.hpp"
#include "libclient/report_request.hpp"

struct pickd_queue {
  explicit pickd_queue(pickd_client* owner, std::uint32_t depth_wanted)
      : client(owner), depth(depth_wanted) {}
  pickd_queue(const pickd_queue&) = delete;
  pickd_queue& operator=(const pickd_queue&) = delete;
  ~pickd_queue();

  int open();
  int submit(const pickd::client::PickRequest& request, std::uint64_t user_data,
             pickd_ticket* ticket);
  int poll(pickd_result& result, std::uint64_t* user_data);
  int cancel(std::uint64_t sequence);
  int report(const pickd::client::ReportRequest& request);
  int event_descriptor();
  // In a forked child.
  void abandon();

  pickd_client* const client;

 private:
  // kPick: for who is not to wait: -ENOTCONN or -ETIMEDOUT where it would.
  int ensure_channel(pickd_client::WhenBusy when_busy = pickd_client::WhenBusy::kWait);
  int submit_degraded(const pickd::client::PickRequest& request, std::uint64_t user_data,
                      pickd_ticket* ticket);
  void lose_channel();
  void keep_answers();
  bool is_awaited(const pickd::client::CompletionRecord& record) const;
  bool take_answer(const pickd::client::CompletionRecord& record, pickd_result& result,
                   std::uint64_t* user_data);
  void hand_out(const pickd::client::Pending& pending,
                const pickd::client::CompletionRecord& record, pickd_result& result,
                std::uint64_t* user_data);
  int take_failed(pickd_result& result, std::uint64_t* user_data);
  bool take_overdue(pickd_result& result, std::uint64_t* user_data);
  void answer_here(const pickd::client::Pending& pending, int otherwise, pickd_result& result,
                   std::uint64_t* user_data);
  void set_timer(std::uint64_t deadline_ns);
  std::uint32_t room_for_answer(std::uint32_t endpoints_max) const;
  static bool needs_no_ring(const pickd::client::Pending& pending) {
    return pending.state == pickd::client::PendingState::kFailed ||
           pending.state == pickd::client::PendingState::kAnswered;
  }
  // Entries in the ring, and those that the caller awaits.
  std::uint32_t in_ring() const { return pending_.count() - failed_; }
  std::uint32_t awaited() const { return pending_.count() - cancelled_; }
  void forget(pickd::client::Pending* pending);
  void write_cancels();
  void give_up_all();
  void forget_consumed_cancels();
  void disarm();
  bool arm();
  void publish(bool awaits);
  void pay_bell();
  int full();
  // Picks whose answers are awaited.
  std::uint32_t live() const { return pending_.count() - failed_ - cancelled_; }
  void kick();
  bool nobody_there();

  const std::uint32_t depth;
  pickd::client::Channel* channel_ = nullptr;  // nullptr: lost; the next submission opens another
  pickd::client::PendingTable pending_;
  pickd::client::Fd epoll_;
  pickd::client::Fd kick_;
  pickd::client::Fd timer_;
  std::uint64_t next_deadline_ns_ = 0;  // at most the earliest of those in the ring; 0: none
  std::uint64_t answer_bytes_ = 0;      // room that outstanding answers may take
  std::uint32_t failed_ = 0;            // entries in state kFailed or kAnswered
  std::uint32_t cancelled_ = 0;         // entries in state kCancelled
  std::uint32_t late_ = 0;              // those of them whose deadline had passed
  std::uint32_t empty_polls_ = 0;
  bool owes_bell_ = false;    // published since the bell was last thought of
  bool armed_ = false;        // the daemon was asked to write to the pipe
  bool pipe_closed_ = false;  // and has closed it
  bool kicked_ = false;
  bool wants_events_ = false;  // the event descriptor was asked for: an empty poll() must arm
};
