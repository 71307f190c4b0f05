// Structs of body.h and pickd.h that begin with their own size: a caller may be built against an
// older or a newer header than this library.
#pragma once

#include <errno.h>

#include <cstddef>
#include <cstring>

namespace pickd::body {

// More than any struct of any header: a size above it is garbage, and nothing is read.
inline constexpr std::size_t kStructBytesMax = 4096;

// Copies what both sides know. What only the caller knows must be zero, or an option would be lost.
template <typename T>
int read_sized(const T* in, T* out) {
  const std::size_t size = in->struct_size;
  if (size < sizeof(T)) return -EINVAL;  // of the first version: there is no shorter one yet
  if (size > kStructBytesMax) return -E2BIG;
  const auto* bytes = reinterpret_cast<const unsigned char*>(in);
  for (std::size_t at = sizeof(T); at < size; ++at) {
    if (bytes[at] != 0) return -E2BIG;
  }
  std::memcpy(out, in, sizeof(T));
  return 0;
}

// Fills what the caller's struct has room for, and leaves its size as it is.
template <typename T>
int write_sized(const T& from, T* out) {
  const std::size_t size = out->struct_size;
  if (size <= sizeof(std::size_t) || size > kStructBytesMax) return -EINVAL;
  std::memcpy(out, &from, size < sizeof(T) ? size : sizeof(T));
  out->struct_size = size;
  return 0;
}

}  // namespace pickd::body
