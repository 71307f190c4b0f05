// MapReader: one map of a tree, asked for by key, type and range.
//
// Each getter returns the default when the key is absent. What is wrong (type, range, NaN) goes to
// `errors` with file, line and key path, and the default is returned, so that one run finds
// everything. finish() refuses every key that nobody asked for. Not thread-safe; start-up and
// reload only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/config/errors.hpp"
#include "daemon/config/tree.hpp"

namespace pickd::config {

inline constexpr std::size_t kTextBytesMax = 4096;
inline constexpr std::size_t kListItemsMax = 4096;

class MapReader {
 public:
  // `map` may be null or a null node: nothing is set. Anything but a map is refused here. `key` is
  // its path ("endpoints[2]"), `place` where it stands. `map` and `errors` must outlive the reader.
  MapReader(const Node* map, std::string key, Place place, Errors& errors);

  bool has(std::string_view name) const;  // does not count as asking

  // Finite, in [low, high].
  double number(std::string_view name, double absent, double low, double high);
  std::uint64_t integer(std::string_view name, std::uint64_t absent, std::uint64_t low,
                        std::uint64_t high);
  bool boolean(std::string_view name, bool absent);
  // No control characters; `bytes_min` 0 allows the empty text.
  std::string text(std::string_view name, std::string_view absent, std::size_t bytes_min = 0,
                   std::size_t bytes_max = kTextBytesMax);
  // As text(), but it must be there.
  std::string required_text(std::string_view name, std::size_t bytes_min, std::size_t bytes_max);
  // One of `choices`.
  std::string choice(std::string_view name, std::string_view absent,
                     const std::vector<std::string>& choices);
  std::vector<std::string> text_list(std::string_view name, std::size_t items_max = kListItemsMax,
                                     std::size_t bytes_max = kTextBytesMax);
  // Key and value, in the order of the file.
  std::vector<std::pair<std::string, std::string>> text_map(std::string_view name,
                                                            std::size_t items_max,
                                                            std::size_t bytes_max);
  // With a unit in the file ("500ms", "30min"); milliseconds here. [low_ms, high_ms].
  std::uint64_t duration_ms(std::string_view name, std::uint64_t absent_ms, std::uint64_t low_ms,
                            std::uint64_t high_ms);
  // Any shape, for the caller to walk; null when absent.
  Tree tree(std::string_view name);
  // The nodes of a list, at most `items_max`; empty when absent.
  std::vector<Tree> list(std::string_view name, std::size_t items_max);
  // A reader of the map below `name`; call its finish() too.
  MapReader map(std::string_view name);

  // A mistake that only the caller can see, put at the key's place; without a name, at the map's.
  void refuse(std::string_view name, std::string_view what);
  void finish();

  std::string path(std::string_view name) const;
  Place place_of(std::string_view name) const;

 private:
  const Entry* ask(std::string_view name);
  const Entry* find(std::string_view name) const;
  // The scalar asked for; nothing when absent or refused. `number` refuses quoted text.
  std::optional<std::string> scalar(std::string_view name, bool number);
  bool good_text(const Node& node, const std::string& key, std::size_t bytes_min,
                 std::size_t bytes_max);

  const Node* map_;
  std::string key_;
  Place place_;
  Errors& errors_;
  std::vector<std::string> asked_;
};

}  // namespace pickd::config
