// pickd-sim: arguments in, a table, JSON or a chart out. See simulation.hpp for what is simulated.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "tools/common/numbers.hpp"
#include "tools/sim/chart.hpp"
#include "tools/sim/figures.hpp"
#include "tools/sim/standard.hpp"

namespace {

using namespace pickd::sim;

struct Arguments {
  std::vector<std::string> traces = {"chat"};
  std::vector<std::string> policies = {"least-predicted-cost", "epp-default", "least-request",
                                       "round-robin"};
  std::vector<double> speeds = {1};
  std::vector<std::uint32_t> endpoints = {8};
  std::vector<std::uint64_t> capacity_blocks = {5000};
  std::uint32_t seeds = 1;
  double seconds = 0;
  double rate = 0;
  double restart_every_s = 0;
  SimOptions sim;
  struct {
    double step = 8;
    double prefill_us = 70;
  } rates_ms;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  bool json = false;
  bool learned = false;
  bool standard = false;
  std::string trace_folder = "traces";
  std::string plot;
};

// One row: a policy in one cell, over all seeds.
struct Row {
  std::string policy;
  std::string trace;
  double speed = 1;
  std::uint32_t endpoints = 8;
  std::uint64_t capacity_blocks = 0;
  std::vector<Figures> seeds;
  std::vector<double> bounds;  // of hits, by seed: each makes another workload

