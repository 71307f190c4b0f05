#include "tools/sim/figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace pickd::sim {

namespace {

double percentile(std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto at =
      static_cast<std::size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)));
  return sorted[std::min(at, sorted.size() - 1)];
}

// Student's t for 95 % on both sides, by degrees of freedom from 1.
constexpr double kT95[] = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262};

// Of the requests that want one: within their TTFT and their mean ITL. What failed got neither.
double attainment_of(const SimOutcome& outcome) {
  std::uint64_t attained = 0;
  std::uint64_t wanted = outcome.failed_with_slo;
  for (const Prefilled& served : outcome.requests) {
    if (served.slo_ttft_s <= 0 && served.slo_itl_s <= 0) continue;
    ++wanted;
    const bool first = served.slo_ttft_s <= 0 || served.ttft_s <= served.slo_ttft_s;
    const bool rest =
        served.slo_itl_s <= 0 || std::isnan(served.itl_s) || served.itl_s <= served.slo_itl_s;
    if (first && rest) ++attained;
  }
  if (wanted == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(attained) / static_cast<double>(wanted);
}

}  // namespace

std::string share_text(double share) {
  if (std::isnan(share)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", 100 * share);
  return text;
}

Figures figures_of(const SimOutcome& outcome) {
  Figures figures;
  std::vector<double> ttft;
  std::vector<double> itl;
  double sum = 0;
  std::uint64_t good = 0;
  for (const Prefilled& served : outcome.requests) {
    ttft.push_back(served.ttft_s);
    sum += served.ttft_s;
    if (!std::isnan(served.itl_s)) itl.push_back(served.itl_s);
    const bool quick_tokens = std::isnan(served.itl_s) || served.itl_s <= kSloItlS;
    if (served.ttft_s <= kSloTtftS && quick_tokens) ++good;
  }
  std::sort(ttft.begin(), ttft.end());
  std::sort(itl.begin(), itl.end());
  const double all = static_cast<double>(outcome.requests.size() + outcome.failed);
  figures.hit_rate = outcome.hit_rate;
  figures.ttft_mean_s = ttft.empty() ? 0 : sum / static_cast<double>(ttft.size());
  figures.ttft_p50_s = percentile(ttft, .5);
  figures.ttft_p90_s = percentile(ttft, .9);
  figures.ttft_p99_s = percentile(ttft, .99);
  figures.itl_p50_s = percentile(itl, .5);
  figures.itl_p90_s = percentile(itl, .9);
  figures.itl_p99_s = percentile(itl, .99);
  figures.goodput = all == 0 ? 0 : static_cast<double>(good) / all;
  figures.attainment = attainment_of(outcome);
  figures.busiest_share = outcome.busiest_share;
  figures.queued_share = outcome.queued_share;
  figures.bound_ttft_mean_s = outcome.bound_ttft_mean_s;
  figures.ttft_mape = outcome.ttft_mape;
  figures.itl_given_mape = outcome.itl_given_mape;
  figures.failed = static_cast<double>(outcome.failed);
  figures.wall_s = outcome.wall_s;
  return figures;
}

Summary summarise(const std::vector<Figures>& seeds) {
  Summary summary;
  if (seeds.empty()) return summary;
  const auto count = static_cast<double>(seeds.size());
  const auto mean_of = [&](double Figures::*field) {
    double sum = 0;
    for (const Figures& each : seeds) sum += each.*field;
    summary.mean.*field = sum / count;
  };
  for (double Figures::*field :
       {&Figures::hit_rate, &Figures::ttft_mean_s, &Figures::ttft_p50_s, &Figures::ttft_p90_s,
        &Figures::ttft_p99_s, &Figures::itl_p50_s, &Figures::itl_p90_s, &Figures::itl_p99_s,
        &Figures::goodput, &Figures::attainment, &Figures::busiest_share, &Figures::queued_share,
        &Figures::bound_ttft_mean_s, &Figures::ttft_mape, &Figures::itl_given_mape,
        &Figures::failed, &Figures::wall_s}) {
    mean_of(field);
  }
  if (seeds.size() > 1) {
    double squares = 0;
    for (const Figures& each : seeds) {
      const double off = each.ttft_mean_s - summary.mean.ttft_mean_s;
      squares += off * off;
    }
    const double t = kT95[std::min<std::size_t>(seeds.size() - 2, std::size(kT95) - 1)];
    summary.ttft_mean_ci95_s = t * std::sqrt(squares / (count - 1) / count);
  }
  return summary;
}

}  // namespace pickd::sim
