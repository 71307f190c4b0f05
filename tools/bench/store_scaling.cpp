#include "tools/bench/store_scaling.hpp"

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <thread>

namespace pickd::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 7;
constexpr std::uint32_t kThreads = 2;

// Requests first, first + step, ...: match, then insert. Blocks a second of the two calls, the
// making of prompts left out: each thread makes its own, and no table is touched by it.
double blocks_per_s(StoreSubject& subject, const StoreWorkload& workload,
                    const StoreOptions& options, std::uint32_t first, std::uint32_t step,
                    std::uint32_t thread) {
  PromptBuffer buffer;
  std::vector<std::uint32_t> blocks(options.endpoints);
  std::chrono::duration<double> spent{0};
  std::uint64_t done = 0;
  for (std::size_t at = first; at < workload.requests(); at += step) {
    const StorePrompt prompt = workload.prompt(at, 0, subject.wants_text(), buffer);
    const auto start = Clock::now();
    subject.match(prompt, 1 + at, blocks, thread);
    subject.insert(prompt, static_cast<std::uint32_t>(at % options.endpoints), 1 + at);
    spent += Clock::now() - start;
    done += prompt.keys.size();
  }
  return static_cast<double>(done) / spent.count();
}

// Both begin together, each with half of the requests; the sum of what they did.
double by_two(StoreSubject& first, StoreSubject& second, const StoreWorkload& workload,
              const StoreOptions& options) {
  std::barrier together(kThreads);
  std::array<double, kThreads> rates{};
  const bool shared = &first == &second;
  std::thread other([&] {
    together.arrive_and_wait();
    rates[1] = blocks_per_s(second, workload, options, 1, kThreads, shared ? 1 : 0);
  });
  together.arrive_and_wait();
  rates[0] = blocks_per_s(first, workload, options, 0, kThreads, 0);
  other.join();
  return rates[0] + rates[1];
}

double median(std::array<double, kRounds> values) {
  std::nth_element(values.begin(), values.begin() + kRounds / 2, values.end());
  return values[kRounds / 2];
}

}  // namespace

ScalingFigures measure_scaling(const MakeSubject& whole, const MakeSubject& half,
                               const StoreWorkload& workload, const StoreOptions& options) {
  std::array<double, kRounds> shared{};
  std::array<double, kRounds> apart{};
  for (std::size_t round = 0; round < kRounds; ++round) {
    const double one = blocks_per_s(*whole(false), workload, options, 0, 1, 0);
    const auto table = whole(false);
    shared[round] = by_two(*table, *table, workload, options) / one;
    const auto left = half(false);
    const auto right = half(false);
    apart[round] = by_two(*left, *right, workload, options) / one;
  }
  return {median(shared), median(apart)};
}

}  // namespace pickd::bench
