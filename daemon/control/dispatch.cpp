// Which control message is handled by whom, and what it needs.
#include <algorithm>
#include <cerrno>

#include "daemon/control/handlers.hpp"

namespace pickd::control {

namespace {

enum Needs : std::uint8_t { kNothing = 0, kGreeting = 1, kAdmin = 2 };

struct Entry {
  fb::Body body;
  std::uint8_t needs;
  Handlers::Function handle;
};

const Entry kEntries[] = {
    {fb::Body::Hello, kNothing, Handlers::hello},
    {fb::Body::OpenChannel, kGreeting, Handlers::open_channel},
    {fb::Body::CloseChannel, kGreeting, Handlers::close_channel},
    {fb::Body::ChangeEndpoint, kGreeting | kAdmin, Handlers::change_endpoint},
    {fb::Body::ReplaceEndpoints, kGreeting | kAdmin, Handlers::replace_endpoints},
    {fb::Body::AskStatus, kGreeting, Handlers::ask_status},
    {fb::Body::AskEndpoints, kGreeting, Handlers::ask_endpoints},
    {fb::Body::AskStore, kGreeting, Handlers::ask_store},
    {fb::Body::AskExplain, kGreeting, Handlers::ask_explain},
    {fb::Body::AskConfig, kGreeting | kAdmin, Handlers::ask_config},
    {fb::Body::AskRecording, kGreeting | kAdmin, Handlers::ask_recording},
    {fb::Body::SetClock, kGreeting | kAdmin, Handlers::set_clock},
    {fb::Body::Goodbye, kGreeting, Handlers::goodbye},
};

}  // namespace

void ControlServer::dispatch(Session& session, const fb::Message& message) {
  const auto* const entry =
      std::find_if(std::begin(kEntries), std::end(kEntries),
                   [&message](const Entry& known) { return known.body == message.body_type(); });
  if (entry == std::end(kEntries) || message.body() == nullptr) {
    counters_->add(abi::Counter::control_malformed);
    return send_outcome(session, message.number(), -EPROTO,
                        "this daemon does not know that message");
  }
  if ((entry->needs & kGreeting) != 0 && !session.greeted) {
    counters_->add(abi::Counter::control_malformed);
    return send_outcome(session, message.number(), -EPROTO, "the first message must be Hello");
  }
  if ((entry->needs & kAdmin) != 0 && !session.admin) {
    counters_->add(abi::Counter::control_refused);
    return send_outcome(session, message.number(), -EPERM,
                        "uid " + std::to_string(session.peer.uid) +
                            " may not do that; listen.admin_uids lists who may");
  }
  entry->handle(*this, session, message);
}

}  // namespace pickd::control
