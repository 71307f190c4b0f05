// session-affinity-scorer: the endpoint that served the session last.
#include "daemon/pick/session_choice.hpp"

namespace pickd::pick {

namespace {

class SessionAffinityScorer final : public Scorer, public SessionChoice {
 public:
  using SessionChoice::SessionChoice;

  ColumnSet columns(ColumnSet declared) const override { return reads_table() ? declared : 0; }
  bool score(const PickContext& context, std::span<float> scores) const override {
    mark(context, scores);
    return true;
  }
};

}  // namespace

PluginInfo describe_session_affinity_scorer() {
  return {"session-affinity-scorer",
          PluginKind::kScorer,
          SessionChoice::columns_read(),
          "Prefers the endpoint that served the session last.",
          "1 the session's endpoint, else 0",
          SessionChoice::parameters(),
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            return std::make_unique<SessionAffinityScorer>(parameters);
          }};
}

}  // namespace pickd::pick
