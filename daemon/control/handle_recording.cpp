// Recordings of picks: AskRecording. One session records at a time; its end ends the recording.
#include <cerrno>

#include "abi/recording.hpp"
#include "daemon/base/log.hpp"
#include "daemon/control/handlers.hpp"

namespace pickd::control {

namespace {

// An answer holds the longest entry, and fits a message.
constexpr std::size_t kWordsMax = 6 * 1024;
static_assert(kWordsMax * 8 < abi::kControlMessageBytesMax);
static_assert(abi::kRecordingKeysMax + sizeof(abi::RecordingPick) / 8 < kWordsMax);

}  // namespace

void Handlers::ask_recording(ControlServer& server, Session& session, const fb::Message& message) {
  Recording& recording = *server.recording_;
  const fb::RecordingOp op = message.body_as_AskRecording()->op();
  if (op < fb::RecordingOp::Start || op > fb::RecordingOp::Stop) {
    return server.send_outcome(session, message.number(), -EINVAL,
                               "this daemon does not know that step of a recording");
  }
  if (op == fb::RecordingOp::Start) {
    if (recording.is_running()) {
      return server.send_outcome(session, message.number(), -EBUSY,
                                 "somebody records already: one recording at a time");
    }
    recording.start(session.id);
    spdlog::info("recording of picks begun by {}", session.words());
  } else if (!recording.is_of(session.id)) {
    return server.send_outcome(session, message.number(), -EINVAL,
                               "this connection does not record: Start comes first");
  }
  MessageBuilder reply;
  std::vector<std::uint64_t> words(kWordsMax);
  words.resize(recording.take(words));
  const std::uint64_t lost = recording.lost();
  if (op == fb::RecordingOp::Stop) recording.stop();
  const auto entries = reply.builder().CreateVector(words);
  server.send(session, reply.finish(message.number(),
                                    fb::CreateRecordingAnswer(reply.builder(), entries, lost)));
}

}  // namespace pickd::control
