// What a plugin is. A new one is a class of its own in scorers/, filters/ or pickers/ and one line
// in plugins.def: type, columns it reads, words for the documents, how it is made.
//
// Plugins are shared by all workers: after they are made nothing in them changes but atomics.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "daemon/base/random.hpp"
#include "daemon/endpoints/topology.hpp"
#include "daemon/pick/columns.hpp"
#include "daemon/pick/request.hpp"

namespace pickd::config {
class ParameterReader;
}

namespace pickd::pick {

// What a plugin may know of a pick. Nothing in it outlives the pick.
struct PickContext {
  const PickRequest& request;
  const endpoints::Topology& topology;
  const Candidates& candidates;
  std::uint64_t tick;    // of the store's clock
  base::Random& random;  // of the worker
};

// A scorer leaves this where it knows nothing of a candidate: the candidate keeps its sum.
inline constexpr float kNoScore = -std::numeric_limits<float>::infinity();

class Plugin {
 public:
  virtual ~Plugin() = default;
};

class Scorer : public Plugin {
 public:
  // Writes a score per candidate; what is outside 0..1 is clamped, NaN is left out and counted.
  // `scores` holds kNoScore everywhere at the call. False: it failed, and is left out of this pick.
  virtual bool score(const PickContext& context, std::span<float> scores) const = 0;
};

class Filter : public Plugin {
 public:
  // Sets keep[i] to 0 for candidates to be dropped; all are 1 at the call.
  virtual void filter(const PickContext& context, std::span<std::uint8_t> keep) const = 0;
};

// The order a picker found: indices into the candidates, best first.
struct Ranking {
  std::uint16_t order[abi::kResultEndpointsMax];
  std::uint32_t count = 0;
  std::uint32_t ties = 1;  // candidates that share the first place; 0: ranked without scores
};

class Picker : public Plugin {
 public:
  // Orders up to `wanted` of the candidates (at least one) by their sums, or by a rule of its own.
  virtual void rank(const PickContext& context, std::span<const double> sums, std::uint32_t wanted,
                    Ranking& ranking) = 0;
};

enum class PluginKind : std::uint8_t { kScorer, kFilter, kPicker };

struct PluginInfo {
  std::string_view type;
  PluginKind kind;
  ColumnSet columns;         // that it reads
  std::string_view summary;  // one sentence for the documents
  std::string_view formula;  // how a score comes about, with its source
  std::unique_ptr<Plugin> (*make)(config::ParameterReader& parameters);
};

// The registry, made from plugins.def.
std::span<const PluginInfo> plugin_infos();
const PluginInfo* find_plugin(std::string_view type);

}  // namespace pickd::pick
