// The client behind pickd_client: identity, session, and the pool of channels that lets any number
// of threads pick at once. What a pick or a report is stands in pick.cpp and report.cpp.
#pragma once

#include <errno.h>

#include <atomic>
#include <cstdint>

#include "libclient/channel.hpp"
#include "libclient/degraded_picker.hpp"
#include "libclient/fork.hpp"
#include "libclient/given_up.hpp"
#include "libclient/last_error.hpp"
#include "libclient/mutex.hpp"
#include "libclient/ready_channel.hpp"
#include "libclient/session.hpp"
#include "libclient/tick_clock.hpp"
#include "pickd/pickd.h"

namespace pickd::client {

class ReportRequest;

// What a daemon that runs needs to answer a hello or to open a channel. Calls that do not wait give
// it that; they do not wait where one before has given up and is not answered yet. Longer for a
// channel without which there is none: a machine under load takes so long, and each try opens
// another.
inline constexpr std::uint32_t kNoWaitPatienceUs = 1000;
inline constexpr std::uint32_t kFirstChannelPatienceUs = 50'000;

// The daemon cannot be asked: it is away, or it or this process has no descriptor or memory left
// for a channel.
inline bool is_out_of_reach(int code) {
  return code == -ENOTCONN || code == -EMFILE || code == -ENFILE || code == -ENOMEM;
}

}  // namespace pickd::client

struct pickd_client {
  // ---- set at open, then constant ----
  pickd::client::ForkGuard fork;
  char socket_path[108] = {};
  char name[256] = {};
  std::uint64_t id = 0;  // first half of every ticket, kept across reconnects
  std::uint32_t keys_wanted = 0;
  std::uint32_t channels_max = 0;
  std::uint32_t connect_timeout_ms = 0;
  pickd::client::WaitPolicy wait_policy{};
  pickd::client::TickClock ticks;  // for hashing times

  // ---- any thread ----
  pickd::client::LastError error;
  std::atomic<std::uint64_t> next_sequence{1};  // relaxed: only uniqueness counts
  std::atomic<std::uint64_t> last_seen{0};  // newest completion seen; relaxed: read at a reconnect
  pickd::client::ReadyChannel ready;        // one of the pool's free channels, or none

  // ---- the pool, under `mutex` ----
  pickd::client::Mutex mutex;
  // A channel came back, one was given up, or a reconnect ended. Who leaves without a channel wakes
  // the next: what made it leave is true for the others too, and nobody else may tell them.
  pickd::client::Condition changed;
  pickd::client::Session* session = nullptr;
  pickd::client::Channel* free_channels = nullptr;  // but for the one in `ready`
  std::uint32_t channel_count = 0;                  // free, in use and being opened
  bool reconnecting = false;
  pickd::client::Session* greeting = nullptr;  // said hello; its answer is not waited for
  std::uint64_t next_attempt_ns = 0;           // to connect again, on behalf of picks
  std::uint64_t next_channel_ns = 0;           // likewise, to open the first channel
  pickd::client::GivenUp given_up;
  std::atomic<bool> has_given_up{false};  // relaxed: without the mutex a hint
  // Versions of the daemons seen, kept until close: pickd_daemon_info() hands them out.
  struct Version {
    char text[32];
    Version* next;
  };
  Version* versions = nullptr;

  // ---- picks while the daemon is away; has a lock of its own ----
  pickd::client::DegradedPicker degraded;

  ~pickd_client();

  int connect(const pickd::client::Deadline& deadline);
  // A free channel of the live session, an opened one, or one that comes back before the deadline.
  // Reconnects once when the daemon is found gone. -ETIMEDOUT, -ENOTCONN, -ENOMEM, -EPROTO.
  // kFail: -EAGAIN where it would wait for a channel. kPick: for who can answer without the daemon.
  // Both connect again only as far as that needs no waiting, else -ENOTCONN.
  enum class WhenBusy { kWait, kFail, kPick };
  int acquire(const pickd::client::Deadline& deadline, pickd::client::Channel** channel,
              WhenBusy when_busy = WhenBusy::kWait);
  void release(pickd::client::Channel* channel);
  // The live session, with a reference that the caller drops; reconnects once when the daemon is
  // gone.
  int acquire_session(const pickd::client::Deadline& deadline, pickd::client::Session** session);
  // The same without waiting: -ENOTCONN when the daemon is away or stands still.
  int acquire_session_now(pickd::client::Session** session);
  // The session, dead or alive, with a reference that the caller drops.
  pickd::client::Session* last_session();
  void give_up(std::uint64_t sequence);
  // A report that is handed over to a daemon that is out of reach. True when it ends a request of
  // this client: then that one is given up, and the report as good as delivered.
  bool keep_end(const pickd::client::ReportRequest& report);
  // Before a channel of a daemon that went away is destroyed: gives up the requests whose end the
  // daemon was told in vain.
  void salvage(pickd::client::Channel& channel);
  // Tells the daemon what was given up, as far as there is room. Any channel that the caller holds.
  void cancel_given_up(pickd::client::Channel& channel);
  // Rings of a pooled channel: the defaults, or larger when the longest chain asks for it.
  pickd::client::RingSizes ring_sizes() const;

  std::uint64_t draw_sequence() { return next_sequence.fetch_add(1, std::memory_order_relaxed); }
  void saw(std::uint64_t sequence);
  pickd::client::Deadline connect_deadline() const {
    return pickd::client::Deadline::after_ms(connect_timeout_ms);
  }
  // In a forked child: gives up everything that is the parent's.
  void abandon();

 private:
  void give_back(pickd::client::Channel* channel);
  int find_channel(pickd::client::Lock& lock, const pickd::client::Deadline& deadline,
                   pickd::client::Channel** channel, WhenBusy when_busy);
  int open_channel(pickd::client::Lock& lock, const pickd::client::Deadline& deadline,
                   pickd::client::Channel** channel, WhenBusy when_busy);
  int reconnect(pickd::client::Lock& lock, const pickd::client::Deadline& deadline);
  int reconnect_now(pickd::client::Lock& lock);
  void write_given_up(pickd::client::Channel& channel);
  void note_given_up(std::uint64_t sequence);
  void destroy_of_another_session(pickd::client::Channel* channel);
  pickd::client::Identity identity() const {
    return {socket_path, name, id, keys_wanted, last_seen.load(std::memory_order_relaxed)};
  }
  int adopt(pickd::client::Session* opened);
  pickd::client::Channel* pop_free();
};
