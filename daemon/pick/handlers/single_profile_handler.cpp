// single-profile-handler: the only profile, always.
#include "daemon/pick/handler.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class SingleProfileHandler final : public ProfileHandler {
 public:
  std::string bind(const Links& links) override {
    if (links.profiles.size() == 1) return "";
    return "a single-profile-handler takes one profile, there are " +
           std::to_string(links.profiles.size()) +
           "; use a header-profile-handler or a disagg-profile-handler";
  }
  std::size_t primary(const PickRequest&) const override { return 0; }
};

}  // namespace

PluginInfo describe_single_profile_handler() {
  return {"single-profile-handler",
          PluginKind::kHandler,
          0,
          "Runs the only profile. The default where there is one.",
          "",
          {},
          [](Parameters&) -> std::unique_ptr<Plugin> {
            return std::make_unique<SingleProfileHandler>();
          }};
}

}  // namespace pickd::pick
