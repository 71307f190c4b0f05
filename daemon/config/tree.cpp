#include "daemon/config/tree.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>

#include "daemon/base/fd.hpp"
#include "daemon/config/errors.hpp"

namespace pickd::config {
namespace {

// Leaves the parser; caught in parse_tree and nowhere else.
struct Refusal {
  std::string text;
};

// What can be written without quotes anywhere in YAML. Numbers and booleans are words; any other
// text counts as quoted however it was written, so that printing and reading again cannot change
// what it is.
bool is_word(const std::string& text) {
  return !text.empty() && text.find_first_not_of(
                              "0123456789abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ._+-") == std::string::npos;
}

// Builds the tree from the parser's events. A map under construction keeps its pending key in
// `key`.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::shared_ptr<const std::string> source) : source_(std::move(source)) {}

  Tree root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "a second YAML document (`---`); one file holds one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto node = std::make_shared<Node>();
    // The parser's mark of nothing is wherever the next thing begins.
    const bool after_key = !levels_.empty() && levels_.back().has_key;
    node->place = after_key ? levels_.back().key_place : place(mark);
    finish(std::move(node), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    auto node = std::make_shared<Node>();
    node->kind = Node::Kind::kScalar;
    node->quoted = tag == "!" || !is_word(value);
    node->scalar = value;
    node->place = place(mark);
    finish(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    // An alias inside its own anchor is met before the anchored value is finished.
    if (known == anchors_.end()) refuse(mark, "an alias (`*`) that stands inside its own anchor");
    put(known->second, place(mark));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    check_tag(mark, tag);
    open(Node::Kind::kList, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    check_tag(mark, tag);
    open(Node::Kind::kMap, mark, anchor);
  }
  void OnMapEnd() override { close(); }

  std::string at(const YAML::Mark& mark) const { return place(mark).text(); }

 private:
  struct Level {
    std::shared_ptr<Node> node;
    YAML::anchor_t anchor = 0;
    bool has_key = false;
    std::string key;
    Place key_place;
    std::unordered_map<std::string, std::uint32_t> lines;  // of the keys so far
  };

  Place place(const YAML::Mark& mark) const {
    return {source_, static_cast<std::uint32_t>(mark.line + 1),
            static_cast<std::uint32_t>(mark.column + 1)};
  }

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& what) const {
    refuse(place(mark), what);
  }
  [[noreturn]] void refuse(const Place& where, const std::string& what) const {
    throw Refusal{where.text() + ": " + what};
  }

  [[noreturn]] void refuse_depth(const Place& where) const {
    refuse(where, "nested deeper than " + std::to_string(kTreeDepthMax) + " levels");
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!")
      refuse(mark, "a YAML tag (`" + tag + "`); there are none here");
  }

  void open(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (levels_.size() >= kTreeDepthMax) refuse_depth(place(mark));
    Level level;
    level.node = std::make_shared<Node>();
    level.node->kind = kind;
    level.node->place = place(mark);
    level.anchor = anchor;
    levels_.push_back(std::move(level));
  }

  void close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    finish(std::move(level.node), level.anchor);
  }

  void finish(std::shared_ptr<Node> node, YAML::anchor_t anchor) {
    Tree done = std::move(node);
    if (anchor != 0) anchors_[anchor] = done;
    const Place where = done->place;
    put(std::move(done), where);
  }

