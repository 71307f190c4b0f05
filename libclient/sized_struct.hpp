// Reading the structs of pickd.h that begin with their own size: a caller may be built against an
// older or a newer header than this library.
#pragma once

#include <errno.h>
#include <string.h>

#include <cstddef>

namespace pickd::client {

// More than any struct of any header: a size above it is garbage, and nothing is read.
inline constexpr std::size_t kStructBytesMax = 4096;

// Copies what both sides know. What only the caller knows must be zero, or an option would be lost.
// -EINVAL: shorter than the first version of the struct. -E2BIG: a field that this library lacks is
// set.
template <typename T>
int read_sized(const T* in, std::size_t first_version_bytes, T* out) {
  const std::size_t size = in->struct_size;
  if (size < first_version_bytes) return -EINVAL;
  if (size > kStructBytesMax) return -E2BIG;
  const auto* bytes = reinterpret_cast<const unsigned char*>(in);
  for (std::size_t at = sizeof(T); at < size; ++at) {
    if (bytes[at] != 0) return -E2BIG;
  }
  ::memcpy(out, in, size < sizeof(T) ? size : sizeof(T));
  return 0;
}

// The same without the copy where the caller has all that this library knows: a copy of what was
// just written in small pieces would wait for them. `copy` is for a caller of an older header.
template <typename T>
int view_sized(const T* in, std::size_t first_version_bytes, T* copy, const T** out) {
  if (in->struct_size == sizeof(T)) {
    *out = in;
    return 0;
  }
  const int code = read_sized(in, first_version_bytes, copy);
  *out = copy;
  return code;
}

// The number in an enum that a caller of the C API filled: any int may stand there, and a C++ enum
// may not hold any int.
template <typename Enum>
int enum_number(const Enum& value) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number;
  ::memcpy(&number, &value, sizeof number);
  return number;
}

}  // namespace pickd::client
