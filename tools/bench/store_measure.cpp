// Timing loops of the store benchmark. See store_measure.hpp.
#include "tools/bench/store_measure.hpp"

#include <malloc.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "daemon/base/random.hpp"
#include "tools/bench/trace.hpp"
#include "tools/common/samples.hpp"

namespace pickd::bench {
namespace {

using Clock = std::chrono::steady_clock;

double ns_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::nano>(to - from).count();
}

struct Spent {
  double find_ns = 0;
  double insert_ns = 0;
  double maintain_ns = 0;
  std::uint64_t blocks = 0;
  tools::Samples finds;
};

// Requests `thread`, thread + threads, ... of one replay: match, then insert the chain.
void replay(StoreSubject& subject, const StoreWorkload& workload, const StoreOptions& options,
            std::uint32_t loop, std::uint32_t thread, std::uint64_t ttl_ticks, Spent& spent) {
  PromptBuffer buffer;
  std::vector<std::uint32_t> blocks(options.endpoints);
  for (std::size_t at = thread; at < workload.requests(); at += options.threads) {
    const StorePrompt prompt = workload.prompt(at, loop, subject.wants_text(), buffer);
    const std::uint64_t tick = 1 + loop * workload.requests() + at;
    const auto start = Clock::now();
    subject.match(prompt, tick, blocks, thread);
    const auto found = Clock::now();
    subject.insert(prompt, static_cast<std::uint32_t>(at % options.endpoints), tick);
    const auto inserted = Clock::now();
    if (ttl_ticks != 0) {
      subject.maintain(tick, ttl_ticks);
      spent.maintain_ns += ns_between(inserted, Clock::now());
    }
    spent.find_ns += ns_between(start, found);
    spent.insert_ns += ns_between(found, inserted);
    spent.blocks += prompt.keys.size();
    spent.finds.add(ns_between(start, found));
  }
}

Spent replay_by_all_threads(StoreSubject& subject, const StoreWorkload& workload,
                            const StoreOptions& options) {
  std::vector<Spent> spent(options.threads);
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 1; thread < options.threads; ++thread) {
    threads.emplace_back(
        [&, thread] { replay(subject, workload, options, 0, thread, 0, spent[thread]); });
  }
  replay(subject, workload, options, 0, 0, 0, spent[0]);
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t thread = 1; thread < options.threads; ++thread) {
    spent[0].find_ns += spent[thread].find_ns;
    spent[0].insert_ns += spent[thread].insert_ns;
    spent[0].blocks += spent[thread].blocks;
    spent[0].finds.add(spent[thread].finds);
  }
  return std::move(spent[0]);
}

double share_found(StoreSubject& subject, const StoreWorkload& workload,
                   const StoreOptions& options) {
  PromptBuffer buffer;
  const StorePrompt prompt = workload.shared(buffer);
  std::vector<std::uint32_t> blocks(options.endpoints);
  subject.match(prompt, workload.requests(), blocks, 0);
  const auto found = std::count(blocks.begin(), blocks.end(), options.shared_blocks);
  return static_cast<double>(found) / options.endpoints;
}

tools::Samples find_some(StoreSubject& subject, const StoreWorkload& workload,
                         const StoreOptions& options) {
  constexpr std::size_t kFinds = 12'000;
  tools::Samples finds;
  PromptBuffer buffer;
  std::vector<std::uint32_t> blocks(options.endpoints);
  base::Random random(1);
  for (std::size_t i = 0; i < kFinds; ++i) {
    const auto at = random.below(static_cast<std::uint32_t>(workload.requests()));
    const StorePrompt prompt = workload.prompt(at, 0, subject.wants_text(), buffer);
    const auto start = Clock::now();
    subject.match(prompt, workload.requests(), blocks, 0);
    finds.add(ns_between(start, Clock::now()));
  }
  return finds;
}

// Chains of one length after the other, each held by one endpoint in full and by the rest in part.
void find_by_length(StoreSubject& subject, const StoreWorkload& workload,
                    const StoreOptions& options, FindFigures& figures) {
  const std::uint32_t block_tokens = kTraceBlockTokens / options.expand;
  base::Random random(7);
  std::vector<std::uint32_t> blocks(options.endpoints);
  for (std::uint32_t tokens = 512; tokens <= 131'072; tokens *= 4) {
    constexpr std::uint32_t kChains = 64;
    std::vector<std::vector<std::uint64_t>> chains(kChains);
    for (auto& chain : chains) {
      for (std::uint32_t i = 0; i < std::max(1U, tokens / block_tokens); ++i)
        chain.push_back(random.next());
      for (std::uint32_t id = 0; id < std::min(8U, options.endpoints); ++id) {
        const std::size_t held =
            id == 0 ? chain.size() : random.below(static_cast<std::uint32_t>(chain.size()));
        subject.insert({std::span(chain).first(held), {}}, id, workload.requests());
      }
    }
    double total_ns = 0;
    for (int round = 0; round < 20; ++round) {
      for (const auto& chain : chains) {
        const auto start = Clock::now();
        subject.match({chain, {}}, workload.requests(), blocks, 0);
        total_ns += ns_between(start, Clock::now());
      }
    }
    figures.by_tokens.emplace_back(tokens, total_ns / (20 * kChains));
  }
}

