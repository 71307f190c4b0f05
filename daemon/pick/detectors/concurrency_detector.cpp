// concurrency-detector: a pool is saturated when our own requests, or their tokens, in flight reach
// what its endpoints are meant for. In a profile it drops those that are full.
#include <algorithm>

#include "daemon/pick/detector.hpp"
#include "daemon/pick/parameters.hpp"

namespace pickd::pick {

namespace {

enum class Mode : std::uint8_t { kRequests, kTokens, kHybrid };

class ConcurrencyDetector final : public Detector {
 public:
  ConcurrencyDetector(Mode mode, double requests, double tokens, double headroom)
      : mode_(mode), requests_(requests), tokens_(tokens), headroom_(headroom) {}

  double saturation(const Candidates& candidates) const override {
    const double share_of_requests =
        total(candidates.column(Column::kInflightRequests)) / requests_;
    const double share_of_tokens = total(candidates.column(Column::kInflightTokens)) / tokens_;
    const auto endpoints = static_cast<double>(candidates.count);
    switch (mode_) {
      case Mode::kRequests: return share_of_requests / endpoints;
      case Mode::kTokens: return share_of_tokens / endpoints;
      case Mode::kHybrid: return std::max(share_of_requests, share_of_tokens) / endpoints;
    }
    return 0;
  }

  void filter(const PickContext& context, std::span<std::uint8_t> keep) const override {
    const auto requests = context.candidates.column(Column::kInflightRequests);
    const auto tokens = context.candidates.column(Column::kInflightTokens);
    for (std::size_t at = 0; at < keep.size(); ++at) {
      const bool full_of_requests =
          static_cast<double>(requests[at]) >= requests_ * (1 + headroom_);
      const bool full_of_tokens = static_cast<double>(tokens[at]) >= tokens_ * (1 + headroom_);
      keep[at] = !((mode_ != Mode::kTokens && full_of_requests) ||
                   (mode_ != Mode::kRequests && full_of_tokens));
    }
  }

 private:
  static double total(std::span<const float> values) {
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value);
    return sum;
  }

  Mode mode_;
  double requests_;
  double tokens_;
  double headroom_;
};

}  // namespace

PluginInfo describe_concurrency_detector() {
  return {"concurrency-detector",
          PluginKind::kDetector,
          columns_of(Column::kInflightRequests, Column::kInflightTokens),
          "Saturated when our own load in flight reaches what the endpoints are meant for. In a "
          "profile: drops endpoints that are full, and sheds when all are.",
          "sum in flight / (capacity x endpoints), of requests, tokens, or the greater of both "
          "(hybrid); saturated from 1 on; as a filter: kept while below capacity x (1 + headroom)",
          {{"concurrencyMode", ParameterKind::kChoice, "requests", 0, 0, "requests|tokens|hybrid",
            "What counts."},
           {"maxConcurrency", ParameterKind::kInteger, "100", 1, 1e9, "",
            "Requests that an endpoint is meant for."},
           {"maxTokenConcurrency", ParameterKind::kInteger, "1000000", 1, 1e12, "",
            "Uncached prompt tokens that an endpoint is meant for."},
           {"headroom", ParameterKind::kNumber, "0", 0, 100, "",
            "How far above the capacity the filter goes."},
           {"inFlightLoadProducerName", ParameterKind::kReference, "", 0, 0, "",
            "Taken; pickd has one count of its own requests."}},
          [](Parameters& parameters) -> std::unique_ptr<Plugin> {
            const std::string mode = parameters.choice("concurrencyMode");
            const auto requests = static_cast<double>(parameters.integer("maxConcurrency"));
            const auto tokens = static_cast<double>(parameters.integer("maxTokenConcurrency"));
            return std::make_unique<ConcurrencyDetector>(mode == "requests" ? Mode::kRequests
                                                         : mode == "tokens" ? Mode::kTokens
                                                                            : Mode::kHybrid,
                                                         requests, tokens,
                                                         parameters.number("headroom"));
          }};
}

}  // namespace pickd::pick
