// chwbl: consistent hashing with bounded loads. The prompt's beginning has an order of preference
// over the endpoints; the first whose load is within the bound takes it, and the least loaded when
// nobody is. The order is by highest random weight in place of a ring with virtual nodes: the same
// promise (few keys move when an endpoint comes or goes) with even shares.
// Source: github.com/substratusai/kubeai, PrefixHash strategy (load factor 1.25), after Mirrokni,
// Thorup, Zadimoghaddam, "Consistent Hashing with Bounded Loads", 2016.
#include <algorithm>

#include "abi/key.hpp"
#include "daemon/pick/builtin_profiles.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

config::SchedulingConfig make_chwbl_policy();

namespace {

class ChwblPicker final : public Picker {
 public:
  ChwblPicker(std::uint64_t prefix_blocks, double load_factor)
      : prefix_blocks_(prefix_blocks), load_factor_(load_factor) {}

  void rank(const PickContext& context, std::span<const double> sums, std::uint32_t wanted,
            Ranking& ranking) override {
    const auto load = context.candidates.column(Column::kInflightRequests);
    const std::uint64_t key = key_of(context);
    double total = 1;  // this request too
    for (const float requests : load) total += static_cast<double>(requests);
    const double bound = load_factor_ * total / static_cast<double>(sums.size());
    Entry best[abi::kResultEndpointsMax + 1];
    std::uint32_t count = 0;
    wanted = std::min(wanted, static_cast<std::uint32_t>(abi::kResultEndpointsMax));
    for (std::size_t at = 0; at < sums.size(); ++at) {
      const std::string& name = context.candidates.endpoints()[at]->name;
      // With few requests in flight a share of them is less than one, which nobody can have.
      const bool within = load[at] == 0 || static_cast<double>(load[at]) + 1 <= bound;
      const Entry entry{within, within ? 0.0F : load[at],
                        XXH3_64bits_withSeed(name.data(), name.size(), key),
                        static_cast<std::uint16_t>(at)};
      std::uint32_t place = count;
      while (place != 0 && entry.before(best[place - 1])) {
        best[place] = best[place - 1];
        --place;
      }
      best[place] = entry;
      count = std::min(count + 1, wanted);
    }
    ranking.count = count;
    ranking.ties = 0;
    for (std::uint32_t place = 0; place < count; ++place) ranking.order[place] = best[place].index;
  }

 private:
  struct Entry {
    bool within;
    float load;
    std::uint64_t weight;
    std::uint16_t index;
    bool before(const Entry& other) const {
      if (within != other.within) return within;
      if (load != other.load) return load < other.load;
      return weight > other.weight;
    }
  };

  std::uint64_t key_of(const PickContext& context) const {
    const auto keys = context.request.keys;
    if (keys.empty()) return context.random.next();  // no prompt, no preference
    return keys[std::min<std::size_t>(prefix_blocks_, keys.size()) - 1];
  }

  std::uint64_t prefix_blocks_;
  double load_factor_;
};

}  // namespace

PluginInfo describe_chwbl_picker() {
  return {"chwbl-picker",
          PluginKind::kPicker,
          columns_of(Column::kInflightRequests),
          "Of the policy chwbl: consistent hashing of the prompt's beginning, with bounded loads.",
          "the highest hash(endpoint name, key of the first prefixBlocks blocks) among endpoints "
          "that are idle or have requests + 1 <= loadFactor x (all requests + 1) / endpoints; when "
          "there is none, the least requests",
          {{"prefixBlocks", ParameterKind::kInteger, "2", 1, 16'384, "",
            "Blocks of the prompt that are hashed. One is too few where all prompts begin alike."},
           {"loadFactor", ParameterKind::kNumber, "1.25", 1, 1000, "",
            "How far above the mean an endpoint may go."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            const std::uint64_t blocks = parameters.integer("prefixBlocks");
            return std::make_unique<ChwblPicker>(blocks, parameters.number("loadFactor"));
          }};
}

config::SchedulingConfig make_chwbl_policy() {
  static constexpr PluginWeight kPlugins[] = {{"chwbl-picker", 1}};
  return make_scheduling("chwbl", kPlugins);
}

}  // namespace pickd::pick
