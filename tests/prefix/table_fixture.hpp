// The memory of a prefix table in a test, with virtual time: words, records, horizons, sweep.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "daemon/base/random.hpp"
#include "daemon/prefix/horizons.hpp"
#include "daemon/prefix/prefix_table.hpp"
#include "daemon/prefix/sweep.hpp"

namespace pickd::prefix::test {

inline std::uint64_t mixed(std::uint64_t value) { return base::Random(value).next(); }

// The keys of a chain: key i depends on every value before it.
inline std::vector<std::uint64_t> chain(std::uint64_t root, std::span<const std::uint64_t> values) {
  std::vector<std::uint64_t> keys;
  std::uint64_t key = mixed(root + (1ULL << 60));
  for (const std::uint64_t value : values) keys.push_back(key = mixed(key ^ mixed(value)));
  return keys;
}
inline std::vector<std::uint64_t> chain(std::uint64_t root, std::size_t length) {
  std::vector<std::uint64_t> values(length);
  for (std::size_t i = 0; i < length; ++i) values[i] = i;
  return chain(root, values);
}

class TestTable {
 public:
  struct Options {
    std::uint64_t lines = 1 << 12;
    std::uint32_t endpoint_ids = 32;
    std::uint32_t hot_holders = 10;
    std::uint64_t tick = 1000;
    std::uint64_t ttl_ticks = 0;
  };

  explicit TestTable(const Options& options)
      : options_(options),
        now(options.tick),
        memory_(static_cast<std::atomic<std::uint64_t>*>(
            ::operator new (options.lines * 64, std::align_val_t{64}))),
        records_(new abi::EndpointRecord[options.endpoint_ids]()),
        ages(options.endpoint_ids),
        table(parts(), &ages),
        horizons(parts(), ages),
        sweep(parts(), ages, horizons) {
    for (std::uint64_t i = 0; i < options.lines * 8; ++i)
      new (memory_.get() + i) std::atomic<std::uint64_t>(0);
    for (std::uint32_t id = 1; id < options.endpoint_ids; ++id) reset(id);
    global_horizon.store(now);
    advance();
  }

  TableParts parts() {
    return {memory_.get(),         options_.lines,  records_.get(),
            options_.endpoint_ids, &global_horizon, options_.hot_holders};
  }

  std::uint32_t stamp_now() const { return static_cast<std::uint32_t>(now) & abi::kStampMask; }

  // As the endpoint table does it; a first generation may be stamped in the tick in which it
  // begins.
  void reset(std::uint32_t id) {
    for (abi::Word* word : {&records_[id].confirmed_life, &records_[id].life}) {
      const abi::LifeWord old{word->load()};
      const std::uint32_t floor = old.bits == 0 ? stamp_now() : abi::floor_after(old, now);
      word->store(abi::LifeWord::make(old.generation() + 1, floor, floor).bits);
    }
  }

  // For tests of lines that are full; until the next advance().
  void lift_load_limit() { ages.set_room(ages.came(), std::int64_t{1} << 40); }

  void advance() { horizons.advance(now, options_.ttl_ticks); }
  void advance_to(std::uint64_t tick) {
    now = tick;
    advance();
  }
  SweepOutcome sweep_all() { return sweep.slice(now, options_.lines); }

  abi::LifeWord life(std::uint32_t id) const { return {records_[id].life.load()}; }
  abi::EndpointRecord& record(std::uint32_t id) { return records_[id]; }

  StampOutcome stamp(std::span<const std::uint64_t> keys, std::uint32_t id,
                     abi::Tier tier = abi::Tier::kAssumed) {
    return table.stamp(keys, id, stamp_at(now, life(id)), tier, stamp_now());
  }

  std::vector<std::uint32_t> match(std::span<const std::uint64_t> keys,
                                   std::span<const std::uint16_t> ids, bool exact = false) {
    std::vector<std::uint64_t> lives;
    for (const std::uint16_t id : ids) lives.push_back(life(id).bits);
    std::vector<std::uint32_t> blocks(ids.size(), ~0U);
    if (exact)
      table.match_exact(keys, stamp_now(), ids, lives, blocks, *scratch_);
    else
      table.match(keys, stamp_now(), ids, lives, blocks, *scratch_);
    return blocks;
  }
  std::uint32_t match_one(std::span<const std::uint64_t> keys, std::uint16_t id,
                          bool exact = false) {
    const std::uint16_t ids[] = {id};
    return match(keys, ids, exact)[0];
  }
  std::vector<std::uint16_t> all_ids() const {
    std::vector<std::uint16_t> ids;
    for (std::uint32_t id = 1; id < options_.endpoint_ids; ++id)
      ids.push_back(static_cast<std::uint16_t>(id));
    return ids;
  }

  // Counted one by one, by the rule of the layout alone.
  struct Census {
    std::uint64_t live = 0;  // words of endpoints
    std::uint64_t markers = 0;
    std::uint64_t occupied = 0;
    std::vector<std::uint64_t> by_endpoint;
  };
  Census census() const {
    Census found;
    found.by_endpoint.resize(options_.endpoint_ids);
    for (std::uint64_t i = 0; i < options_.lines * 8; ++i) {
      const abi::PrefixWord word{memory_.get()[i].load(std::memory_order_relaxed)};
      if (word.empty()) continue;
      ++found.occupied;
      if (word.endpoint() == 0) {
        found.markers += abi::stamp_is_live(
            word.stamp(), static_cast<std::uint32_t>(global_horizon.load()) & abi::kStampMask,
            stamp_now());
        continue;
      }
      const abi::EndpointRecord& of = records_[word.endpoint()];
      const abi::LifeWord rule{
          (word.tier() == abi::Tier::kAssumed ? of.life : of.confirmed_life).load()};
      if (!abi::stamp_is_live(word.stamp(), rule.horizon(), stamp_now())) continue;
      ++found.live;
      ++found.by_endpoint[word.endpoint()];
    }
    return found;
  }
  double true_load() const {
    const Census found = census();
    return static_cast<double>(found.live + found.markers) /
           static_cast<double>(options_.lines * 8);
  }
  std::span<std::atomic<std::uint64_t>> words() { return {memory_.get(), options_.lines * 8}; }

 private:
  struct Free {
    void operator()(std::atomic<std::uint64_t>* memory) const {
      ::operator delete (memory, std::align_val_t{64});
    }
  };
  Options options_;

 public:
  std::uint64_t now;  // the virtual clock, in ticks

 private:
  std::unique_ptr<std::atomic<std::uint64_t>, Free> memory_;
  std::unique_ptr<abi::EndpointRecord[]> records_;
  std::unique_ptr<MatchScratch> scratch_ = std::make_unique<MatchScratch>();

 public:
  std::atomic<std::uint64_t> global_horizon{0};
  Ages ages;
  PrefixTable table;
  Horizons horizons;
  Sweep sweep;
};

}  // namespace pickd::prefix::test