void measure_finds(StoreSubject& subject, const StoreWorkload& workload,
                   const StoreOptions& options, FindFigures& figures) {
  const tools::Samples quiet = find_some(subject, workload, options);
  figures.quiet_p50_ns = quiet.percentile(0.5);
  figures.quiet_p99_ns = quiet.percentile(0.99);
  std::atomic<bool> done{false};
  std::atomic<bool> started{false};
  std::thread sweeper([&] {
    do {
      subject.sweep(workload.requests());
      started.store(true);
    } while (!done.load());
  });
  while (!started.load()) std::this_thread::yield();
  const tools::Samples sweeping = find_some(subject, workload, options);
  done.store(true);
  sweeper.join();
  figures.sweeping_p50_ns = sweeping.percentile(0.5);
  figures.sweeping_p99_ns = sweeping.percentile(0.99);
  find_by_length(subject, workload, options, figures);
}

// Of this thread: others on its core do not count.
double processor_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Everything expires at once; all of its room can be used again and what is held is counted anew.
void measure_eviction(StoreSubject& subject, std::uint64_t tick, StoreFigures& figures) {
  const std::uint64_t before = subject.entries();
  const double start = processor_ns();
  subject.evict_before(tick);
  const double spent_ns = processor_ns() - start;
  figures.evict_mentries_s = static_cast<double>(before - subject.entries()) * 1e3 / spent_ns;
}

void measure_steady(StoreSubject& subject, const StoreWorkload& workload,
                    const StoreOptions& options, StoreFigures& figures) {
  StoreOptions single = options;
  single.threads = 1;
  Spent spent;
  for (std::uint32_t loop = 0; loop < options.loops; ++loop) {
    if (loop <= 1) spent = {};  // the first replay only fills
    replay(subject, workload, single, loop, 0, options.ttl_ticks, spent);
  }
  // Nothing is left undone: what is dead by now is given back within the time that counts.
  const std::uint64_t end = options.loops * workload.requests();
  if (end > options.ttl_ticks) {
    const auto start = Clock::now();
    subject.evict_before(end - options.ttl_ticks);
    spent.maintain_ns += ns_between(start, Clock::now());
  }
  const double blocks = static_cast<double>(spent.blocks);
  figures.steady_find_p50_ns = spent.finds.percentile(0.5);
  figures.steady_find_p99_ns = spent.finds.percentile(0.99);
  figures.steady_insert_mblocks_s = blocks * 1e3 / spent.insert_ns;
  figures.steady_combined_mops_s =
      2 * blocks * 1e3 / (spent.find_ns + spent.insert_ns + spent.maintain_ns);
  subject.entries();
  figures.steady_load = subject.load();
  measure_eviction(subject, end + 2, figures);
}

}  // namespace

std::uint64_t heap_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

StoreFigures measure_subject(const MakeSubject& make, const StoreWorkload& workload,
                             const StoreOptions& options, FindFigures* finds) {
  StoreFigures figures;
  {
    const std::unique_ptr<StoreSubject> subject = make(false);
    const Spent spent = replay_by_all_threads(*subject, workload, options);
    const double blocks = static_cast<double>(spent.blocks);
    figures.find_p50_ns = spent.finds.percentile(0.5);
    figures.find_p99_ns = spent.finds.percentile(0.99);
    figures.find_mean_ns = spent.finds.mean();
    figures.insert_mblocks_s = blocks * 1e3 * options.threads / spent.insert_ns;
    figures.combined_mops_s =
        2 * blocks * 1e3 * options.threads / (spent.find_ns + spent.insert_ns);
    figures.bytes_per_holding =
        static_cast<double>(subject->bytes()) / static_cast<double>(subject->entries());
    figures.load = subject->load();
    figures.replaced = static_cast<double>(subject->replaced());
    if (options.shared_blocks != 0) figures.shared_found = share_found(*subject, workload, options);
    if (finds != nullptr) measure_finds(*subject, workload, options, *finds);
    if (options.ttl_ticks == 0) measure_eviction(*subject, workload.requests() + 2, figures);
  }
  if (options.ttl_ticks != 0) measure_steady(*make(true), workload, options, figures);
  return figures;
}

double measure_line_read_ns(std::uint64_t bytes) {
  const std::uint64_t lines = bytes / 64;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED)
    throw std::runtime_error("no memory to read lines from: choose a smaller --state-mib");
  auto* words = static_cast<std::uint64_t*>(memory);
  // One cycle through all lines (Sattolo), so that every read depends on the one before.
  std::vector<std::uint32_t> order(lines);
  std::iota(order.begin(), order.end(), 0U);
  base::Random random(1);
  for (std::uint64_t i = lines - 1; i > 0; --i)
    std::swap(order[i], order[random.below(static_cast<std::uint32_t>(i))]);
  for (std::uint64_t i = 0; i < lines; ++i)
    words[std::uint64_t{order[i]} * 8] = order[(i + 1) % lines];
  constexpr std::uint64_t kReads = 4'000'000;
  std::uint64_t at = 0;
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < kReads; ++i) at = words[at * 8];
  const double spent_ns = ns_between(start, Clock::now());
  // The end of the chain is used, or the chain need not be read.
  if (at >= lines) throw std::runtime_error("the chain of lines is broken");
  ::munmap(memory, bytes);
  return spent_ns / kReads;
}

}  // namespace pickd::bench
