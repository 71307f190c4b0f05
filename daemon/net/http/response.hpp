// Response: what an HTTP exchange gives to whoever asked: a sink for the answer's pieces, and how
// it ended. Plain types, shared by the reader and the client; knows nothing of sockets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pickd::net::http {

// How an exchange ended. The names are what logs and `pickctl` show: failure_name().
enum class Failure : std::uint8_t {
  kNone = 0,        // the whole answer came, whatever its status
  kResolve,         // the host's name has no address
  kConnect,         // refused, unreachable, no route
  kConnectTimeout,  // neither a connection nor a refusal, or a TLS handshake that does not end
  kTls,             // handshake failed: certificate, name or protocol
  kReset,           // the connection ended before the whole answer came
  kTimeout,         // no byte for idle_timeout_ms
  kTotalTimeout,    // not done after total_timeout_ms
  kMalformed,       // not HTTP/1.x, or framing that two readers would read differently
  kHeadTooLarge,    // a head, trailer or chunk header longer than head_bytes_max
  kBodyTooLarge,    // a body longer than body_bytes_max
  kEncoded,         // Content-Encoding, though identity was asked for
  kRedirect,        // 3xx: never followed, for a token must not travel to another host
  kStopped,         // the sink wanted no more
  kNoResources,     // no descriptor, port or memory here: nothing was asked, nobody failed
};
// A word or two in lower case, such as "connect refused"; never empty.
const char* failure_name(Failure failure);

struct Head {
  int status = 0;                 // 200 to 599
  std::string_view content_type;  // as sent, empty when not told; valid during the call
};

struct Outcome {
  Failure failure = Failure::kNone;
  int status = 0;         // 0: no head came
  std::string text;       // for people: where and what; empty when all is well
  bool reused = false;    // on a kept-alive connection
  bool sent_all = false;  // the request left whole: the server may have acted on it
  bool ok() const { return failure == Failure::kNone && status >= 200 && status < 300; }
};

// Takes one answer. Called on the reactor's thread. head() comes at most once, then body() for each
// piece as it arrives (never a whole large body), then done() exactly once unless the exchange is
// cancelled. Inside head() and body() the client may be neither destroyed nor cancelled: return
// false for that. Inside done() it may be destroyed, or given the next request.
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  // False ends the exchange with kStopped and closes the connection.
  virtual bool head(const Head& head) = 0;
  virtual bool body(std::string_view piece) = 0;
  virtual void done(const Outcome& outcome) = 0;
};

}  // namespace pickd::net::http
