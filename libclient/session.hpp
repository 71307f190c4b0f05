// Session: one life of the connection to one daemon: control socket, hello, mapped state segment.
//
// A reconnect makes a new Session; channels hold a reference on theirs, so that a pick that is
// under way keeps its mappings until it ends.
#pragma once

#include <atomic>
#include <cstdint>

#include "libclient/connection.hpp"
#include "libclient/control_exchange.hpp"
#include "libclient/memory.hpp"
#include "libclient/state_view.hpp"

namespace pickd::client {

// What a client tells about itself, the same at every reconnect.
struct Identity {
  const char* socket_path;
  const char* name;
  std::uint64_t client;         // first half of its tickets
  std::uint32_t keys_max;       // wanted
  std::uint64_t last_sequence;  // newest completion seen
};

class Session {
 public:
  // Connects, says hello, maps the state segment. On failure the error value, with words.
  static int open(const Identity& identity, const Deadline& deadline, LastError& error,
                  Session** session);

  // open() in two steps that do not wait. begin() connects and says hello: 0, or as open().
  // finish() takes the daemon's answer: -ETIMEDOUT as long as there is none, to be tried again.
  static int begin(const Identity& identity, const Deadline& deadline, Connection::When when,
                   LastError& error, Session** session);
  int finish(const Deadline& deadline, LastError& error);

  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  // Acquire-release: whoever drops the last reference sees what the others did with the session.
  void drop() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy_object(this);
  }
  // In a forked child: the mappings are not there and the descriptors are the parent's business.
  void abandon() {
    state_.abandon();
    connection_.abandon();
  }

  Connection& connection() { return connection_; }
  const StateView& state() const { return state_; }
  std::uint32_t keys_max() const { return keys_max_; }  // granted
  const char* daemon_version() const { return daemon_version_; }

  // For calls that do not wait, and so would not notice a hang-up: asks the kernel, but only when
  // the state segment gives a reason to. A daemon that was started again writes a new epoch into
  // the file it took over; one that made a new file marks the old one; one that is just gone stops
  // its heartbeat.
  bool gone() {
    if (connection_.dead()) return true;
    const std::uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
    const std::uint64_t heartbeat_ns = state_.heartbeat_ns();
    const bool alive = now_ns < heartbeat_ns || now_ns - heartbeat_ns < kHeartbeatSuspiciousNs;
    if (alive && state_.daemon_epoch() == daemon_epoch_ && !state_.superseded()) return false;
    return connection_.hung_up();
  }

  // A call ran into its deadline here. When the daemon gave no sign of life either, it stands still
  // (SIGSTOP, a debugger, a machine out of memory): until the next heartbeat picks need not wait
  // for their deadlines to learn that. Relaxed: a hint.
  void timed_out() {
    const std::uint64_t heartbeat_ns = state_.heartbeat_ns();
    const std::uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
    if (now_ns > heartbeat_ns && now_ns - heartbeat_ns >= kHeartbeatSuspiciousNs)
      stood_still_ns_.store(heartbeat_ns, std::memory_order_relaxed);
  }
  bool stands_still() const {
    const std::uint64_t stood_still_ns = stood_still_ns_.load(std::memory_order_relaxed);
    return stood_still_ns != 0 && stood_still_ns == state_.heartbeat_ns();
  }

 private:
  static constexpr std::uint64_t kHeartbeatSuspiciousNs = 500'000'000;

  template <typename T, typename... Arguments>
  friend T* make_object(Arguments&&...);
  template <typename T>
  friend void destroy_object(T*);
  Session() = default;
  ~Session() {
    if (greeted_) connection_.say_goodbye();
    connection_.shut();
  }

  std::atomic<std::uint32_t> references_{1};
  Connection connection_;
  StateView state_;
  Owned<ControlExchange> hello_;  // between begin() and finish()
  std::uint32_t keys_wanted_ = 0;
  std::atomic<std::uint64_t> stood_still_ns_{0};  // heartbeat at which it was found standing still
  bool greeted_ = false;                          // the daemon knows this client
  std::uint64_t daemon_epoch_ = 0;
  std::uint32_t keys_max_ = 0;
  char daemon_version_[32] = {};
};

}  // namespace pickd::client