  // Hangs a finished value under the innermost open one; `where` is where it is used.
  void put(Tree value, const Place& where) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return;
    }
    Level& level = levels_.back();
    if (level.node->is_map() && !level.has_key) {
      take_key(level, *value, where);
      return;
    }
    // What walks the tree recurses, and aliases can nest deeper than the text does.
    if (levels_.size() + value->depth > kTreeDepthMax + 1) refuse_depth(where);
    level.node->depth = std::max(level.node->depth, value->depth + 1);
    // Counted at every level, so that aliases of aliases cannot stand for more than the limit.
    level.node->nodes += value->nodes;
    if (level.node->nodes > kTreeNodesMax) {
      refuse(where, "more than " + std::to_string(kTreeNodesMax) +
                        " values, aliases counted as what they stand for");
    }
    if (level.node->is_list()) {
      level.node->items.push_back(std::move(value));
      return;
    }
    level.node->entries.push_back({std::move(level.key), level.key_place, std::move(value)});
    level.has_key = false;
  }

  void take_key(Level& level, const Node& key, const Place& where) {
    if (level.lines.size() >= kMapKeysMax)
      refuse(where, "more than " + std::to_string(kMapKeysMax) + " keys in one map");
    if (!key.is_scalar()) refuse(where, "a key that is not a plain word");
    if (key.scalar.size() > kKeyBytesMax) {
      refuse(where, "a key of more than " + std::to_string(kKeyBytesMax) + " bytes");
    }
    if (key.scalar == "<<")
      refuse(where, "a merge key (`<<`); write the values out or use an alias");
    const auto [before, added] = level.lines.emplace(key.scalar, where.line);
    if (!added) {
      refuse(where, "the key " + shown(key.scalar) + " stands here a second time; first on line " +
                        std::to_string(before->second));
    }
    level.key = key.scalar;
    level.key_place = where;
    level.has_key = true;
  }

  std::shared_ptr<const std::string> source_;
  std::vector<Level> levels_;
  std::unordered_map<YAML::anchor_t, Tree> anchors_;
  Tree root_;
  int documents_ = 0;
};

}  // namespace

std::string Place::text() const {
  if (!source) return "default";
  return line == 0 ? *source : *source + ":" + std::to_string(line);
}

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return entry.value.get();
  }
  return nullptr;
}

bool same_tree(const Tree& a, const Tree& b) {
  const auto is_nothing = [](const Tree& tree) {
    return !tree || tree->is_null() || (tree->is_map() && tree->entries.empty());
  };
  if (is_nothing(a) || is_nothing(b)) return is_nothing(a) && is_nothing(b);
  if (a->kind != b->kind || a->scalar != b->scalar || a->quoted != b->quoted) return false;
  if (a->items.size() != b->items.size() || a->entries.size() != b->entries.size()) return false;
  for (std::size_t i = 0; i < a->items.size(); ++i) {
    if (!same_tree(a->items[i], b->items[i])) return false;
  }
  return std::all_of(a->entries.begin(), a->entries.end(), [&b](const Entry& entry) {
    const auto other =
        std::find_if(b->entries.begin(), b->entries.end(),
                     [&entry](const Entry& candidate) { return candidate.key == entry.key; });
    return other != b->entries.end() && same_tree(entry.value, other->value);
  });
}

base::Result<Tree> parse_tree(std::string_view text, const std::string& name) {
  if (text.size() > kFileBytesMax) {
    return base::Error{-EFBIG, name + ": larger than " + std::to_string(kFileBytesMax) + " bytes"};
  }
  TreeBuilder builder(std::make_shared<const std::string>(name));
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refusal& refusal) {
    return base::Error{-EINVAL, refusal.text};
  } catch (const YAML::Exception& failure) {
    return base::Error{-EINVAL, builder.at(failure.mark) + ": not YAML: " + failure.msg};
  }
  if (builder.root() && !builder.root()->is_null()) return builder.root();
  auto nothing = std::make_shared<Node>();
  nothing->kind = Node::Kind::kMap;
  nothing->place = {std::make_shared<const std::string>(name), 1, 1};
  return Tree(std::move(nothing));
}

base::Result<Tree> read_tree(const std::string& path) {
  const base::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return base::errno_error(path);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return base::errno_error(path);
  // A pipe or a device could keep the daemon waiting for ever, or never end.
  if (!S_ISREG(about.st_mode)) return base::Error{-EINVAL, path + ": not a regular file"};

  std::string text;
  char piece[16384];
  while (text.size() <= kFileBytesMax) {
    const ssize_t got = ::read(file.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::errno_error(path);
    if (got == 0) break;
    text.append(piece, static_cast<std::size_t>(got));
  }
  return parse_tree(text, path);
}

}  // namespace pickd::config
