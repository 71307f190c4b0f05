// Connection: the control socket. One request at a time, answered by number; descriptors come with
// the answer. Does not know what the messages mean, but for one: an OpenChannel whose asker has
// given up is closed again, or its channel would stay in the daemon.
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
  // The deadline also bounds every later send(). kNow: -ETIMEDOUT where it would wait for a place
  // in the daemon's backlog.
  enum class When { kWait, kNow };
  int open(const char* path, const Deadline& deadline, LastError& error, When when = When::kWait);

  // Sends the body of `exchange` and waits for its answer. 0: exchange.reply() is set, and it is no
  // refusal. A refusal (Outcome with a negative code) is returned as that code, its words kept in
  // `error`. Else -ENOTCONN (the daemon hung up: dead() from now on), -ETIMEDOUT, -EPROTO.
  int request(ControlExchange& exchange, const Deadline& deadline, LastError& error);

  // request() in two steps, for the first request of a connection that nobody else uses yet.
  // await() may be tried again after -ETIMEDOUT.
  int begin(ControlExchange& exchange, LastError& error) {
    return send(exchange, ++last_number_, error);
  }
  int await(ControlExchange& exchange, const Deadline& deadline, LastError& error) {
    return receive(exchange, last_number_, deadline, error);
  }

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
  void abandon() { static_cast<void>(socket_.release()); }

 private:
  int send(ControlExchange& exchange, std::uint32_t number, LastError& error);
  int receive(ControlExchange& exchange, std::uint32_t number, const Deadline& deadline,
              LastError& error);
  int receive_packet(ControlExchange& exchange, LastError& error);
  void close_abandoned_channel(std::uint32_t channel);
  int lost(LastError& error);

  Fd socket_;
  std::atomic<bool> dead_{false};
  Mutex mutex_;
  Condition turn_;
  bool busy_ = false;              // under mutex_: a request is on its way
  std::uint32_t last_number_ = 0;  // used by the request that is on its way only
};

}  // namespace pickd::client
