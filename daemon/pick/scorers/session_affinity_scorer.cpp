// session-affinity-scorer: the endpoint that served the session last.
#include <algorithm>

#include "daemon/config/parameters.hpp"
#include "daemon/pick/plugin.hpp"
#include "daemon/pick/session_ttl.hpp"

namespace pickd::pick {

namespace {

class SessionAffinityScorer final : public Scorer, public SessionTtl {
 public:
  explicit SessionAffinityScorer(std::uint64_t ttl_ms) : ttl_ms_(ttl_ms) {}

  bool score(const PickContext& context, std::span<float> scores) const override {
    const auto session = context.candidates.column(Column::kSession);
    std::copy(session.begin(), session.end(), scores.begin());
    return true;
  }
  std::uint64_t session_ttl_ms() const override { return ttl_ms_; }

 private:
  std::uint64_t ttl_ms_;
};

}  // namespace

std::unique_ptr<Plugin> make_session_affinity_scorer(config::ParameterReader& parameters) {
  const std::uint64_t ttl_ms = parameters.duration_ms("ttl", 300'000, 1'000, 12ULL * 3600 * 1000);
  return std::make_unique<SessionAffinityScorer>(ttl_ms);
}

}  // namespace pickd::pick
