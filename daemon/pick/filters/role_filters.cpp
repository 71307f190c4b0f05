// decode-filter, prefill-filter, encode-filter: endpoints by what they do. The label llm-d.ai/role
// says it, else the role of the endpoint. One rule, three sets of words.
#include <algorithm>
#include <array>

#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

constexpr std::string_view kRoleLabel = "llm-d.ai/role";
using Words = std::array<std::string_view, 5>;

constexpr Words kDecode = {"decode", "prefill-decode", "both", "encode-prefill-decode"};
constexpr Words kPrefill = {"prefill", "encode-prefill", "prefill-decode", "both",
                            "encode-prefill-decode"};
constexpr Words kEncode = {"encode", "encode-prefill", "encode-prefill-decode"};

class RoleFilter final : public Filter {
 public:
  RoleFilter(const Words& words, abi::Role role, bool both_too)
      : words_(words), role_(role), both_too_(both_too) {}

  void filter(const PickContext& context, std::span<std::uint8_t> keep) const override {
    for (std::size_t at = 0; at < keep.size(); ++at) {
      keep[at] = fits(*context.candidates.endpoints()[at]);
    }
  }

 private:
  bool fits(const endpoints::TopologyEndpoint& endpoint) const {
    if (const std::string* label = endpoint.label(kRoleLabel); label != nullptr && !label->empty())
      return std::find(words_.begin(), words_.end(), *label) != words_.end();
    return endpoint.role == role_ || (both_too_ && endpoint.role == abi::Role::kBoth);
  }

  const Words& words_;
  abi::Role role_;
  bool both_too_;
};

PluginInfo describe(std::string_view type, std::string_view summary,
                    std::unique_ptr<Plugin> (*make)(Parameters&)) {
  return {type, PluginKind::kFilter, 0, summary, "", {}, make};
}

}  // namespace

PluginInfo describe_decode_filter() {
  return describe("decode-filter",
                  "Keeps endpoints that decode: label `llm-d.ai/role` is decode, prefill-decode, "
                  "both or encode-prefill-decode; without the label, role decode or both.",
                  [](Parameters&) -> std::unique_ptr<Plugin> {
                    return std::make_unique<RoleFilter>(kDecode, abi::Role::kDecode, true);
                  });
}

// Unlike decode, an endpoint without label and role does not count as one for prefill: as the
// Endpoint Picker has it.
PluginInfo describe_prefill_filter() {
  return describe("prefill-filter",
                  "Keeps endpoints that prefill: label `llm-d.ai/role` is prefill, encode-prefill, "
                  "prefill-decode, both or encode-prefill-decode; without the label, role prefill.",
                  [](Parameters&) -> std::unique_ptr<Plugin> {
                    return std::make_unique<RoleFilter>(kPrefill, abi::Role::kPrefill, false);
                  });
}

PluginInfo describe_encode_filter() {
  return describe("encode-filter",
                  "Keeps endpoints that encode: label `llm-d.ai/role` is encode, encode-prefill or "
                  "encode-prefill-decode; without the label, role encode.",
                  [](Parameters&) -> std::unique_ptr<Plugin> {
                    return std::make_unique<RoleFilter>(kEncode, abi::Role::kEncode, false);
                  });
}

}  // namespace pickd::pick
