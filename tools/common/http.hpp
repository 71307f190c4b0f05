// HTTP/1.1 requests out of a byte stream (Boost.Beast's parser, kept out of every other file), and
// the heads of answers. Knows nothing of sockets and of what a request asks for.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace pickd::tools {

struct HttpRequest {
  std::string method;
  std::string target;  // path and query as sent
  std::string body;
  bool keep_alive = true;
};

// Reads one request after another from the bytes of one connection. Not thread-safe.
class HttpRequestReader {
 public:
  enum class State {
    kMore,      // needs more bytes
    kReady,     // take() gives the request
    kBad,       // not HTTP/1.x: the connection cannot go on
    kTooLarge,  // the body is longer than `body_bytes_max`, or the head longer than 16 KiB
  };

  explicit HttpRequestReader(std::size_t body_bytes_max);
  ~HttpRequestReader();
  HttpRequestReader(const HttpRequestReader&) = delete;
  HttpRequestReader& operator=(const HttpRequestReader&) = delete;

  // Takes bytes from the front of `bytes`; what belongs to the next request stays in it.
  State read(std::string& bytes);

  // The request that read() called ready; the reader begins the next one.
  HttpRequest take();

  // True once per request, when its head asks for "100 Continue" before the body is sent.
  bool wants_continue();

  // True between the first byte of a request and its last.
  bool in_request() const;

 private:
  struct Parser;
  void restart();

  std::size_t body_bytes_max_;
  std::unique_ptr<Parser> parser_;
};

// An answer with a body of known length.
std::string http_answer(int status, std::string_view content_type, std::string_view body,
                        bool keep_alive);

// The head of an answer that is sent in chunks, and one chunk; an empty chunk ends the answer.
std::string http_chunked_head(std::string_view content_type, bool keep_alive);
void append_http_chunk(std::string& out, std::string_view bytes);

}  // namespace pickd::tools
