// Messages that open and close: Hello, OpenChannel, CloseChannel, Goodbye.
#include <algorithm>
#include <bit>
#include <cerrno>

#include "daemon/base/log.hpp"
#include "daemon/base/printable.hpp"
#include "daemon/control/handlers.hpp"
#include "daemon/control/version.hpp"

namespace pickd::control {

namespace {

constexpr std::uint32_t kRingBytesMin = 16 * 1024;
constexpr std::uint32_t kRingBytesMax = 4 * 1024 * 1024;
constexpr std::size_t kClientNameBytesMax = 127;

// A ring that holds at least two of the longest records, so that one never blocks itself.
std::uint32_t submissions_bytes(std::uint32_t wanted, std::uint32_t keys_max) {
  const auto record = static_cast<std::uint32_t>(workers::Channel::record_bytes_max(keys_max));
  const std::uint32_t least = std::max(abi::kSubmissionRingBytesDefault, 2 * record);
  return std::bit_ceil(std::clamp(wanted, least, std::max(least, kRingBytesMax)));
}

std::uint32_t completions_bytes(std::uint32_t wanted) {
  if (wanted == 0) return abi::kCompletionRingBytesDefault;
  return std::bit_ceil(std::clamp(wanted, kRingBytesMin, kRingBytesMax));
}

}  // namespace

void Handlers::hello(ControlServer& server, Session& session, const fb::Message& message) {
  const fb::Hello& hello = *message.body_as_Hello();
  if (session.greeted) {
    return server.send_outcome(session, message.number(), -EPROTO, "Hello was said already");
  }
  if (hello.layout_major() != abi::kLayoutMajor) {
    server.counters_->add(abi::Counter::control_refused);
    return server.send_outcome(session, message.number(), -EPROTONOSUPPORT,
                               "the library speaks layout " + std::to_string(hello.layout_major()) +
                                   "." + std::to_string(hello.layout_minor()) +
                                   ", this daemon layout " + std::to_string(abi::kLayoutMajor) +
                                   "." + std::to_string(abi::kLayoutMinor) +
                                   "; install the same release of both");
  }
  auto state = server.room_->segment().open_read_only();
  if (!state)
    return server.send_outcome(session, message.number(), state.error().code, state.error().text);
  const abi::StateHeader& header = server.room_->segment().header();
  session.greeted = true;
  session.client = hello.client();
  if (hello.name() != nullptr) {
    session.name =
        base::printable({hello.name()->c_str(), hello.name()->size()}, kClientNameBytesMax);
  }
  session.keys_max = std::clamp(hello.keys_max(), abi::kKeysMin, header.keys_max);
  if (hello.last_sequence() != 0) {
    // What this client was answered and never saw is nobody's.
    server.room_->reservations().release_client(session.client, session.peer.uid,
                                                hello.last_sequence());
  }
  spdlog::debug("{} connected", session.words());
  MessageBuilder reply;
  const auto version = reply.builder().CreateString(kVersion);
  const auto welcome =
      fb::CreateWelcome(reply.builder(), abi::kLayoutMajor, abi::kLayoutMinor,
                        header.segment.daemon_epoch, header.instance_id, session.keys_max, version);
  const int fds[] = {state->get()};
  server.send(session, reply.finish(message.number(), welcome), fds);
}

void Handlers::open_channel(ControlServer& server, Session& session, const fb::Message& message) {
  const fb::OpenChannel& open = *message.body_as_OpenChannel();
  workers::ChannelParameters parameters;
  parameters.submissions_bytes = submissions_bytes(open.submissions_bytes(), session.keys_max);
  parameters.completions_bytes = completions_bytes(open.completions_bytes());
  const std::uint64_t bytes = workers::Channel::segment_bytes(parameters);
  if (const std::string over = server.over_channels(session, bytes); !over.empty()) {
    server.counters_->add(abi::Counter::control_refused);
    return server.send_outcome(session, message.number(), -EMFILE, over);
  }
  do {
    parameters.id = ++server.next_channel_;
  } while (parameters.id == 0 || server.channels_.contains(parameters.id));
  parameters.worker = server.quietest_worker();
  parameters.keys_max = session.keys_max;
  parameters.client = session.client;
  parameters.uid = session.peer.uid;
  parameters.rates = server.rates_of(session.peer.uid);
  parameters.slow_wakes = &server.room_->slow_wakes();
  parameters.daemon_epoch = server.room_->segment().header().segment.daemon_epoch;
  workers::ChannelDescriptors descriptors;
  auto channel = workers::Channel::create(parameters, &descriptors);
  if (!channel) {
    const int code = channel.error().code;
    // Not the client's, who would look for the fault in its own process.
    const std::string words = code == -EMFILE || code == -ENFILE
                                  ? "the daemon has no descriptor left for a channel; its "
                                    "RLIMIT_NOFILE says how many it may have"
                                  : channel.error().text;
    ControlServer::warn(server.channel_warnings_, session.words() + ": " + words);
    return server.send_outcome(session, message.number(), code, words);
  }
  session.channels.insert(parameters.id);
  server.channels_[parameters.id] = {session.id, parameters.worker, parameters.uid, bytes};
  ++server.channels_of_worker_[parameters.worker];
  server.room_->worker(parameters.worker).add(std::move(*channel));
  MessageBuilder reply;
  const auto opened = fb::CreateChannelOpened(reply.builder(), parameters.id, parameters.worker);
  const int fds[] = {descriptors.segment.get(), descriptors.bell.get(), descriptors.pipe.get()};
  server.send(session, reply.finish(message.number(), opened), fds);
}

void Handlers::close_channel(ControlServer& server, Session& session, const fb::Message& message) {
  const std::uint32_t channel = message.body_as_CloseChannel()->channel();
  if (session.channels.erase(channel) == 0) {
    return server.send_outcome(session, message.number(), -ENOENT,
                               "this client has no such channel");
  }
  server.room_->worker(server.channels_[channel].worker).remove(channel);
  server.send_outcome(session, message.number(), 0, "");
}

void Handlers::goodbye(ControlServer& server, Session& session, const fb::Message& /*message*/) {
  session.leaving = true;
  // Not left to the hang-up: a child that the client forked may keep the socket open for long.
  server.end_session(session, "it closed");
}

}  // namespace pickd::control
