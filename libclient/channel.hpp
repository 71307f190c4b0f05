// Channel: one pair of rings with the daemon, the bell towards it and the pipe from it, and the
// protocol by which either side sleeps. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "abi/channel_layout.hpp"
#include "abi/spin_budget.hpp"
#include "libclient/deadline.hpp"
#include "libclient/fd.hpp"
#include "libclient/ring.hpp"
#include "libclient/session.hpp"

namespace pickd::client {

// How a waiting call spends its time.
struct WaitPolicy {
  std::uint32_t spin_us;  // spin as long at most, less while that fails; then sleep
  bool busy_poll;         // never sleep
};

struct RingSizes {
  std::uint32_t submissions_bytes;  // 0: the daemon's default
  std::uint32_t completions_bytes;
};

class Channel {
 public:
  // Asks the daemon for a channel and maps it. The channel keeps a reference on `session`.
  // Errors: as Connection::request(), -ENOMEM, -EPROTO, -EPROTONOSUPPORT.
  // kNow: -ETIMEDOUT at once where a control request before it is not answered yet.
  static int open(Session& session, const RingSizes& sizes, const Deadline& deadline,
                  LastError& error, Channel** channel,
                  Connection::When when = Connection::When::kWait);
  // Unmaps. The daemon is told by close(), by the hang-up of the connection, or by nobody if it
  // closed the channel itself.
  ~Channel();
  // Asks the daemon to close it, without waiting for its word, and destroys it. What the daemon has
  // not taken yet of its picks is dropped there; reports and cancels are heeded.
  static void close(Channel* channel);
  // In a forked child.
  void abandon();

  Session& session() { return *session_; }
  // The longest chain one submission here can carry; a record of it fits the ring wherever that
  // stands.
  std::uint32_t keys_max() const { return keys_max_; }
  std::uint64_t completions_bytes() const { return completions_bytes_; }
  SubmissionWriter& submissions() { return submissions_; }
  CompletionReader& completions() { return completions_; }

  // Rings the bell if the worker sleeps. After SubmissionWriter::publish().
  void wake_daemon();

  // Waits for the completion of `sequence`; older ones, whose callers gave up, are dropped. 0:
  // `record` holds it until completions().take(). Else -ETIMEDOUT, -ENOTCONN, -EPROTO.
  int wait_for(std::uint64_t sequence, const Deadline& deadline, const WaitPolicy& policy,
               CompletionRecord& record);
  // Waits for room for a record: reserve() with waiting. The daemon does not wake for room, so this
  // looks again every millisecond; it happens only when a daemon has stood still over a ring full
  // of submissions.
  std::byte* wait_for_room(std::uint64_t bytes, std::uint64_t spare, const Deadline& deadline);

  // Tells the daemon to drop the pick, or to free what it reserved. False when the ring has no
  // room: blocking picks always leave some (kCancelRoom).
  bool cancel(std::uint64_t sequence, std::uint64_t spare = 0);
  // Of a channel whose daemon is gone: the tickets of client `client` that it was told the end of,
  // or told to cancel, and may not have heeded. Reports whose answer somebody waited for are not
  // among them: who waited knows.
  template <typename Visit>
  void each_lost_end(std::uint64_t client, const Visit& visit);
  static constexpr std::uint64_t kCancelRoom = abi::kRingUnitBytes;

  // The parts of wait_for(), for queues.
  void announce_waiting();  // from now on the daemon writes to the pipe after publishing
  void stop_waiting();
  int pipe_descriptor() const { return pipe_.get(); }
  // Empties the pipe. False when its writing end is closed: the daemon gave the channel up or is
  // gone.
  bool drain_pipe();
  bool pipe_hung_up() const;
  // Nobody reads its ring any more: the daemon is gone, or gave the channel up. The pipe tells it
  // at once; the connection of a daemon that was killed may be closed a moment later.
  bool left_behind() { return pipe_hung_up() || session_->connection().hung_up(); }

  // A channel that broke is never used again: the daemon is gone, closed it, or violates the
  // layout.
  bool broken() const { return broken_ || submissions_.broken() || completions_.broken(); }
  void mark_broken() { broken_ = true; }

  Channel* next_free = nullptr;  // of the pool, under its mutex

 private:
  template <typename T, typename... Arguments>
  friend T* make_object(Arguments&&...);
  explicit Channel(Session& session);
  int take(ControlExchange& exchange, const fb::ChannelOpened& opened, LastError& error);
  int map(Fd segment, LastError& error);
  int find(std::uint64_t sequence, CompletionRecord& record);
  int spin_for(std::uint64_t sequence, const Deadline& deadline, const WaitPolicy& policy,
               CompletionRecord& record);
  int sleep(const Deadline& deadline);
  int hang_up();

  Session* session_;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  abi::RingIndices* indices_ = nullptr;
  std::uint32_t id_ = 0;
  std::uint32_t worker_ = 0;
  std::uint32_t keys_max_ = 0;
  std::uint64_t completions_bytes_ = 0;
  bool broken_ = false;
  abi::SpinBudget spin_;  // begins at the policy's cap with the first wait
  SubmissionWriter submissions_;
  CompletionReader completions_;
  Fd bell_;
  Fd pipe_;
};

template <typename Visit>
void Channel::each_lost_end(std::uint64_t client, const Visit& visit) {
  submissions_.each_lost([&](const abi::RecordHead& head, const std::byte* at) {
    if (head.type == abi::RecordType::kCancel) visit(head.sequence);
    if (head.type != abi::RecordType::kReport || head.bytes < sizeof(abi::ReportRecord)) return;
    abi::ReportRecord report;
    std::memcpy(&report, at, sizeof report);
    const bool ends = report.kind == abi::ReportKind::kDone ||
                      report.kind == abi::ReportKind::kFailed ||
                      report.kind == abi::ReportKind::kCancelled;
    if (ends && report.ticket_client == client && (head.flags & abi::kReportAnswer) == 0)
      visit(report.ticket_sequence);
  });
}

}  // namespace pickd::client
