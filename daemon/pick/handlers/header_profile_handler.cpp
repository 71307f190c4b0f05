// header-profile-handler: the profile that a header of the request names.
#include <algorithm>

#include "daemon/pick/handler.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

class HeaderProfileHandler final : public ProfileHandler {
 public:
  HeaderProfileHandler(std::string header, std::string absent)
      : header_(std::move(header)), absent_name_(std::move(absent)) {}

  std::string bind(const Links& links) override {
    for (const std::string_view name : links.profiles) names_.emplace_back(name);
    absent_ = index_of(absent_name_);
    if (names_.size() == 1 || absent_ != kNoProfile) return "";
    return "no profile has the name " + config::shown(absent_name_) +
           " for requests without the header" + config::suggestion(absent_name_, names_) +
           "; set defaultProfile";
  }

  std::size_t primary(const PickRequest& request) const override {
    if (names_.size() == 1) return 0;
    const std::string_view* named = request.attribute(header_);
    return named == nullptr || named->empty() ? absent_ : index_of(*named);
  }

 private:
  std::size_t index_of(std::string_view name) const {
    const auto at = std::find(names_.begin(), names_.end(), name);
    return at == names_.end() ? kNoProfile : static_cast<std::size_t>(at - names_.begin());
  }

  std::string header_;
  std::string absent_name_;
  std::vector<std::string> names_;
  std::size_t absent_ = kNoProfile;
};

}  // namespace

PluginInfo describe_header_profile_handler() {
  return {
      "header-profile-handler",
      PluginKind::kHandler,
      0,
      "Runs the profile that a header of the request names; a name that no profile has is "
      "refused (-EINVAL).",
      "",
      {{"headerName", ParameterKind::kText, "EPP-Profile", 1, 255, "", "The request attribute."},
       {"defaultProfile", ParameterKind::kText, "decode", 1, 127, "",
        "The profile of requests without the header."}},
      [](Parameters& parameters) -> std::unique_ptr<Plugin> {
        std::string header = parameters.text("headerName");
        return std::make_unique<HeaderProfileHandler>(std::move(header),
                                                      parameters.text("defaultProfile"));
      }};
}

}  // namespace pickd::pick
