// external-scorer: scores of a shared library of the operator's own.
#include <cmath>

#include "daemon/pick/external/load_external.hpp"

namespace pickd::pick {

namespace {

class ExternalScorer final : public ExternalPlugin, public Scorer {
 public:
  explicit ExternalScorer(LoadedExternal loaded)
      : ExternalPlugin(std::move(loaded.settings), std::move(loaded.instance)) {}

  bool score(const PickContext& context, std::span<float> scores) const override {
    if (off()) return true;  // nobody has a score
    return timed(
        context,
        [](const pickd_plugin& functions, void* self, const pickd_plugin_pick& pick, void* out) {
          auto* to = static_cast<float*>(out);
          if (functions.score(self, &pick, to) != 0) return false;
          bool sound = true;
          for (std::size_t at = 0; at < pick.count; ++at) sound &= !std::isnan(to[at]);
          return sound;
        },
        scores.data());
  }
};

// Where the library was refused: never run, for the configuration is refused with it.
class RefusedScorer final : public Scorer {
 public:
  bool score(const PickContext&, std::span<float>) const override { return false; }
};

}  // namespace

PluginInfo describe_external_scorer() {
  return {"external-scorer",
          PluginKind::kScorer,
          0,  // as its library says
          "Scores of a shared library of your own, which says what it reads; see "
          "include/pickd/plugin.h and "
          "[external-plugins.md](external-plugins.md).",
          "what its score() gives",
          external_parameters(),
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            auto loaded = load_external(parameters, PluginUse::kScore);
            if (!loaded) return std::make_unique<RefusedScorer>();
            return std::make_unique<ExternalScorer>(std::move(*loaded));
          }};
}

}  // namespace pickd::pick
