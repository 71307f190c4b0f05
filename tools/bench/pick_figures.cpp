#include "tools/bench/pick_figures.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace pickd::bench {

namespace {

double p50(const tools::Samples& samples) { return samples.percentile(0.5); }

// What of the wait for the daemon is neither the bare ring nor the daemon's work when that is
// measured alone: lines that the other core has written, and the looks that find nothing. And what
// is left of the round trip. Medians of parts need not add up to the median of the whole: a few
// nanoseconds either way mean nothing.
double crossing_ns(const PickFigures& figures) {
  return p50(figures.wait_ns) - p50(figures.ring_ns) - p50(figures.daemon_ns);
}

double rest_ns(const PickFigures& figures) {
  return p50(figures.pick_ns) - p50(figures.hash_ns) - p50(figures.library_ns) -
         p50(figures.wait_ns);
}

double ratio(const PickFigures& figures) {
  return p50(figures.pick_ns) / (p50(figures.ring_ns) + p50(figures.hash_ns));
}

void print_row(const char* name, const tools::Samples& samples) {
  std::printf("  %-34s %9.0f %9.0f %9.0f\n", name, p50(samples), samples.percentile(0.99),
              samples.percentile(0.999));
}

void print_part(const char* name, double ns) { std::printf("  %-34s %9.0f\n", name, ns); }

void print_round_trips(const PickFigures& figures) {
  std::printf("%u endpoints, prompt of %u tokens as text; record of %zu bytes out, %zu back\n\n",
              figures.endpoints, figures.prompt_tokens, figures.record_bytes, figures.answer_bytes);
  std::printf("round trip, ns                             p50       p99     p99.9\n");
  print_row("pick, hashing included", figures.pick_ns);
  print_row("bare ring, same bytes", figures.ring_ns);
  print_row("eventfd, no bytes", figures.eventfd_ns);
  print_row("Unix stream, same bytes", figures.unix_ns);
  if (figures.grpc_ns.count() != 0)
    print_row("gRPC stream, same bytes", figures.grpc_ns);
  else
    std::printf("  %-34s built without gRPC\n", "gRPC stream");
  std::printf("  %-34s %9.2f\n\n", "pick / (ring + hashing)", ratio(figures));
}

void print_parts(const PickFigures& figures) {
  std::printf("where a pick's time goes, ns               p50\n");
  print_part("hashing the prompt", p50(figures.hash_ns));
  print_part("the library's own steps", p50(figures.library_ns));
  print_part("waiting for the daemon, of which", p50(figures.wait_ns));
  print_part("  bare ring", p50(figures.ring_ns));
  print_part("  the daemon's work, alone", p50(figures.daemon_ns));
  print_part("  what is dearer on two cores", crossing_ns(figures));
  print_part("the rest", rest_ns(figures));
  print_part("(a look at the clock)", p50(figures.clock_ns));
}

void print_hashing(const PickFigures& figures) {
  std::printf("\nhashing by length of the prompt\n  %10s %12s %14s %8s\n", "tokens", "p50 ns",
              "ns a 64 tokens", "GB/s");
  for (const HashCost& cost : figures.hash_costs) {
    const double ns = p50(cost.ns);
    std::printf("  %10u %12.0f %14.1f %8.1f\n", cost.tokens, ns, ns * 64 / cost.tokens,
                4.0 * cost.tokens / ns);
  }
}

void print_pipelined(const PickFigures& figures) {
  std::printf("\n%u picks outstanding on one queue, each reported; %u prompts of %u tokens\n",
              figures.outstanding, figures.pipelined_prompts, figures.pipelined_tokens);
  std::printf("  %-34s %9.0f  (slices: least %.0f, most %.0f)\n", "picks a second",
              p50(figures.picks_s), figures.picks_s.percentile(0), figures.picks_s.percentile(1));
  std::printf("  %-34s %9.2f and %.2f\n", "worker and client had a core", figures.worker_core_share,
              figures.client_core_share);
  std::printf("  %-34s %9.0f ns: at most %.0f picks a second\n", "a worker's work for one",
              p50(figures.worker_ns), 1e9 / p50(figures.worker_ns));
}

}  // namespace

void print_table(const PickFigures& figures) {
  print_round_trips(figures);
  print_parts(figures);
  print_hashing(figures);
  print_pipelined(figures);
}

void print_json(const PickFigures& figures) {
  nlohmann::ordered_json out;
  out["endpoints"] = figures.endpoints;
  out["prompt_tokens"] = figures.prompt_tokens;
  out["record_bytes"] = figures.record_bytes;
  out["answer_bytes"] = figures.answer_bytes;
  out["pick_p50_ns"] = p50(figures.pick_ns);
  out["pick_p99_ns"] = figures.pick_ns.percentile(0.99);
  out["pick_p999_ns"] = figures.pick_ns.percentile(0.999);
  out["ring_p50_ns"] = p50(figures.ring_ns);
  out["ring_p99_ns"] = figures.ring_ns.percentile(0.99);
  out["eventfd_p50_ns"] = p50(figures.eventfd_ns);
  out["unix_p50_ns"] = p50(figures.unix_ns);
  out["grpc_p50_ns"] = nullptr;
  if (figures.grpc_ns.count() != 0) out["grpc_p50_ns"] = p50(figures.grpc_ns);
  out["ratio_p50"] = ratio(figures);
  out["hash_p50_ns"] = p50(figures.hash_ns);
  out["daemon_p50_ns"] = p50(figures.daemon_ns);
  out["library_p50_ns"] = p50(figures.library_ns);
  out["wait_p50_ns"] = p50(figures.wait_ns);
  out["crossing_p50_ns"] = crossing_ns(figures);
  out["rest_p50_ns"] = rest_ns(figures);
  out["clock_p50_ns"] = p50(figures.clock_ns);
  out["hash_by_tokens"] = nlohmann::ordered_json::array();
  for (const HashCost& cost : figures.hash_costs)
    out["hash_by_tokens"].push_back({{"tokens", cost.tokens}, {"p50_ns", p50(cost.ns)}});
  out["pipelined_picks_s"] = p50(figures.picks_s);
  out["pipelined_best_picks_s"] = figures.picks_s.percentile(1);
  out["pipelined_worker_p50_ns"] = p50(figures.worker_ns);
  out["pipelined_worker_core_share"] = figures.worker_core_share;
  out["pipelined_client_core_share"] = figures.client_core_share;
  std::printf("%s\n", out.dump(2).c_str());
}

}  // namespace pickd::bench
