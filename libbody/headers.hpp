// The few headers that are read, of requests and of answers. Names in any case, the first of a name
// counts.
#pragma once

#include <cstddef>
#include <string_view>

#include "pickd/pickd.h"

namespace pickd::body {

inline bool is_slice(const pickd_slice& slice) { return slice.data != nullptr || slice.size == 0; }
inline std::string_view view(const pickd_slice& slice) {
  return slice.size == 0 ? std::string_view()
                         : std::string_view(static_cast<const char*>(slice.data), slice.size);
}
inline pickd_slice slice(std::string_view text) { return {text.data(), text.size()}; }

bool equal_nocase(std::string_view a, std::string_view b);
std::string_view trimmed(std::string_view text);

class Headers {
 public:
  // -EINVAL: a NULL where there is a size, or a bad stride.
  int set(const pickd_attribute* first, std::size_t count, std::size_t stride);
  // Without blanks around it; empty where it is not there.
  std::string_view find(std::string_view name) const;
  // It is not there, or says that the bytes are as they are.
  bool is_plain() const;

 private:
  const pickd_attribute& header(std::size_t index) const {
    return *reinterpret_cast<const pickd_attribute*>(first_ + index * stride_);
  }
  const char* first_ = nullptr;
  std::size_t count_ = 0;
  std::size_t stride_ = sizeof(pickd_attribute);
};

}  // namespace pickd::body
