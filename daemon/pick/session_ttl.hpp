// SessionTtl: a plugin that wants sessions remembered says for how long.
#pragma once

#include <cstdint>

namespace pickd::pick {

class SessionTtl {
 public:
  virtual ~SessionTtl() = default;
  virtual std::uint64_t session_ttl_ms() const = 0;
};

}  // namespace pickd::pick
