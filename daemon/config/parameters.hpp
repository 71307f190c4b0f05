// ParameterReader: the parameters of one plugin, asked for by name, type and range.
//
// Each getter returns the default when the parameter is absent. What is wrong (type, range, NaN) goes to
// `errors` with file and line, and the default is returned, so that one run finds everything. finish()
// refuses every parameter that nobody asked for. Not thread-safe; start-up and reload only.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/config/config.hpp"
#include "daemon/config/errors.hpp"

namespace pickd::config {

class ParameterReader {
 public:
  // Both must outlive the reader.
  ParameterReader(const PluginConfig& plugin, Errors& errors);

  bool has(std::string_view name) const;  // does not count as asking

  // Finite, in [low, high].
  double number(std::string_view name, double absent, double low, double high);
  std::uint64_t integer(std::string_view name, std::uint64_t absent, std::uint64_t low, std::uint64_t high);
  bool boolean(std::string_view name, bool absent);
  std::string text(std::string_view name, std::string_view absent);
  // One of `choices`.
  std::string choice(std::string_view name, std::string_view absent, const std::vector<std::string>& choices);
  std::vector<std::string> text_list(std::string_view name);
  // With a unit in the file ("500ms", "30min"); milliseconds here. [low_ms, high_ms].
  std::uint64_t duration_ms(std::string_view name, std::uint64_t absent_ms, std::uint64_t low_ms,
                            std::uint64_t high_ms);
  // Any shape, for the caller to walk; null when absent.
  Tree tree(std::string_view name);

  // A mistake that only the caller can see, put at the parameter's place.
  void refuse(std::string_view name, std::string_view what);
  void finish();

 private:
  const Node* ask(std::string_view name);
  std::string path(std::string_view name) const;

  const PluginConfig& plugin_;
  Errors& errors_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace pickd::config
