// Topology: an immutable picture of the endpoints for the workers: who serves which model, under
// which names. The control thread builds a new one for each change; load and health are not in it,
// those are words in the endpoint records.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "abi/state_layout.hpp"

namespace pickd::endpoints {

struct TopologyEndpoint {
  std::uint16_t id = 0;          // 0: this entry is unused
  std::uint32_t generation = 0;  // when this picture was made; the record has the newest
  // of the record's name and address: another one is another engine
  std::uint32_t text_version = 0;
  abi::Role role = abi::Role::kBoth;
  std::uint16_t latency_class = 0;  // endpoints of one class share learned rates
  std::string name;
  std::string address;
  std::string pool;
  std::string source;
  std::vector<std::string> models;
  std::vector<std::pair<std::string, std::string>> labels;
  std::vector<std::string> adapters_active;    // for status answers
  std::string metrics_url;                     // empty: http://<address>/metrics
  std::string engine;                          // whose metrics they are; empty: detected
  std::uint32_t rank = abi::kUnknown32;        // among those behind one metrics page
  std::vector<std::uint16_t> more_ports = {};  // of further ranks, each with a page of its own
  std::uint64_t capacity_blocks = 0;  // as its source told it; 0: not told, or not yet again

  // As its source said last; not in the routing snapshot, so nothing after a restart.
  std::optional<bool> draining = {};
  std::string incarnation = {};

  // The value of a label, or nullptr.
  const std::string* label(std::string_view key) const {
    for (const auto& [name_of_label, value] : labels) {
      if (name_of_label == key) return &value;
    }
    return nullptr;
  }
};

class Topology {
 public:
  // `endpoints` in order of id; unused ids are left out.
  explicit Topology(std::vector<TopologyEndpoint> endpoints);

  const std::vector<TopologyEndpoint>& endpoints() const { return endpoints_; }
  // What every pick reads of every candidate, side by side: an endpoint itself is many lines.
  struct Brief {
    std::uint32_t text_version = 0;
    std::uint16_t latency_class = 0;
    static constexpr std::uint16_t kNowhere = 0xFFFF;
    std::uint16_t at = kNowhere;  // in endpoints()
  };
  // Of an id that candidates() names.
  const Brief& brief(std::uint32_t id) const { return briefs_[id]; }
  // The endpoint of an id, or nullptr.
  const TopologyEndpoint* find(std::uint32_t id) const {
    return id < briefs_.size() && briefs_[id].at != Brief::kNowhere ? &endpoints_[briefs_[id].at]
                                                                    : nullptr;
  }
  const TopologyEndpoint* find_name(std::string_view name) const;

  // Ids of the endpoints that serve `model` (an empty name: of all). nullptr: nobody serves it.
  const std::vector<std::uint16_t>* candidates(std::string_view model) const;

  // Calls `take(id)` for each endpoint whose name or address is `text`.
  template <typename Take>
  void for_each_named(std::string_view text, Take take) const {
    const auto [from, to] = by_text_.equal_range(text);
    for (auto at = from; at != to; ++at) take(at->second);
  }

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  template <typename Value>
  using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

  std::vector<TopologyEndpoint> endpoints_;
  std::vector<Brief> briefs_;  // by id
  TextMap<std::vector<std::uint16_t>> by_model_;
  std::vector<std::uint16_t> all_;
  std::vector<std::uint16_t> any_model_;  // those that list no models
  std::unordered_multimap<std::string, std::uint16_t, TextHash, std::equal_to<>> by_text_;
};

}  // namespace pickd::endpoints
