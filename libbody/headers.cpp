#include "libbody/headers.hpp"

#include <errno.h>

#include "libbody/limits.hpp"

namespace pickd::body {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool equal_nocase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

int Headers::set(const pickd_attribute* first, std::size_t count, std::size_t stride) {
  if (stride == 0) stride = sizeof(pickd_attribute);
  if ((first == nullptr && count != 0) || stride < sizeof(pickd_attribute) ||
      stride % alignof(pickd_attribute) != 0) {
    return -EINVAL;
  }
  first_ = reinterpret_cast<const char*>(first);
  count_ = count < kHeadersMax ? count : kHeadersMax;
  stride_ = stride;
  for (std::size_t i = 0; i < count_; ++i) {
    if (!is_slice(header(i).key) || !is_slice(header(i).value)) return -EINVAL;
  }
  return 0;
}

std::string_view Headers::find(std::string_view name) const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (equal_nocase(view(header(i).key), name)) return trimmed(view(header(i).value));
  }
  return {};
}

bool Headers::is_plain() const {
  const std::string_view encoding = find("content-encoding");
  return encoding.empty() || equal_nocase(encoding, "identity");
}

}  // namespace pickd::body
