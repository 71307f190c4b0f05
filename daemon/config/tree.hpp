// Tree: a YAML document as it was written, every value with the place it came from.
//
// The only code that talks to yaml-cpp, and it takes events from it rather than its node graph: so
// that duplicate keys are seen, and what a hostile file can cost is bounded before anything is
// built. Knows nothing of settings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/base/result.hpp"

namespace pickd::config {

inline constexpr std::size_t kFileBytesMax = 1 << 20;
inline constexpr std::size_t kTreeDepthMax = 32;  // with every alias counted as what it stands for
inline constexpr std::size_t kMapKeysMax = 4096;
inline constexpr std::size_t kKeyBytesMax = 255;
inline constexpr std::size_t kTreeNodesMax =
    1 << 18;  // with every alias counted as what it stands for

// Where something was written: a file and a line from 1, or the name of an environment variable.
// Places never make two configurations differ.
struct Place {
  std::shared_ptr<const std::string> source;  // null: nowhere, a default
  std::uint32_t line = 0;                     // 0: an environment variable, or the file as a whole
  std::uint32_t column = 0;

  std::string text() const;  // "pickd.yaml:12", "PICKD_STATE_TTL", "default"
  friend bool operator==(const Place&, const Place&) { return true; }
};

struct Node;
using Tree = std::shared_ptr<const Node>;  // never changed once built; aliases share

struct Entry;

struct Node {
  enum class Kind : std::uint8_t { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  bool quoted = false;  // of a scalar: text for certain, so neither a number nor a boolean
  std::string scalar;
  std::vector<Tree> items;     // of a list
  std::vector<Entry> entries;  // of a map; keys are unique
  std::size_t nodes = 1;       // this one and all below
  std::size_t depth = 1;       // levels, this one included
  Place place;

  bool is_null() const { return kind == Kind::kNull; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }
  const Node* find(std::string_view key) const;  // null when it is no map or has no such key
};

struct Entry {
  std::string key;
  Place place;  // of the key
  Tree value;   // never null
};

// Equal in what they say; order of keys and places do not matter. Null pointers and empty maps are
// equal.
bool same_tree(const Tree& a, const Tree& b);

// Parses one document. `name` is the file's name for places. An empty document gives an empty map.
// Fails with "name:line: ..." on bad syntax, a duplicate key (naming both lines), a key that is no
// scalar, more than one document, and on what passes the limits above.
base::Result<Tree> parse_tree(std::string_view text, const std::string& name);

// Reads a file and parses it. Fails with -ENOENT and friends, -EFBIG over kFileBytesMax, -EINVAL.
base::Result<Tree> read_tree(const std::string& path);

}  // namespace pickd::config
