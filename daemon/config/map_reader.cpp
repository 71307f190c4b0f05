#include "daemon/config/map_reader.hpp"

#include <algorithm>

#include "daemon/config/values.hpp"

namespace pickd::config {
namespace {

constexpr std::uint64_t kMsInNs = 1'000'000;

std::string found(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull: return "has no value; leave the key out for the default";
    case Node::Kind::kList: return "is a list";
    case Node::Kind::kMap: return "is a map";
    case Node::Kind::kScalar: return "is " + shown(node.scalar);
  }
  return "";
}

}  // namespace

MapReader::MapReader(const Node* map, std::string key, Place place, Errors& errors)
    : map_(map), key_(std::move(key)), place_(std::move(place)), errors_(errors) {
  if (map_ == nullptr || map_->is_map()) return;
  if (!map_->is_null()) errors_.add(place_, key_, "must be a map (`key: value`), " + found(*map_));
  map_ = nullptr;
}

std::string MapReader::path(std::string_view name) const {
  if (key_.empty() || name.empty()) return key_ + std::string(name);
  return key_ + "." + std::string(name);
}

Place MapReader::place_of(std::string_view name) const {
  const Entry* entry = find(name);
  return entry == nullptr ? place_ : entry->place;
}

const Entry* MapReader::find(std::string_view name) const {
  if (map_ == nullptr) return nullptr;
  const auto entry = std::find_if(map_->entries.begin(), map_->entries.end(),
                                  [name](const Entry& candidate) { return candidate.key == name; });
  return entry == map_->entries.end() ? nullptr : &*entry;
}

const Entry* MapReader::ask(std::string_view name) {
  if (std::find(asked_.begin(), asked_.end(), name) == asked_.end()) asked_.emplace_back(name);
  return find(name);
}

bool MapReader::has(std::string_view name) const { return find(name) != nullptr; }

std::optional<std::string> MapReader::scalar(std::string_view name, bool number) {
  const Entry* entry = ask(name);
  if (entry == nullptr) return std::nullopt;
  const Node& node = *entry->value;
  if (!node.is_scalar()) {
    refuse(name, std::string("must be a single value, ") + found(node));
    return std::nullopt;
  }
  if (number && node.quoted &&
      node.scalar.find_first_not_of("0123456789.+-") == std::string::npos) {
    refuse(name, "is text, " + shown(node.scalar) + "; write the number without quotes");
    return std::nullopt;
  }
  return node.scalar;
}

double MapReader::number(std::string_view name, double absent, double low, double high) {
  const auto text = scalar(name, true);
  if (!text) return absent;
  const auto value = parse_number(*text, low, high);
  if (!value) refuse(name, value.error().text);
  return value ? value.value() : absent;
}

std::uint64_t MapReader::integer(std::string_view name, std::uint64_t absent, std::uint64_t low,
                                 std::uint64_t high) {
  const auto text = scalar(name, true);
  if (!text) return absent;
  const auto value = parse_integer(*text, {low, high, false}, "");
  if (!value) refuse(name, value.error().text);
  return value ? value.value() : absent;
}

bool MapReader::boolean(std::string_view name, bool absent) {
  const auto text = scalar(name, true);
  if (!text) return absent;
  const auto value = parse_boolean(*text);
  if (!value) refuse(name, value.error().text);
  return value ? value.value() : absent;
}

bool MapReader::good_text(const Node& node, const std::string& key, std::size_t bytes_min,
                          std::size_t bytes_max) {
  std::string wrong;
  if (!node.is_scalar()) {
    wrong = "must be text, " + found(node);
  } else if (node.scalar.size() < bytes_min || node.scalar.size() > bytes_max) {
    wrong = "must have " + std::to_string(bytes_min) + " to " + std::to_string(bytes_max) +
            " bytes, has " + std::to_string(node.scalar.size());
  } else if (std::any_of(node.scalar.begin(), node.scalar.end(), [](char letter) {
               return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F;
             })) {
    wrong = "must not hold control characters, is " + shown(node.scalar);
  }
  if (!wrong.empty()) errors_.add(node.place, key, wrong);
  return wrong.empty();
}

