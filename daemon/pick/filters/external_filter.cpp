// external-filter: drops what a shared library of the operator's own says.
#include <algorithm>

#include "daemon/pick/external/load_external.hpp"

namespace pickd::pick {

namespace {

class ExternalFilter final : public ExternalPlugin, public Filter {
 public:
  explicit ExternalFilter(LoadedExternal loaded)
      : ExternalPlugin(std::move(loaded.settings), std::move(loaded.instance)) {}

  void filter(const PickContext& context, std::span<std::uint8_t> keep) const override {
    if (off()) return;  // everybody stays
    const bool good = timed(
        context,
        [](const pickd_plugin& functions, void* self, const pickd_plugin_pick& pick, void* out) {
          return functions.filter(self, &pick, static_cast<std::uint8_t*>(out)) == 0;
        },
        keep.data());
    if (!good) std::fill(keep.begin(), keep.end(), std::uint8_t{1});
  }
};

// Where the library was refused: never run, for the configuration is refused with it.
class RefusedFilter final : public Filter {
 public:
  void filter(const PickContext&, std::span<std::uint8_t>) const override {}
};

}  // namespace

PluginInfo describe_external_filter() {
  return {"external-filter",
          PluginKind::kFilter,
          0,  // as its library says
          "Drops what a shared library of your own says, which also says what it reads; see "
          "include/pickd/plugin.h and "
          "[external-plugins.md](external-plugins.md).",
          "",
          external_parameters(),
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            auto loaded = load_external(parameters, PluginUse::kFilter);
            if (!loaded) return std::make_unique<RefusedFilter>();
            return std::make_unique<ExternalFilter>(std::move(*loaded));
          }};
}

}  // namespace pickd::pick
