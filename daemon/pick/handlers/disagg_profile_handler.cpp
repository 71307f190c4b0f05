// disagg-profile-handler: a decode endpoint always, and before it one that encodes and one that
// prefills, each when its decider says so. One pick returns all of them.
#include <algorithm>

#include "daemon/pick/handler.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

// A stage before the decode, as configured and as it was found.
struct StageLink {
  std::string profile_name;
  std::string decider_name;  // empty: never split off
  std::size_t profile = kNoProfile;
  const Decider* decider = nullptr;

  std::size_t wanted(const PickRequest& request, std::uint32_t uncached_tokens) const {
    return decider != nullptr && decider->split(request, uncached_tokens) ? profile : kNoProfile;
  }
};

class DisaggProfileHandler final : public ProfileHandler {
 public:
  DisaggProfileHandler(std::string decode, StageLink prefill, StageLink encode)
      : decode_name_(std::move(decode)), prefill_(std::move(prefill)), encode_(std::move(encode)) {}

  std::string bind(const Links& links) override {
    decode_ = index_of(links, decode_name_);
    if (decode_ == kNoProfile) return missing(decode_name_, "profiles.decode");
    const std::string wrong = bind_stage(links, "profiles.prefill", prefill_);
    return wrong.empty() ? bind_stage(links, "profiles.encode", encode_) : wrong;
  }

  std::size_t primary(const PickRequest&) const override { return decode_; }
  std::size_t prefill(const PickRequest& request, std::uint32_t uncached_tokens) const override {
    return prefill_.wanted(request, uncached_tokens);
  }
  std::size_t encode(const PickRequest& request, std::uint32_t uncached_tokens) const override {
    return encode_.wanted(request, uncached_tokens);
  }

 private:
  static std::size_t index_of(const Links& links, const std::string& name) {
    const auto at = std::find(links.profiles.begin(), links.profiles.end(), name);
    return at == links.profiles.end() ? kNoProfile
                                      : static_cast<std::size_t>(at - links.profiles.begin());
  }
  static std::string missing(const std::string& name, const char* key) {
    return "a disagg-profile-handler needs a profile " + config::shown(name) + " (" + key + ")";
  }
  static std::string bind_stage(const Links& links, const char* key, StageLink& stage) {
    if (stage.decider_name.empty()) return "";
    stage.decider = dynamic_cast<const Decider*>(links.plugin(stage.decider_name));
    if (stage.decider == nullptr) {
      return config::shown(stage.decider_name) +
             " is no decider; use a prefix-based-pd-decider, an always-disagg-pd-decider or an "
             "always-disagg-multimodal-decider";
    }
    stage.profile = index_of(links, stage.profile_name);
    return stage.profile == kNoProfile ? missing(stage.profile_name, key) : "";
  }

  std::string decode_name_;
  std::size_t decode_ = kNoProfile;
  StageLink prefill_;
  StageLink encode_;
};

std::unique_ptr<Plugin> make(Parameters& parameters) {
  StageLink prefill;
  prefill.profile_name = parameters.text("profiles.prefill");
  prefill.decider_name = parameters.text("deciders.prefill");
  StageLink encode;
  encode.profile_name = parameters.text("profiles.encode");
  encode.decider_name = parameters.text("deciders.encode");
  return std::make_unique<DisaggProfileHandler>(parameters.text("profiles.decode"),
                                                std::move(prefill), std::move(encode));
}

}  // namespace

PluginInfo describe_disagg_profile_handler() {
  return {"disagg-profile-handler",
          PluginKind::kHandler,
          0,
          "Picks a decode endpoint, and besides one that encodes and one that prefills, each when "
          "its decider says so; all of them are reserved. Nobody for a stage, or who decodes "
          "himself: the next one does it.",
          "",
          {{"profiles.decode", ParameterKind::kText, "decode", 1, 127, "",
            "The profile of the decode endpoint."},
           {"profiles.prefill", ParameterKind::kText, "prefill", 1, 127, "",
            "The profile of the prefill endpoint."},
           {"profiles.encode", ParameterKind::kText, "encode", 1, 127, "",
            "The profile of the endpoint that encodes."},
           {"deciders.prefill", ParameterKind::kReference, "", 0, 127, "",
            "Decides whether prefill is split off; without one it never is."},
           {"deciders.encode", ParameterKind::kReference, "", 0, 127, "", "The same for encoding."},
           {"stageOrder", ParameterKind::kTree, "", 0, 0, "",
            "Taken without effect: decode, encode, prefill is the order here, and what one finds "
            "changes no other."}},
          make};
}

}  // namespace pickd::pick
