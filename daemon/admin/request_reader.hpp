// RequestReader: the bytes of a connection to requests, one after another (Boost.Beast's parser,
// kept out of every other file). No sockets, no clock; the same code is fuzzed.
//
// Whoever connects is not trusted: a head is bounded, and what two readers could take for different
// requests is refused. Requests have no body here.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace pickd::admin {

struct Request {
  std::string method;
  std::string path;   // of the target, up to its question mark; as sent
  std::string query;  // behind it
  std::string host;   // with its port; may be missing in HTTP/1.0 only
  std::string accept;
  bool keep_alive = false;

  // The value of `name` in the query, as sent; empty: none.
  std::string_view parameter(std::string_view name) const;
};

class RequestReader {
 public:
  enum class State {
    kMore,     // wants more bytes
    kReady,    // request() is one
    kRefused,  // status() and why() say it; nothing more is read
  };

  explicit RequestReader(std::size_t head_bytes_max);
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Takes bytes and looks at what is there.
  State feed(std::string_view bytes);
  // After kReady: forgets the request and looks whether the next one came with it.
  State next();

  // Whether a request has begun to come.
  bool in_request() const { return !left_.empty(); }
  const Request& request() const { return request_; }
  int status() const { return status_; }
  const char* why() const { return why_; }

 private:
  State look();
  State refuse(int status, const char* why);

  std::size_t head_bytes_max_;
  std::string left_;  // not taken yet
  Request request_;
  State state_ = State::kMore;
  int status_ = 0;
  const char* why_ = "";
};

}  // namespace pickd::admin
