// Errors: what is wrong with a configuration, all of it, each with its place and what would be
// right.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/config/tree.hpp"

namespace pickd::config {

inline constexpr std::size_t kErrorsShownMax = 20;

class Errors {
 public:
  // `key` is the path of the setting ("state.ttl", "endpoints[2].address"), empty for the whole
  // file.
  void add(const Place& place, std::string_view key, std::string_view what);
  void add(std::string line);  // a finished line

  bool empty() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  // One line each, "pickd.yaml:12: state.ttl: ..."; after kErrorsShownMax "and 7 more".
  std::string text() const;

 private:
  std::vector<std::string> lines_;
  std::size_t count_ = 0;
};

// The known word that `word` was most likely meant to be; empty when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// " (did you mean `ttl`?)", or the known words when none is near: "; known: path, ttl".
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

// A stranger's text with its control characters escaped, as `\x1b`: it may go to a terminal.
std::string escaped(std::string_view text);

// What a value looked like, for a message: in quotes, at most 60 bytes, control characters escaped.
std::string shown(std::string_view value);

}  // namespace pickd::config
