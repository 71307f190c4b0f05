// The prefix table as the daemon runs it, with its maintenance called once a tick.
#include <sys/mman.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "daemon/prefix/horizons.hpp"
#include "daemon/prefix/prefix_table.hpp"
#include "daemon/prefix/sweep.hpp"
#include "tools/bench/store_subject.hpp"

namespace pickd::bench {
namespace {

class PickdStore : public StoreSubject {
 public:
  PickdStore(std::uint32_t endpoints, std::uint64_t bytes, std::uint32_t threads)
      : bytes_(bytes / 128 * 128),
        records_(new abi::EndpointRecord[endpoints + 1]()),
        words_(map_words(bytes_)),
        ages_(endpoints + 1),
        table_(parts(endpoints), &ages_),
        horizons_(parts(endpoints), ages_),
        sweep_(parts(endpoints), ages_, horizons_),
        threads_(threads) {
    for (std::uint32_t id = 1; id <= endpoints; ++id) {
      ids_.push_back(static_cast<std::uint16_t>(id));
      records_[id].life.store(abi::LifeWord::make(1, 0, 0).bits);
      records_[id].confirmed_life.store(abi::LifeWord::make(1, 0, 0).bits);
    }
    for (auto& own : threads_) own = std::make_unique<Thread>(endpoints);
    horizons_.advance(1, 0);
  }
  ~PickdStore() override { ::munmap(words_, bytes_); }
  PickdStore(const PickdStore&) = delete;
  PickdStore& operator=(const PickdStore&) = delete;

  void match(const StorePrompt& prompt, std::uint64_t tick, std::span<std::uint32_t> blocks,
             std::uint32_t thread) override {
    // As a pick does it: the life words first, then the words.
    Thread& own = *threads_[thread];
    own.last_tick = tick;
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      own.lives[i] = records_[ids_[i]].life.load(std::memory_order_acquire);
    }
    table_.match(prompt.keys, stamp(tick), ids_, std::span(own.lives).first(ids_.size()), blocks,
                 own.scratch);
  }

  void insert(const StorePrompt& prompt, std::uint32_t endpoint, std::uint64_t tick) override {
    const prefix::StampOutcome outcome =
        table_.stamp(prompt.keys, endpoint + 1, stamp(tick), abi::Tier::kAssumed, stamp(tick));
    if (outcome.replaced != 0) replaced_.fetch_add(outcome.replaced, std::memory_order_relaxed);
  }

  StoreEviction maintain(std::uint64_t tick, std::uint64_t ttl_ticks) override {
    horizons_.advance(tick, ttl_ticks);
    const std::uint64_t lines = bytes_ / abi::kCacheLineBytes;
    return {sweep_.slice(tick, lines * kPassesPerTtl / ttl_ticks + 1).cleared};
  }

  StoreEviction evict_before(std::uint64_t tick) override {
    horizons_.advance(tick, 1);
    return {sweep_.slice(tick, bytes_ / abi::kCacheLineBytes).cleared};
  }

  void sweep(std::uint64_t tick) override { sweep_.slice(tick, bytes_ / abi::kCacheLineBytes); }

  std::uint64_t entries() override {
    // The pass that began long ago, and a whole one.
    std::uint64_t last_tick = 1;
    for (const auto& own : threads_) last_tick = std::max(last_tick, own->last_tick);
    while (sweep_.slice(last_tick, 1).passes == 0) continue;
    sweep_.slice(last_tick, bytes_ / abi::kCacheLineBytes);
    return sweep_.totals().live;
  }
  std::uint64_t bytes() override { return bytes_; }
  double load() override {
    const std::uint64_t word_count = bytes_ / sizeof(std::uint64_t);
    const auto words = static_cast<double>(word_count);
    return static_cast<double>(sweep_.totals().live + sweep_.totals().markers) / words;
  }
  std::uint64_t replaced() override { return replaced_.load(); }

 private:
  static constexpr std::uint64_t kPassesPerTtl = 2;

  // What a worker has for itself; two of them share no cache line, nor do two daemons' workers.
  struct alignas(2 * abi::kCacheLineBytes) Thread {
    explicit Thread(std::uint32_t endpoints) : lives(std::max<std::size_t>(endpoints, kApart)) {}
    static constexpr std::size_t kApart = 2 * abi::kCacheLineBytes / sizeof(std::uint64_t);
    std::uint64_t last_tick = 1;
    std::vector<std::uint64_t> lives;  // padded, so that the heap puts nothing else beside it
    prefix::MatchScratch scratch;
  };

  static std::atomic<std::uint64_t>* map_words(std::uint64_t bytes) {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
      throw std::runtime_error("no memory for the table: choose a smaller --state-mib");
    return static_cast<std::atomic<std::uint64_t>*>(memory);
  }
  prefix::TableParts parts(std::uint32_t endpoints) {
    return {words_, bytes_ / abi::kCacheLineBytes, records_.get(), endpoints + 1, &global_horizon_,
            10};
  }
  static std::uint32_t stamp(std::uint64_t tick) {
    return static_cast<std::uint32_t>(tick) & abi::kStampMask;
  }

  std::uint64_t bytes_;
  std::unique_ptr<abi::EndpointRecord[]> records_;
  std::atomic<std::uint64_t>* words_;
  std::atomic<std::uint64_t> global_horizon_{0};
  prefix::Ages ages_;
  prefix::PrefixTable table_;
  prefix::Horizons horizons_;
  prefix::Sweep sweep_;
  std::vector<std::uint16_t> ids_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::atomic<std::uint64_t> replaced_{0};
};

}  // namespace

std::unique_ptr<StoreSubject> make_pickd_store(std::uint32_t endpoints, std::uint64_t bytes,
                                               std::uint32_t threads) {
  return std::make_unique<PickdStore>(endpoints, bytes, threads);
}

}  // namespace pickd::bench
