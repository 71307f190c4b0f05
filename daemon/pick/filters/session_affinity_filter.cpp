// session-affinity-filter: keeps the endpoint that served the session last, and everybody when it
// is no candidate.
#include <algorithm>

#include "daemon/pick/session_choice.hpp"

namespace pickd::pick {

namespace {

class SessionAffinityFilter final : public Filter, public SessionChoice {
 public:
  using SessionChoice::SessionChoice;

  ColumnSet columns(ColumnSet declared) const override { return reads_table() ? declared : 0; }
  void filter(const PickContext& context, std::span<std::uint8_t> keep) const override {
    float marks[Candidates::kMax];
    if (!mark(context, {marks, keep.size()})) return;
    std::transform(marks, marks + keep.size(), keep.begin(),
                   [](float mark) { return mark == 1.0F ? std::uint8_t{1} : std::uint8_t{0}; });
  }
};

}  // namespace

PluginInfo describe_session_affinity_filter() {
  return {"session-affinity-filter",
          PluginKind::kFilter,
          SessionChoice::columns_read(),
          "Keeps the endpoint that served the session last; everybody when it is no candidate.",
          "",
          SessionChoice::parameters(),
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            return std::make_unique<SessionAffinityFilter>(parameters);
          }};
}

}  // namespace pickd::pick
