// disagg-profile-handler: a decode endpoint always, and a prefill endpoint before it when the
// decider says so. One pick returns both.
#include <algorithm>

#include "daemon/pick/handler.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class DisaggProfileHandler final : public ProfileHandler {
 public:
  DisaggProfileHandler(std::string decode, std::string prefill, std::string decider)
      : decode_name_(std::move(decode)),
        prefill_name_(std::move(prefill)),
        decider_name_(std::move(decider)) {}

  std::string bind(const Links& links) override {
    const auto index_of = [&](const std::string& name) {
      const auto at = std::find(links.profiles.begin(), links.profiles.end(), name);
      return at == links.profiles.end() ? kNoProfile
                                        : static_cast<std::size_t>(at - links.profiles.begin());
    };
    const auto missing = [](const std::string& name, const char* key) {
      return "a disagg-profile-handler needs a profile " + config::shown(name) + " (" + key + ")";
    };
    decode_ = index_of(decode_name_);
    if (decode_ == kNoProfile) return missing(decode_name_, "profiles.decode");
    if (decider_name_.empty()) return "";
    decider_ = dynamic_cast<const Decider*>(links.plugin(decider_name_));
    if (decider_ == nullptr) {
      return config::shown(decider_name_) +
             " is no decider; use a prefix-based-pd-decider or an always-disagg-pd-decider";
    }
    prefill_ = index_of(prefill_name_);
    return prefill_ == kNoProfile ? missing(prefill_name_, "profiles.prefill") : "";
  }

  std::size_t primary(const PickRequest&) const override { return decode_; }
  std::size_t prefill(const PickRequest& request, std::uint32_t uncached_tokens) const override {
    return decider_ != nullptr && decider_->split(request, uncached_tokens) ? prefill_ : kNoProfile;
  }

 private:
  std::string decode_name_;
  std::string prefill_name_;
  std::string decider_name_;
  std::size_t decode_ = kNoProfile;
  std::size_t prefill_ = kNoProfile;
  const Decider* decider_ = nullptr;
};

std::unique_ptr<Plugin> make(Parameters& parameters) {
  std::string decode = parameters.text("profiles.decode");
  std::string prefill = parameters.text("profiles.prefill");
  if (parameters.has("deciders.encode")) {
    parameters.refuse("deciders.encode",
                      "there is no encode stage in this version; remove it, and the profile");
  }
  return std::make_unique<DisaggProfileHandler>(std::move(decode), std::move(prefill),
                                                parameters.text("deciders.prefill"));
}

}  // namespace

PluginInfo describe_disagg_profile_handler() {
  return {"disagg-profile-handler",
          PluginKind::kHandler,
          0,
          "Picks a decode endpoint, and a prefill endpoint besides when the decider says so; both "
          "are reserved and remembered. Nobody to prefill: the decode endpoint does it.",
          "",
          {{"profiles.decode", ParameterKind::kText, "decode", 1, 127, "",
            "The profile of the decode endpoint."},
           {"profiles.prefill", ParameterKind::kText, "prefill", 1, 127, "",
            "The profile of the prefill endpoint."},
           {"profiles.encode", ParameterKind::kText, "encode", 1, 127, "",
            "Taken without effect: there is no encode stage in this version."},
           {"deciders.prefill", ParameterKind::kReference, "", 0, 127, "",
            "The decider; without one nothing is split."},
           {"deciders.encode", ParameterKind::kText, "", 0, 127, "",
            "Refused: there is no encode stage in this version."}},
          make};
}

}  // namespace pickd::pick
