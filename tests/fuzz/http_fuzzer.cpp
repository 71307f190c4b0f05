// Arbitrary bytes as an HTTP answer: read whole and in pieces, which must come to the same.
//
// The first byte says how long the pieces are and whether the bodies are bounded.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "daemon/net/http/response_reader.hpp"

namespace {

using pickd::net::http::Head;
using pickd::net::http::Outcome;
using pickd::net::http::ReaderLimits;
using pickd::net::http::ResponseReader;

struct Sink final : pickd::net::http::ResponseSink {
  bool head(const Head& head) override {
    if (head.status < 200 || head.status > 599 || ++heads > 1) std::abort();
    return true;
  }
  bool body(std::string_view piece) override {
    if (heads != 1 || piece.empty()) std::abort();
    text += piece;
    return true;
  }
  void done(const Outcome&) override { std::abort(); }
  int heads = 0;
  std::string text;
};

struct Seen {
  ResponseReader::State state;
  int status;
  std::string text;
};

Seen read(std::string_view bytes, const ReaderLimits& limits, std::size_t step) {
  ResponseReader reader;
  Sink sink;
  reader.begin(limits, sink);
  while (!bytes.empty()) {
    const std::string piece(bytes.substr(0, step));
    bytes.remove_prefix(piece.size());
    if (reader.feed(piece) != ResponseReader::State::kMore) break;
  }
  const ResponseReader::State state = reader.feed_end();
  if (state == ResponseReader::State::kMore) std::abort();
  if (limits.body_bytes_max != 0 && sink.text.size() > limits.body_bytes_max) std::abort();
  return {state, reader.status(), sink.text};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const ReaderLimits limits{512, (data[0] & 0x80) != 0 ? 64U : 0U};
  const Seen whole = read(bytes, limits, SIZE_MAX);
  const Seen pieces = read(bytes, limits, (data[0] & 0x7F) + 1U);
  // What is refused may be refused earlier or later; what is taken is the same.
  if (whole.state != pieces.state) std::abort();
  if (whole.state == ResponseReader::State::kDone &&
      (whole.text != pieces.text || whole.status != pieces.status))
    std::abort();
  return 0;
}
