#include "tools/sim/standard.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <unistd.h>

namespace pickd::sim {

namespace {

// 10 % noise on steps and on reports; rates are learned from nothing in each run.
constexpr double kNoise = .1;

struct Job {
  const Cell* cell;
  std::string trace;
  std::string policy;
  std::vector<Figures> seeds;
};

std::string trace_of(const Cell& cell, const std::string& folder) {
  if (!cell.trace.ends_with(".jsonl")) return cell.trace;
  const std::filesystem::path path = std::filesystem::path(folder) / cell.trace;
  return std::filesystem::exists(path) ? path.string() : "";
}

Figures run(const Job& job, std::uint64_t seed) {
  WorkloadOptions wanted;
  wanted.name = job.trace;
  wanted.speed = job.cell->speed;
  wanted.seconds = job.cell->seconds;
  wanted.seed = seed;
  wanted.endpoints = job.cell->endpoints;
  SimOptions options;
  options.policy = job.policy;
  options.endpoints = job.cell->endpoints;
  options.capacity_blocks = job.cell->capacity_blocks;
  options.slow_share = job.cell->slow_share;
  options.step_noise = kNoise;
  options.report_noise = kNoise;
  options.seed = seed;
  return figures_of(simulate(make_workload(wanted), options));
}

// "123 of 315 simulated, 4 min left" on stderr: a line of its own each tenth where that is a file.
class Progress {
 public:
  explicit Progress(std::size_t all) : all_(all) {}

  void step() {
    ++done_;
    const bool terminal = ::isatty(STDERR_FILENO) != 0;
    if (!terminal && done_ % std::max<std::size_t>(1, all_ / 10) != 0) return;
    const double spent_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - from_).count();
    const double left_s = spent_s * static_cast<double>(all_ - done_) / static_cast<double>(done_);
    std::fprintf(stderr, "%s%zu of %zu simulated, %.0f s so far, about %.0f s left%s",
                 terminal ? "\r" : "", done_, all_, spent_s, left_s, terminal ? "   " : "\n");
    if (terminal && done_ == all_) std::fprintf(stderr, "\n");
  }

