// ControlClient: questions to a running daemon's control socket, for tools and tests. Throws
// std::runtime_error with the library's words when the daemon is not there or refuses.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "libclient/control_exchange.hpp"
#include "libclient/session.hpp"

namespace pickd::tools {

class ControlClient {
 public:
  // `socket` empty: $PICKD_SOCKET, else /run/pickd/pickd.sock.
  ControlClient(const std::string& socket, const std::string& name);
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  using Build = std::function<void(client::ControlExchange& exchange)>;
  // Sends what `build` sets as the body and returns the answer; valid until the next call.
  client::ControlExchange& ask(const Build& build);

  // The same, for a table without fields of its own to be set.
  template <typename Question, typename Answer>
  const Answer& ask(flatbuffers::Offset<Question> (*create)(flatbuffers::FlatBufferBuilder&)) {
    return expect<Answer>(ask([create](client::ControlExchange& exchange) {
      exchange.set_body(create(exchange.builder()));
    }));
  }

  template <typename Answer>
  static const Answer& expect(client::ControlExchange& exchange) {
    const Answer* answer = exchange.reply_as<Answer>();
    if (answer == nullptr) fail("the daemon answered something else than was asked for");
    return *answer;
  }

  const client::StateView& state() const { return session_->state(); }
  std::uint32_t keys_max() const { return session_->keys_max(); }  // granted
  // A virtual clock's next tick; `sweep`: returns after a whole pass of maintenance.
  void set_clock(std::uint64_t tick, bool sweep);

 private:
  [[noreturn]] static void fail(const std::string& text);

  std::string socket_;
  std::string name_;
  client::LastError error_;
  client::Session* session_ = nullptr;
  client::Owned<client::ControlExchange> exchange_;
};

// $PICKD_SOCKET or the default when `socket` is empty.
std::string socket_or_default(const std::string& socket);

}  // namespace pickd::tools
