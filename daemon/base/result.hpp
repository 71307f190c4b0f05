// Result<T>: a value, or an error that says what happened and what would be right.
//
// Used wherever the daemon can go on after a failure. Exceptions are for start-up only.
#pragma once

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace pickd::base {

struct Error {
  int code = 0;      // a negative errno value
  std::string text;  // for people: what, where, and what would be right
};

// An error out of errno: "<what>: <words for errno>".
inline Error errno_error(const std::string& what) {
  const int code = errno;
  return {-code, what + ": " + std::strerror(code)};
}

template <typename T>
class [[nodiscard]] Result {
 public:
  // NOLINT: implicit on purpose
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return held_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() { return std::get<0>(held_); }
  const T& value() const { return std::get<0>(held_); }
  T& operator*() { return value(); }
  T* operator->() { return &value(); }
  const Error& error() const { return std::get<1>(held_); }

 private:
  std::variant<T, Error> held_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace pickd::base
