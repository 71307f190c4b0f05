// What a plugin is. A new one is a file of its own in scorers/, filters/, pickers/, handlers/,
// detectors/ or sources/ with a class and its description, and one line in plugins.def.
//
// Plugins are shared by all workers: after they are made nothing in them changes but atomics.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/random.hpp"
#include "daemon/endpoints/topology.hpp"
#include "daemon/pick/columns.hpp"
#include "daemon/pick/request.hpp"

namespace pickd::pick {

class Parameters;

// What plugins say of a pick beside their scores.
struct PickNotes {
  bool unpredicted = false;  // a composite of load and prefix stood in for predictions
};

// What a plugin may know of a pick. Nothing in it outlives the pick.
struct PickContext {
  const PickRequest& request;
  const endpoints::Topology& topology;
  const Candidates& candidates;
  std::uint64_t tick;    // of the store's clock
  base::Random& random;  // of the worker
  // What was picked for the same request before: the decode endpoint while a prefill endpoint is
  // looked for. nullptr otherwise.
  const endpoints::TopologyEndpoint* peer = nullptr;
  PickNotes* notes = nullptr;  // nullptr: nobody wants to know
};

// A scorer leaves this where it knows nothing of a candidate: the candidate keeps its sum.
inline constexpr float kNoScore = -std::numeric_limits<float>::infinity();

class Plugin {
 public:
  virtual ~Plugin() = default;
  // The columns this instance reads, of those `declared` for its type.
  virtual ColumnSet columns(ColumnSet declared) const { return declared; }
};

// A plugin may be several of these at once.
class Scorer : public virtual Plugin {
 public:
  // Writes a score per candidate; what is outside 0..1 is clamped, NaN is left out and counted.
  // `scores` holds kNoScore everywhere at the call. False: it failed, and is left out of this pick.
  virtual bool score(const PickContext& context, std::span<float> scores) const = 0;
};

class Filter : public virtual Plugin {
 public:
  virtual bool filters() const { return true; }  // false: this instance never drops anybody
  // Sets keep[i] to 0 for candidates to be dropped; all are 1 at the call.
  virtual void filter(const PickContext& context, std::span<std::uint8_t> keep) const = 0;
};

// The order a picker found: indices into the candidates, best first.
struct Ranking {
  std::uint16_t order[abi::kResultEndpointsMax];
  std::uint32_t count = 0;
  std::uint32_t ties = 1;  // candidates that share the first place; 0: ranked without scores
};

class Picker : public virtual Plugin {
 public:
  // Orders up to `wanted` of the candidates (at least one) by their sums, or by a rule of its own.
  virtual void rank(const PickContext& context, std::span<const double> sums, std::uint32_t wanted,
                    Ranking& ranking) = 0;
};

// Is told of each pick that was answered; never of dry runs. Any worker, after the answer is out.
class PickMemory : public virtual Plugin {
 public:
  virtual void remember(const PickRequest& request, std::uint16_t winner,
                        std::uint32_t match_blocks) = 0;
};

enum class PluginKind : std::uint8_t {
  kScorer,
  kFilter,
  kPicker,
  kHandler,   // which profiles a request runs
  kDecider,   // whether a request is split into prefill and decode
  kDetector,  // whether a pool is saturated; may stand in a profile as a filter too
  kAdmitter,  // whether a request is served at all
  kSource,    // settings of what fills the columns
};
const char* kind_name(PluginKind kind);
// Whether a profile may refer to plugins of this kind.
constexpr bool stands_in_profiles(PluginKind kind) {
  return kind == PluginKind::kScorer || kind == PluginKind::kFilter ||
         kind == PluginKind::kPicker || kind == PluginKind::kDetector;
}

enum class ParameterKind : std::uint8_t {
  kNumber,
  kInteger,
  kBoolean,
  kText,
  kChoice,
  kDuration,
  kReference,  // the name of another plugin of the configuration, or the type of one that pickd
               // makes by itself
  kTree,       // a list or map that the plugin reads by itself
};

// A parameter as it is documented, checked and read. `name` may have dots: maps inside the map.
struct ParameterInfo {
  std::string_view name;
  ParameterKind kind;
  std::string_view absent;  // the default, as one would write it; "": nothing
  double low = 0;           // range of numbers; milliseconds of durations; bytes of text
  double high = 0;
  std::string_view choices{};  // "a|b|c"
  std::string_view help{};
  bool required = false;
};

struct PluginInfo {
  std::string_view type;
  PluginKind kind;
  ColumnSet columns;         // that it reads
  std::string_view summary;  // one sentence for the documents
  std::string_view formula;  // how a score comes about, and where the rule is from
  std::vector<ParameterInfo> parameters;
  std::unique_ptr<Plugin> (*make)(Parameters& parameters);
  bool predictions_alone = false;  // where nothing is predicted it has nothing to go by
};

// The registry, made from plugins.def.
std::span<const PluginInfo> plugin_infos();
const PluginInfo* find_plugin(std::string_view type);

}  // namespace pickd::pick
