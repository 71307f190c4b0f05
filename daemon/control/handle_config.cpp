// The configuration in force: AskConfig. Its text is made for the first page, and sent in pages.
#include <algorithm>
#include <cerrno>

#include "daemon/config/load.hpp"
#include "daemon/control/handlers.hpp"

namespace pickd::control {

namespace {

constexpr std::size_t kTextBytesMax = abi::kControlMessageBytesMax - 4 * 1024;

}  // namespace

void Handlers::ask_config(ControlServer& server, Session& session, const fb::Message& message) {
  const std::size_t from = message.body_as_AskConfig()->from_byte();
  if (from == 0)
    session.config_text = config::print_config({server.config_, server.config_origins_});
  if (from >= session.config_text.size()) {
    return server.send_outcome(session, message.number(), -EINVAL,
                               "from_byte lies behind the last answer: begin again with 0");
  }
  MessageBuilder reply;
  const std::size_t bytes = std::min(session.config_text.size() - from, kTextBytesMax);
  const bool last = from + bytes == session.config_text.size();
  const auto path = reply.builder().CreateString(server.config_path_);
  const auto text = reply.builder().CreateString(session.config_text.data() + from, bytes);
  const auto next = last ? 0 : static_cast<std::uint32_t>(from + bytes);
  if (last) session.config_text.clear();
  server.send(session, reply.finish(message.number(),
                                    fb::CreateConfigAnswer(reply.builder(), path, text, next)));
}

}  // namespace pickd::control
