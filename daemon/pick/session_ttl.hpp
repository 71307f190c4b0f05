// SessionTtl: a plugin that wants sessions remembered says for how long, and where their id stands.
#pragma once

#include <cstdint>
#include <string>

namespace pickd::pick {

class SessionTtl {
 public:
  virtual ~SessionTtl() = default;
  virtual std::uint64_t session_ttl_ms() const = 0;  // 0: it does not
  // The request attribute with the id, for requests without a session id; empty: none.
  virtual std::string session_header() const = 0;
};

}  // namespace pickd::pick
