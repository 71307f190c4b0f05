// Connection: the control socket. One request at a time, answered by number; descriptors come with
// the answer. Does not know what the messages mean, but for two: a channel that was opened for an
// asker who has given up is closed again, or it would stay in the daemon.
//
// The daemon answers in order. So a request whose asker has given up is waited for by the next one,
// before that is sent: however many askers give up on a daemon that stands still, it finds one
// request when it goes on, and its answers find room in the socket.
//
//   Connection connection;
//   connection.open(path, deadline, error);
//   Owned<ControlExchange> exchange = make_exchange();
//   exchange->set_body(fb::CreateAskStatus(exchange->builder()));
//   if (connection.request(*exchange, deadline, error) == 0)
//   exchange->reply_as<fb::StatusAnswer>();
//
// Any thread may call request(); the others wait their turn until their deadline.
#pragma once

#include <atomic>
#include <cstdint>

#include "libclient/control_exchange.hpp"
#include "libclient/deadline.hpp"
#include "libclient/fd.hpp"
#include "libclient/last_error.hpp"
#include "libclient/mutex.hpp"

namespace pickd::client {

class Connection {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // 0, -ENOTCONN (nobody listens there), -EACCES, -ETIMEDOUT, -E2BIG (path too long), -ENOMEM.
  // kNow: -ETIMEDOUT where it would wait for a place in the daemon's backlog.
  enum class When { kWait, kNow };
  int open(const char* path, const Deadline& deadline, LastError& error, When when = When::kWait);

  // Sends the body of `exchange` and waits for its answer. 0: exchange.reply() is set, and it is no
  // refusal. A refusal (Outcome with a negative code) is returned as that code, its words kept in
  // `error`. Else -ENOTCONN (the daemon hung up: dead() from now on), -ETIMEDOUT, -EPROTO.
  // kNow: -ETIMEDOUT at once where a request before it is not answered yet.
  int request(ControlExchange& exchange, const Deadline& deadline, LastError& error,
              When when = When::kWait);

  // request() in two steps, for the first request of a connection that nobody else uses yet.
  // await() may be tried again after -ETIMEDOUT.
  int begin(ControlExchange& exchange, LastError& error) {
    return send(exchange, kFirstNumber, Deadline::after_us(0), error);
  }
  int await(ControlExchange& exchange, const Deadline& deadline, LastError& error) {
    return receive(exchange, kFirstNumber, deadline, error);
  }

  // Tells the daemon to close a channel and does not wait for its word, which is skipped by its
  // number. Of very many it waits a little for the words on the first, so that these do not fill
  // the socket; what a daemon that stands still cannot be told is told with the next request.
  void close_channel(std::uint32_t channel);

  int descriptor() const { return socket_.get(); }
  // True once the daemon was found gone. Relaxed: a hint that spares a system call, no data behind
  // it.
  bool dead() const { return dead_.load(std::memory_order_relaxed); }
  void mark_dead() { dead_.store(true, std::memory_order_relaxed); }
  // Asks the kernel.
  bool hung_up();
  // Tells the daemon that this end is meant. Neither answered nor waited for; nothing may follow
  // it.
  void say_goodbye();
  // Hangs up though a forked child may hold the socket.
  void shut();
  void abandon() { static_cast<void>(socket_.release()); }

 private:
  static constexpr std::uint32_t kFirstNumber = 1;
  // A socket's buffer holds some hundred small messages.
  static constexpr std::uint32_t kUnansweredClosesMax = 64;
  static constexpr std::uint32_t kClosePatienceMs = 50;

  int send(ControlExchange& exchange, std::uint32_t number, const Deadline& deadline,
           LastError& error);
  static void finish(ControlExchange& exchange, std::uint32_t number);
  bool send_now(const ControlExchange& exchange);
  bool wait_until(short event, const Deadline& deadline);
  int settle(ControlExchange& exchange, const Deadline& deadline, LastError& error);
  int receive(ControlExchange& exchange, std::uint32_t number, const Deadline& deadline,
              LastError& error);
  int receive_packet(ControlExchange& exchange, const Deadline& deadline, LastError& error);
  void drop_reply(const fb::Message& reply);
  void take_words_on_closes(ControlExchange& exchange);
  void send_closes(const Lock& lock);
  std::uint32_t unanswered() const { return unanswered_.load(std::memory_order_relaxed); }
  int lost(LastError& error);

  Fd socket_;
  std::atomic<bool> dead_{false};
  Mutex mutex_;
  Condition turn_;
  // ---- under mutex_ ----
  bool busy_ = false;  // a request is on its way
  std::uint32_t last_number_ = kFirstNumber;
  // Channels to be closed for which the socket had no room.
  std::uint32_t to_close_[abi::kChannelsPerClientMax];
  std::uint32_t to_close_count_ = 0;
  // ---- of who holds the turn ----
  bool closes_in_vain_ = false;  // the last wait for room for closes was for nothing

  // Sent and not answered. Relaxed: it publishes nothing.
  std::atomic<std::uint32_t> unanswered_{0};
};

}  // namespace pickd::client