std::string MapReader::text(std::string_view name, std::string_view absent, std::size_t bytes_min,
                            std::size_t bytes_max) {
  const Entry* entry = ask(name);
  if (entry == nullptr || !good_text(*entry->value, path(name), bytes_min, bytes_max))
    return std::string(absent);
  return entry->value->scalar;
}

std::string MapReader::required_text(std::string_view name, std::size_t bytes_min,
                                     std::size_t bytes_max) {
  if (map_ != nullptr && !has(name))
    errors_.add(place_, path(name), "is missing; every entry needs it");
  return text(name, "", bytes_min, bytes_max);
}

std::string MapReader::choice(std::string_view name, std::string_view absent,
                              const std::vector<std::string>& choices) {
  const auto text = scalar(name, false);
  if (!text) return std::string(absent);
  if (std::find(choices.begin(), choices.end(), *text) != choices.end()) return *text;
  std::string list;
  for (const std::string& word : choices) list += (list.empty() ? "" : ", ") + word;
  refuse(name, "must be one of " + list + ", is " + shown(*text));
  return std::string(absent);
}

std::vector<std::string> MapReader::text_list(std::string_view name, std::size_t items_max,
                                              std::size_t bytes_max) {
  std::vector<std::string> out;
  const std::vector<Tree> items = list(name, items_max);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string key = path(name) + "[" + std::to_string(i) + "]";
    if (good_text(*items[i], key, 1, bytes_max)) out.push_back(items[i]->scalar);
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> MapReader::text_map(std::string_view name,
                                                                     std::size_t items_max,
                                                                     std::size_t bytes_max) {
  std::vector<std::pair<std::string, std::string>> out;
  const Entry* entry = ask(name);
  if (entry == nullptr || entry->value->is_null()) return out;
  if (!entry->value->is_map()) {
    refuse(name, "must be a map (`key: value`), " + found(*entry->value));
    return out;
  }
  if (entry->value->entries.size() > items_max) {
    refuse(name, "must have at most " + std::to_string(items_max) + " keys, has " +
                     std::to_string(entry->value->entries.size()));
    return out;
  }
  for (const Entry& item : entry->value->entries) {
    const std::string key = path(name) + "." + item.key;
    if (item.key.empty() || item.key.size() > bytes_max) {
      errors_.add(item.place, path(name),
                  "keys must have 1 to " + std::to_string(bytes_max) + " bytes");
    } else if (good_text(*item.value, key, 0, bytes_max)) {
      out.emplace_back(item.key, item.value->scalar);
    }
  }
  return out;
}

std::uint64_t MapReader::duration_ms(std::string_view name, std::uint64_t absent_ms,
                                     std::uint64_t low_ms, std::uint64_t high_ms) {
  const auto text = scalar(name, false);
  if (!text) return absent_ms;
  const auto value = parse_duration(*text, kMsInNs, {low_ms, high_ms, false});
  if (!value) refuse(name, value.error().text);
  return value ? value.value() : absent_ms;
}

Tree MapReader::tree(std::string_view name) {
  const Entry* entry = ask(name);
  return entry == nullptr ? nullptr : entry->value;
}

std::vector<Tree> MapReader::list(std::string_view name, std::size_t items_max) {
  const Entry* entry = ask(name);
  if (entry == nullptr || entry->value->is_null()) return {};
  if (!entry->value->is_list()) {
    refuse(name, "must be a list, " + found(*entry->value));
    return {};
  }
  if (entry->value->items.size() > items_max) {
    refuse(name, "must have at most " + std::to_string(items_max) + " entries, has " +
                     std::to_string(entry->value->items.size()));
    return {};
  }
  return entry->value->items;
}

MapReader MapReader::map(std::string_view name) {
  const Entry* entry = ask(name);
  return {entry == nullptr ? nullptr : entry->value.get(), path(name), place_of(name), errors_};
}

void MapReader::refuse(std::string_view name, std::string_view what) {
  errors_.add(place_of(name), path(name), what);
}

void MapReader::finish() {
  if (map_ == nullptr) return;
  for (const Entry& entry : map_->entries) {
    if (std::find(asked_.begin(), asked_.end(), entry.key) != asked_.end()) continue;
    std::string key = entry.key.size() > 60 ? entry.key.substr(0, 60) + "..." : entry.key;
    errors_.add(entry.place, path(key), "unknown key" + suggestion(entry.key, asked_));
  }
}

}  // namespace pickd::config
