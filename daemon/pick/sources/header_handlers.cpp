// disagg-headers-handler and prefill-header-handler: plugins of older Endpoint Picker files that
// write headers. Here the gateway does, from the result; the files load all the same.
#include "daemon/pick/parameters.hpp"
#include "daemon/pick/source.hpp"

namespace pickd::pick {

namespace {

class NothingToSet final : public Source {
 public:
  void apply(SourceSettings&) const override {}
};

PluginInfo describe(std::string_view type) {
  return {
      type,
      PluginKind::kSource,
      0,
      "Taken without effect: the gateway writes the headers of a split request from the result.",
      "",
      {{"prefillProfile", ParameterKind::kText, "prefill", 0, 127, "", "Without effect."},
       {"encodeProfile", ParameterKind::kText, "encode", 0, 127, "", "Without effect."}},
      [](Parameters&) -> std::unique_ptr<Plugin> { return std::make_unique<NothingToSet>(); }};
}

}  // namespace

PluginInfo describe_disagg_headers_handler() { return describe("disagg-headers-handler"); }
PluginInfo describe_prefill_header_handler() { return describe("prefill-header-handler"); }

}  // namespace pickd::pick
