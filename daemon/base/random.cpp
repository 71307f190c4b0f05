#include "daemon/base/random.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

namespace pickd::base {

void random_bytes(void* bytes, std::size_t size) {
  auto* at = static_cast<unsigned char*>(bytes);
  while (size != 0) {
    const ssize_t got = ::getrandom(at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) std::abort();
    at += got;
    size -= static_cast<std::size_t>(got);
  }
}

std::uint64_t random_u64() {
  std::uint64_t value;
  random_bytes(&value, sizeof value);
  return value;
}

}  // namespace pickd::base