 private:
  std::size_t all_;
  std::size_t done_ = 0;
  std::chrono::steady_clock::time_point from_ = std::chrono::steady_clock::now();
};

void run_all(std::vector<Job>& jobs, const StandardOptions& options) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::string error;
  const std::size_t all = jobs.size() * options.seeds;
  Progress progress(all);
  const auto work = [&] {
    for (std::size_t at = next++; at < all; at = next++) {
      Job& job = jobs[at / options.seeds];
      try {
        const Figures figures = run(job, options.first_seed + at % options.seeds);
        const std::lock_guard lock(mutex);
        job.seeds.push_back(figures);
        progress.step();
      } catch (const std::exception& failure) {
        const std::lock_guard lock(mutex);
        error = failure.what();
        next = all;
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned at = 0; at < std::max(1U, options.threads); ++at) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  if (!error.empty()) throw std::runtime_error(error);
}

// One cell, the policies in the order that was asked for.
struct Compared {
  const Cell* cell;
  std::vector<std::string> policies;
  std::vector<Summary> of;
};

std::vector<Compared> compare(const std::vector<Job>& jobs) {
  std::vector<Compared> cells;
  for (const Job& job : jobs) {
    if (cells.empty() || cells.back().cell != job.cell) cells.push_back({job.cell, {}, {}});
    cells.back().policies.push_back(job.policy);
    cells.back().of.push_back(summarise(job.seeds));
  }
  return cells;
}

void print_ttft(const std::vector<Compared>& cells) {
  std::printf(
      "Mean TTFT and its 90th percentile, s (+- half of the 95 %% interval of the mean over "
      "seeds). Bound: mean TTFT of\nrequests that are alone on an engine that holds all that "
      "was asked before.\n\n| cell | bound |");
  for (const std::string& policy : cells.front().policies) std::printf(" %s |", policy.c_str());
  std::printf("\n|---|---|");
  for (std::size_t at = 0; at < cells.front().policies.size(); ++at) std::printf("---|");
  std::printf("\n");
  for (const Compared& cell : cells) {
    std::printf("| %s | %.3f |", cell.cell->name.c_str(), cell.of[0].mean.bound_ttft_mean_s);
    for (const Summary& of : cell.of)
      std::printf(" %.3f +- %.3f / %.2f |", of.mean.ttft_mean_s, of.ttft_mean_ci95_s,
                  of.mean.ttft_p90_s);
    std::printf("\n");
  }
}

// The first policy against the second, and against the best of all others.
void print_first_against_others(const std::vector<Compared>& cells) {
  const char* first = cells.front().policies[0].c_str();
  const char* second = cells.front().policies[1].c_str();
  std::printf(
      "\n`%s` / `%s`, and against the best of all others.\n\n"
      "| cell | mean TTFT against `%s` | the bound against it | against the best mean "
      "| against the best p90 | hits, %% | ITL p90, ms | goodput, %% "
      "| best goodput of the others |\n"
      "|---|---|---|---|---|---|---|---|---|\n",
      first, second, second);
  double ratios = 0;
  for (const Compared& cell : cells) {
    const Figures& own = cell.of[0].mean;
    const Figures& other = cell.of[1].mean;
    std::size_t best_goodput = 1;
    double best_mean_s = other.ttft_mean_s;
    double best_p90_s = other.ttft_p90_s;
    for (std::size_t at = 1; at < cell.of.size(); ++at) {
      const Figures& each = cell.of[at].mean;
      best_mean_s = std::min(best_mean_s, each.ttft_mean_s);
      best_p90_s = std::min(best_p90_s, each.ttft_p90_s);
      if (each.goodput > cell.of[best_goodput].mean.goodput) best_goodput = at;
    }
    const double change = own.ttft_mean_s / other.ttft_mean_s - 1;
    ratios += change;
    std::printf(
        "| %s | %+.0f %% | %+.0f %% | %+.1f %% | %+.1f %% | %.1f / %.1f | %.0f / %.0f "
        "| %.1f / %.1f | %.1f (%s) |\n",
        cell.cell->name.c_str(), 100 * change,
        100 * (own.bound_ttft_mean_s / other.ttft_mean_s - 1),
        100 * (own.ttft_mean_s / best_mean_s - 1), 100 * (own.ttft_p90_s / best_p90_s - 1),
        100 * own.hit_rate, 100 * other.hit_rate, 1e3 * own.itl_p90_s, 1e3 * other.itl_p90_s,
        100 * own.goodput, 100 * other.goodput, 100 * cell.of[best_goodput].mean.goodput,
        cell.policies[best_goodput].c_str());
  }
  std::printf("\nMean TTFT against `%s`: %+.0f %% on average of the cells.\n", second,
              100 * ratios / static_cast<double>(cells.size()));
}

void print_predictions(const std::vector<Compared>& cells) {
  std::printf(
      "\nPredictions of `%s`: mean absolute error of TTFT as predicted at the pick, and of "
      "ITL given what ran; share of the\ntime in which somebody waits at an engine for a "
      "first token, mean over engines.\n\n"
      "| cell | TTFT error, %% | ITL error, %% | queued, %% of the time |\n|---|---|---|---|\n",
      cells.front().policies[0].c_str());
  for (const Compared& cell : cells) {
    const Figures& own = cell.of[0].mean;
    std::printf("| %s | %.1f | %.1f | %.0f |\n", cell.cell->name.c_str(), 100 * own.ttft_mape,
                100 * own.itl_given_mape, 100 * own.queued_share);
  }
}

}  // namespace

const std::vector<Cell>& standard_cells() {
  static const std::vector<Cell> kCells = {
      {"conversation, 1.0 x, 5,000 blocks", "conversation_trace.jsonl", 1},
      {"conversation, 1.4 x, 5,000 blocks", "conversation_trace.jsonl", 1.4},
      {"conversation, 1.8 x, 5,000 blocks", "conversation_trace.jsonl", 1.8},
      {"conversation, 1.0 x, 1,000 blocks", "conversation_trace.jsonl", 1, 0, 8, 1000},
      {"conversation, 1.8 x, 1,000 blocks", "conversation_trace.jsonl", 1.8, 0, 8, 1000},
      {"conversation, 1.8 x, 16 engines", "conversation_trace.jsonl", 1.8, 0, 16},
      {"synthetic, 1.5 x", "synthetic_trace.jsonl", 1.5},
      {"a quarter shares 6,144 tokens, 64 engines", "hot-prefix", 1, 600, 64},
      {"unrelated prompts", "unrelated", 1, 600},
      {"bursts of 200 equal prefixes", "bursts", 1, 600},
      {"half of the engines at half speed, 1.15 x", "conversation_trace.jsonl", 1.15, 0, 8, 5000,
       .5},
      {"chat, 20 system prompts", "chat", 1, 600},
      {"agents, 5 sets of tools", "agents", 1, 600},
      {"documents in changing order", "rag", 1, 600},
      {"mixed wishes at 90 % load", "mixed-slo", 1, 600},
      {"RL batches, 16 answers a prompt", "rl", 1, 600},
  };
  return kCells;
}

std::vector<std::string> standard_policies() {
  return {"least-predicted-cost", "epp-default", "epp-affinity", "lmetric",
          "sglang-cache-aware",   "dynamo-cost", "prefix-load"};
}

void print_standard(const StandardOptions& options) {
  std::vector<Job> jobs;
  for (const Cell& cell : standard_cells()) {
    const std::string trace = trace_of(cell, options.trace_folder);
    if (trace.empty()) {
      std::printf("left out, %s is not in \"%s\" (--trace-folder): %s\n", cell.trace.c_str(),
                  options.trace_folder.c_str(), cell.name.c_str());
      continue;
    }
    for (const std::string& policy : options.policies) jobs.push_back({&cell, trace, policy, {}});
  }
  if (jobs.empty()) return;
  run_all(jobs, options);
  const std::vector<Compared> cells = compare(jobs);
  print_ttft(cells);
  if (options.policies.size() > 1) print_first_against_others(cells);
  print_predictions(cells);
}

}  // namespace pickd::sim
