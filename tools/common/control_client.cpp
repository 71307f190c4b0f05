#include "tools/common/control_client.hpp"

#include <cstdlib>
#include <stdexcept>

#include "daemon/base/random.hpp"

namespace pickd::tools {

namespace {

constexpr std::uint32_t kTimeoutMs = 10'000;

std::string words(client::LastError& error) {
  char text[512];
  error.copy(text, sizeof text);
  return text;
}

}  // namespace

std::string socket_or_default(const std::string& socket) {
  if (!socket.empty()) return socket;
  const char* set = std::getenv("PICKD_SOCKET");
  return set != nullptr && *set != '\0' ? set : "/run/pickd/pickd.sock";
}

ControlClient::ControlClient(const std::string& socket, const std::string& name)
    : socket_(socket_or_default(socket)), name_(name) {
  const client::Identity identity{socket_.c_str(), name_.c_str(), base::random_u64(),
                                  abi::kKeysDefault, 0};
  if (client::Session::open(identity, client::Deadline::after_ms(kTimeoutMs), error_, &session_) !=
      0) {
    fail(socket_ + ": " + words(error_));
  }
}

ControlClient::~ControlClient() {
  if (session_ != nullptr) session_->drop();
}

void ControlClient::fail(const std::string& text) { throw std::runtime_error(text); }

client::ControlExchange& ControlClient::ask(const Build& build) {
  exchange_ = client::make_exchange();
  if (exchange_ == nullptr) fail("out of memory");
  build(*exchange_);
  const client::Deadline deadline = client::Deadline::after_ms(kTimeoutMs);
  if (session_->connection().request(*exchange_, deadline, error_) != 0) fail(words(error_));
  return *exchange_;
}

void ControlClient::set_clock(std::uint64_t tick, bool sweep) {
  expect<fb::Outcome>(ask([tick, sweep](client::ControlExchange& exchange) {
    exchange.set_body(fb::CreateSetClock(exchange.builder(), tick, sweep));
  }));
}

}  // namespace pickd::tools