  double bound_hit_rate() const {
    return std::accumulate(bounds.begin(), bounds.end(), 0.0) / static_cast<double>(bounds.size());
  }
};

struct Job {
  std::size_t row;
  std::uint32_t seed;
};

std::vector<Row> make_rows(const Arguments& arguments) {
  std::vector<Row> rows;
  for (const std::string& trace : arguments.traces) {
    for (const std::uint32_t endpoints : arguments.endpoints) {
      for (const std::uint64_t capacity : arguments.capacity_blocks) {
        for (const double speed : arguments.speeds) {
          for (const std::string& policy : arguments.policies)
            rows.push_back({policy, trace, speed, endpoints, capacity, {}, {}});
        }
      }
    }
  }
  return rows;
}

void print_learned(const std::string& policy, const pickd::latency::Coefficients& learned) {
  std::printf("%s: price of work %.2f\n", policy.c_str(), learned.work_price);
  for (const auto& of : learned.classes) {
    std::printf("  TTFT");
    for (const double value : of.ttft) std::printf(" %.4f", value);
    std::printf("  ITL");
    for (const double value : of.itl) std::printf(" %.5f", value);
    std::printf("  answers of %.0f tokens\n", of.output_tokens);
  }
  for (std::size_t id = 1; id < learned.endpoints.size(); ++id) {
    std::printf("  endpoint %zu: slowness %.2f, queued %.2f of the time\n", id,
                learned.endpoints[id].slowness, learned.endpoints[id].queued_share);
  }
}

// One engine after the other, as in a rollout.
std::vector<Restart> restarts_of(double every_s, double until_s, std::uint32_t endpoints) {
  std::vector<Restart> restarts;
  for (double at_s = every_s; at_s < until_s; at_s += every_s)
    restarts.push_back({static_cast<std::uint32_t>(restarts.size() % endpoints), at_s});
  return restarts;
}

void run(const Arguments& arguments, std::vector<Row>& rows) {
  std::vector<Job> jobs;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    rows[row].seeds.resize(arguments.seeds);
    rows[row].bounds.resize(arguments.seeds);
    for (std::uint32_t seed = 0; seed < arguments.seeds; ++seed) jobs.push_back({row, seed});
  }
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::size_t done = 0;
  std::string error;
  const auto work = [&] {
    for (std::size_t at = next++; at < jobs.size(); at = next++) {
      Row& row = rows[jobs[at].row];
      try {
        WorkloadOptions wanted;
        wanted.name = row.trace;
        wanted.speed = row.speed;
        wanted.seconds = arguments.seconds;
        wanted.rate_per_s = arguments.rate;
        wanted.endpoints = row.endpoints;
        wanted.seed = jobs[at].seed + arguments.sim.seed;
        const Workload workload = make_workload(wanted);
        SimOptions options = arguments.sim;
        options.policy = row.policy;
        options.rates.step_s = arguments.rates_ms.step * 1e-3;
        options.rates.prefill_s = arguments.rates_ms.prefill_us * 1e-6;
        options.endpoints = row.endpoints;
        options.capacity_blocks = row.capacity_blocks;
        options.seed = wanted.seed;
        if (arguments.restart_every_s > 0 && !workload.requests.empty()) {
          options.restarts = restarts_of(arguments.restart_every_s,
                                         workload.requests.back().arrival_s, row.endpoints);
        }
        const SimOutcome outcome = simulate(workload, options);
        const Figures figures = figures_of(outcome);
        const std::lock_guard lock(mutex);
        if (arguments.learned) print_learned(row.policy, outcome.learned);
        row.seeds[jobs[at].seed] = figures;
        row.bounds[jobs[at].seed] = workload.bound_hit_rate;
        ++done;
        if (::isatty(STDERR_FILENO) != 0)
          std::fprintf(stderr, "\r%zu of %zu simulated", done, jobs.size());
      } catch (const std::exception& failure) {
        const std::lock_guard lock(mutex);
        if (error.empty()) error = failure.what();
        next = jobs.size();
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned at = 0; at < arguments.threads; ++at) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  if (::isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "\r%40s\r", "");
  if (!error.empty()) throw std::runtime_error(error);
}

std::string cell_of(const Row& row) {
  char text[160];
  std::snprintf(text, sizeof text, "%s, %g x speed, %u endpoints of %llu blocks of %u tokens",
                row.trace.c_str(), row.speed, row.endpoints,
                static_cast<unsigned long long>(row.capacity_blocks), kBlockTokens);
  return text;
}

void print_table(const std::vector<Row>& rows) {
  std::string cell;
  for (const Row& row : rows) {
    if (cell_of(row) != cell) {
      cell = cell_of(row);
      std::printf("\n%s (no fleet hits more than %.1f %%)\n", cell.c_str(),
                  100 * row.bound_hit_rate());
      std::printf("  %-22s %6s  %-17s %7s %7s  %7s %7s  %7s %7s %7s %6s\n", "policy", "hits",
                  "TTFT mean", "p90", "p99", "ITL p50", "p90", "goodput", "SLOs", "busiest",
                  "MAPE");
    }
    const Summary summary = summarise(row.seeds);
    const Figures& mean = summary.mean;
    char ttft[40];
    if (row.seeds.size() > 1) {
      std::snprintf(ttft, sizeof ttft, "%.3f +- %.3f s", mean.ttft_mean_s,
                    summary.ttft_mean_ci95_s);
    } else {
      std::snprintf(ttft, sizeof ttft, "%.3f s", mean.ttft_mean_s);
    }
    std::printf(
        "  %-22s %5.1f%%  %-17s %6.2fs %6.2fs  %5.1fms %5.1fms  %6.1f%% %7s %6.1f%% %5.1f%%\n",
        row.policy.c_str(), 100 * mean.hit_rate, ttft, mean.ttft_p90_s, mean.ttft_p99_s,
        1e3 * mean.itl_p50_s, 1e3 * mean.itl_p90_s, 100 * mean.goodput,
        share_text(mean.attainment).c_str(), 100 * mean.busiest_share, 100 * mean.ttft_mape);
    if (mean.failed > 0) {
      std::printf("  %-22s %.1f requests failed: longer than a cache, or lost with an engine\n", "",
                  mean.failed);
    }
  }
}

constexpr double kGoodputWanted = .95;

bool is_better(const Row& row, const Row& than) {
  const Figures own = summarise(row.seeds).mean;
  const Figures other = summarise(than.seeds).mean;
  const bool enough = own.goodput >= kGoodputWanted;
  if (enough != (other.goodput >= kGoodputWanted)) return enough;
  if (!enough) return own.goodput > other.goodput;
  if (row.endpoints != than.endpoints) return row.endpoints < than.endpoints;
  return own.ttft_mean_s < other.ttft_mean_s;
}

// Which policy and how many engines, for each trace and speed that was asked for.
void print_answers(const std::vector<Row>& rows) {
  std::vector<const Row*> best;
  for (const Row& row : rows) {
    const auto at = std::find_if(best.begin(), best.end(), [&row](const Row* each) {
      return each->trace == row.trace && each->speed == row.speed &&
             each->capacity_blocks == row.capacity_blocks;
    });
    if (at == best.end()) {
      best.push_back(&row);
    } else if (is_better(row, **at)) {
      *at = &row;
    }
  }
  std::printf("\nFewest engines that serve 95 %% of the requests well (TTFT %g s, ITL %g ms):\n",
              kSloTtftS, 1e3 * kSloItlS);
  for (const Row* row : best) {
    const Figures mean = summarise(row->seeds).mean;
    std::printf("  %s, %g x speed, %llu blocks: %s%u with %s (%.1f %%, mean TTFT %.3f s)\n",
                row->trace.c_str(), row->speed,
                static_cast<unsigned long long>(row->capacity_blocks),
                mean.goodput < kGoodputWanted ? "not enough; best of them " : "", row->endpoints,
                row->policy.c_str(), 100 * mean.goodput, mean.ttft_mean_s);
  }
}

nlohmann::json json_of(const Row& row, std::uint64_t seed, const Figures& figures,
                       double bound_hit_rate) {
  return {{"policy", row.policy},
          {"trace", row.trace},
          {"speed", row.speed},
          {"endpoints", row.endpoints},
          {"capacity_blocks", row.capacity_blocks},
          {"seed", seed},
          {"hit_rate", figures.hit_rate},
          {"bound_hit_rate", bound_hit_rate},
          {"ttft_mean_s", figures.ttft_mean_s},
          {"ttft_p50_s", figures.ttft_p50_s},
          {"ttft_p90_s", figures.ttft_p90_s},
          {"ttft_p99_s", figures.ttft_p99_s},
          {"itl_p50_s", figures.itl_p50_s},
          {"itl_p90_s", figures.itl_p90_s},
          {"itl_p99_s", figures.itl_p99_s},
          {"goodput", figures.goodput},
          {"attainment", figures.attainment},
          {"busiest_share", figures.busiest_share},
          {"queued_share", figures.queued_share},
          {"bound_ttft_mean_s", figures.bound_ttft_mean_s},
          {"ttft_mape", figures.ttft_mape},
          {"itl_given_mape", figures.itl_given_mape},
          {"failed", figures.failed},
          {"wall_s", figures.wall_s}};
}

void print_json(const Arguments& arguments, const std::vector<Row>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows) {
    for (std::size_t at = 0; at < row.seeds.size(); ++at)
      list.push_back(json_of(row, arguments.sim.seed + at, row.seeds[at], row.bounds[at]));
  }
  std::printf("%s\n", list.dump(1).c_str());
}

// One line for each policy, trace, number of engines and cache size; said as far as they differ.
void write_plot(const Arguments& arguments, const std::vector<Row>& rows) {
  Chart chart;
  chart.title = "Mean TTFT against load";
  chart.x_label = "speed of the trace";
  chart.y_label = "mean TTFT, s";
  for (const Row& row : rows) {
    std::string name = row.policy;
    if (arguments.traces.size() > 1)
      name += ", " + std::filesystem::path(row.trace).stem().string();
    if (arguments.endpoints.size() > 1) name += ", " + std::to_string(row.endpoints);
    if (arguments.capacity_blocks.size() > 1)
      name += ", " + std::to_string(row.capacity_blocks) + " blocks";
    const auto same = [&name](const Series& each) { return each.name == name; };
    auto series = std::find_if(chart.series.begin(), chart.series.end(), same);
    if (series == chart.series.end()) series = chart.series.insert(chart.series.end(), {name, {}});
    series->points.push_back({row.speed, summarise(row.seeds).mean.ttft_mean_s});
  }
  std::ofstream file(arguments.plot);
  file << draw_svg(chart);
  if (!file) throw std::runtime_error(arguments.plot + ": cannot be written");
}

// A number of the range. CLI::Range takes NaN for one of any.
CLI::Validator finite(double least, double most) {
  char range[64];
  std::snprintf(range, sizeof range, "FLOAT in [%g - %g]", least, most);
  return CLI::Validator(
      [least, most, range = std::string(range)](const std::string& text) -> std::string {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return "";
        return "Value " + text + " is no " + range;
      },
      range);
}

void add_options(CLI::App& app, Arguments& arguments) {
  std::string known;
  for (const GeneratorInfo& generator : generators())
    known += "\n  " + std::string(generator.name) + ": " + std::string(generator.summary);
  app.add_option("-t,--trace", arguments.traces,
                 "Mooncake trace (.jsonl), Azure trace (.csv), or a generator:" + known)
      ->capture_default_str();
  app.add_option("-p,--policy", arguments.policies,
                 "Built-in profiles to compare, or files (.yaml) with a scheduling configuration")
      ->capture_default_str();
  app.add_option("--speed", arguments.speeds, "Arrivals come this much quicker")
      ->check(finite(.001, 1000.0))
      ->capture_default_str();
  app.add_option("-n,--endpoints", arguments.endpoints, "Engines")
      ->check(CLI::Range(1, 4094))
      ->capture_default_str();
  app.add_option("--capacity-blocks", arguments.capacity_blocks,
                 "KV cache of an engine, blocks of 512 tokens")
      ->check(CLI::Range(8, 10'000'000))
      ->capture_default_str();
  app.add_option("--seeds", arguments.seeds, "Runs of each cell, for the confidence interval")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--seed", arguments.sim.seed, "The first of them")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--seconds", arguments.seconds, "At most so much of the trace; 0: all of it")
      ->check(finite(0, 2'678'400));
  app.add_option("--rate", arguments.rate, "Requests a second of a generator; 0: its own")
      ->check(finite(0, 1e6));
  app.add_option("--gateways", arguments.sim.gateways, "Nodes that share nothing")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--scrape-s", arguments.sim.scrape_s, "Period of scrapes, seconds")
      ->check(finite(.001, 3600.0))
      ->capture_default_str();
  app.add_option("--step-noise", arguments.sim.step_noise, "Noise of engine steps, as a share")
      ->check(finite(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--report-noise", arguments.sim.report_noise,
                 "Noise of latencies that are learned from, as a share")
      ->check(finite(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--step-ms", arguments.rates_ms.step, "An engine's step without work, ms")
      ->check(finite(.001, 1e5))
      ->capture_default_str();
  app.add_option("--prefill-us", arguments.rates_ms.prefill_us, "A prompt token computed, us")
      ->check(finite(.001, 1e5))
      ->capture_default_str();
  app.add_option("--slow-share", arguments.sim.slow_share, "Share of engines that are slow")
      ->check(finite(0.0, 1.0));
  app.add_option("--slow-factor", arguments.sim.slow_factor, "Speed of those")
      ->check(finite(.01, 1.0))
      ->capture_default_str();
  app.add_option("--reports-lost", arguments.sim.reports_lost_share,
                 "Share of requests whose reports never come")
      ->check(finite(0.0, 1.0));
  app.add_option("--reports-late", arguments.sim.reports_late_share,
                 "Share of requests whose reports come 10 s late")
      ->check(finite(0.0, 1.0));
  app.add_option("--restart-every", arguments.restart_every_s,
                 "An engine loses its cache and what runs each so many seconds, one after the "
                 "other; without it none does")
      ->check(finite(1, 2'678'400));
  app.add_option("--jobs,--threads", arguments.threads, "Simulations at a time")
      ->check(CLI::Range(1, 256));
  app.add_flag("--json", arguments.json, "Print a list of one object a policy, cell and seed");
  app.add_flag("--standard", arguments.standard,
               "Compare policies on the standard cells instead: the tables of docs/policies.md; "
               "without --policy those that it compares, without --seeds three seeds");
  app.add_option("--trace-folder", arguments.trace_folder,
                 "Where --standard finds conversation_trace.jsonl and synthetic_trace.jsonl")
      ->envname("PICKD_TRACES")
      ->capture_default_str();
  app.add_flag("--learned", arguments.learned, "Print the coefficients that were learned");
  app.add_option("--plot", arguments.plot, "Write a chart of mean TTFT against speed (SVG)");
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{
      "pickd-sim: replays a workload in virtual time against simulated engines, a policy at a "
      "time.\n"};
  app.footer(
      "Which policy and how many pods for a trace:\n"
      "  pickd-sim --trace my.jsonl --endpoints 8 12 16 --policy least-predicted-cost epp-default\n"
      "Exit codes: 0 done, 1 a workload or policy that cannot be simulated, 2 bad arguments.");
  add_options(app, arguments);
  pickd::tools::read_numbers_strictly(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    if (arguments.standard) {
      print_standard({arguments.trace_folder,
                      app.count("--policy") != 0 ? arguments.policies : standard_policies(),
                      app.count("--seeds") != 0 ? arguments.seeds : 3, arguments.sim.seed,
                      arguments.threads});
      return 0;
    }
    std::vector<Row> rows = make_rows(arguments);
    run(arguments, rows);
    if (arguments.json) {
      print_json(arguments, rows);
    } else {
      print_table(rows);
      print_answers(rows);
    }
    if (!arguments.plot.empty()) write_plot(arguments, rows);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pickd-sim: %s\n", error.what());
    return 1;
  }
  return 0;
}
