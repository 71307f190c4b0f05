#include "tools/sim/standard.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <thread>

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

void run_all(std::vector<Job>& jobs, const StandardOptions& options) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::string error;
  const std::size_t all = jobs.size() * options.seeds;
  const auto work = [&] {
    for (std::size_t at = next++; at < all; at = next++) {
      Job& job = jobs[at / options.seeds];
      try {
        const Figures figures = run(job, at % options.seeds + 1);
        const std::lock_guard lock(mutex);
        job.seeds.push_back(figures);
        std::fprintf(stderr, "\r%zu of %zu simulated", std::min(next.load(), all), all);
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
  std::fprintf(stderr, "\r%40s\r", "");
  if (!error.empty()) throw std::runtime_error(error);
}

void print_cell(const Cell& cell, const std::vector<const Job*>& jobs) {
  std::printf("\n%s\n", cell.name.c_str());
  std::printf("  %-22s %6s  %-17s %7s %8s  %7s %7s %7s %6s\n", "policy", "hits", "TTFT mean", "p90",
              "ITL p90", "goodput", "SLOs", "busiest", "MAPE");
  for (const Job* job : jobs) {
    const Summary summary = summarise(job->seeds);
    const Figures& mean = summary.mean;
    std::printf("  %-22s %5.1f%%  %6.3f +- %-6.3f s %6.2fs %6.1fms  %6.1f%% %7s %6.1f%% %5.1f%%\n",
                job->policy.c_str(), 100 * mean.hit_rate, mean.ttft_mean_s,
                summary.ttft_mean_ci95_s, mean.ttft_p90_s, 1e3 * mean.itl_p90_s, 100 * mean.goodput,
                share_text(mean.attainment).c_str(), 100 * mean.busiest_share,
                100 * mean.ttft_mape);
  }
  if (jobs.size() < 2) return;
  const Figures first = summarise(jobs.front()->seeds).mean;
  double best_ttft_s = 1e300;
  double best_goodput = 0;
  for (std::size_t at = 1; at < jobs.size(); ++at) {
    const Figures mean = summarise(jobs[at]->seeds).mean;
    best_ttft_s = std::min(best_ttft_s, mean.ttft_mean_s);
    best_goodput = std::max(best_goodput, mean.goodput);
  }
  std::printf("  %s against the best of the others: mean TTFT x %.3f, goodput %+.1f points\n",
              jobs.front()->policy.c_str(), first.ttft_mean_s / best_ttft_s,
              100 * (first.goodput - best_goodput));
}

}  // namespace

const std::vector<Cell>& standard_cells() {
  static const std::vector<Cell> kCells = {
      {"conversation, 1.0 x, 8 engines of 5,000 blocks", "conversation_trace.jsonl", 1},
      {"conversation, 1.4 x, 8 engines of 5,000 blocks", "conversation_trace.jsonl", 1.4},
      {"conversation, 1.8 x, 8 engines of 5,000 blocks", "conversation_trace.jsonl", 1.8},
      {"conversation, 1.0 x, 8 engines of 1,000 blocks", "conversation_trace.jsonl", 1, 0, 8, 1000},
      {"conversation, 1.8 x, 8 engines of 1,000 blocks", "conversation_trace.jsonl", 1.8, 0, 8,
       1000},
      {"conversation, 1.8 x, 16 engines of 5,000 blocks", "conversation_trace.jsonl", 1.8, 0, 16},
      {"synthetic, 1.5 x, 8 engines of 5,000 blocks", "synthetic_trace.jsonl", 1.5},
      {"a quarter shares one prompt of 6,144 tokens, 64 engines", "hot-prefix", 1, 600, 64},
      {"unrelated prompts, 8 engines", "unrelated", 1, 600},
      {"bursts of 200 equal prefixes, 8 engines", "bursts", 1, 600},
      {"half of 8 engines at half speed, conversation 1.15 x", "conversation_trace.jsonl", 1.15, 0,
       8, 5000, .5},
      {"chat behind 20 system prompts, 8 engines", "chat", 1, 600},
      {"agents behind 5 sets of tools, 8 engines", "agents", 1, 600},
      {"documents in changing order, 8 engines", "rag", 1, 600},
      {"mixed SLOs at 90 % load, 8 engines", "mixed-slo", 1, 600},
      {"batches of reinforcement learning, 8 engines", "rl", 1, 600},
  };
  return kCells;
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
  run_all(jobs, options);
  for (const Cell& cell : standard_cells()) {
    std::vector<const Job*> of_cell;
    for (const Job& job : jobs) {
      if (job.cell == &cell) of_cell.push_back(&job);
    }
    if (!of_cell.empty()) print_cell(cell, of_cell);
  }
}

}  // namespace pickd::sim
