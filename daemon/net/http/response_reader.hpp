// ResponseReader: the bytes of one HTTP/1.x answer to calls of a sink (Boost.Beast's parser, kept
// out of every other file). No sockets, no clock, no allocation for a page that comes in whole
// reads; the same code is fuzzed.
//
// Bytes come from an engine and are not trusted: heads, trailers and chunk headers are bounded,
// bodies are passed on as they come, and what two readers could frame differently (a length beside
// chunks, two lengths, an unknown transfer coding) is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/net/http/response.hpp"

namespace pickd::net::http {

struct ReaderLimits {
  std::uint32_t head_bytes_max = 16 * 1024;
  std::uint64_t body_bytes_max = 0;  // 0: none
};

class ResponseReader {
 public:
  enum class State : std::uint8_t {
    kMore,    // wants more bytes, or the end of the connection
    kDone,    // the whole answer was read
    kFailed,  // failure() says why; nothing more is read
  };

  ResponseReader();
  ~ResponseReader();
  ResponseReader(const ResponseReader&) = delete;
  ResponseReader& operator=(const ResponseReader&) = delete;

  // Begins an answer; `sink` gets head() and body(), never done(). It must live until the next
  // begin() or the end of the reader.
  void begin(const ReaderLimits& limits, ResponseSink& sink);
  State feed(std::string_view bytes);
  // The connection ended. kDone when that ends the answer too.
  State feed_end();

  Failure failure() const;
  const std::string& text() const;  // for people, with failure()
  int status() const;               // 0: no head yet
  bool got_some() const;            // whether a byte of the answer came
  // Of an answer that is done: whether the connection can take another request.
  bool keep_alive() const;

 private:
  class Parser;
  State parse(std::string_view& bytes);
  State fail(Failure failure, std::string text);

  std::unique_ptr<Parser> parser_;
  ReaderLimits limits_;
  ResponseSink* sink_ = nullptr;
  std::string left_;  // of a head or chunk header that came in part
  std::string text_;
  Failure failure_ = Failure::kNone;
  State state_ = State::kDone;
  std::uint32_t interim_ = 0;  // answers of 1xx before the real one
  bool got_some_ = false;
  bool extra_ = false;  // bytes came behind the answer
};

}  // namespace pickd::net::http
