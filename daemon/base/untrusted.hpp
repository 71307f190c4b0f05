// Untrusted<T>: a number that a peer wrote. Its only exits are checks.
//
// The value is private memory already (copied once); what is missing is the proof that it is in
// range.
#pragma once

#include <optional>

namespace pickd::base {

template <typename T>
class Untrusted {
 public:
  explicit constexpr Untrusted(T value) : value_(value) {}

  // The value if it is at most `limit`.
  constexpr std::optional<T> at_most(T limit) const {
    return value_ <= limit ? std::optional<T>(value_) : std::nullopt;
  }
  // The value if it lies in [low, high].
  constexpr std::optional<T> within(T low, T high) const {
    return value_ >= low && value_ <= high ? std::optional<T>(value_) : std::nullopt;
  }

 private:
  T value_;
};

}  // namespace pickd::base
