// The store over a state file as the daemon runs it: segment, table, ages, horizons, sweep, driven
// by a script in one thread and virtual ticks.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/prefix/horizons.hpp"
#include "daemon/prefix/prefix_table.hpp"
#include "daemon/prefix/sweep.hpp"
#include "daemon/state/state_segment.hpp"
#include "tests/crash/script.hpp"

namespace pickd::crash {

inline state::StateParameters parameters(std::uint64_t mib = 2) {
  state::StateParameters made;
  made.bytes = mib << 20;
  made.endpoints_max = kEndpoints;
  made.reservations_max = 64;
  made.hot_holders = 4;
  made.ttl_ticks = kTtlTicks;
  return made;
}

class Store {
 public:
  static constexpr std::uint64_t kRoomyLines = 64;

  // `lines`: of the file's lines so many are used; few, so that the table is full in a short time.
  Store(const std::string& path, std::uint64_t lines, std::string* origin) : lines_(lines) {
    auto opened = state::StateSegment::open_or_create(path, parameters(), origin);
    EXPECT_TRUE(opened.ok()) << opened.error().text;
    segment_ = std::move(opened.value());
    ages_ = std::make_unique<prefix::Ages>(kEndpoints + 1);
    table_ = std::make_unique<prefix::PrefixTable>(parts(), ages_.get());
    horizons_ = std::make_unique<prefix::Horizons>(parts(), *ages_);
    sweep_ = std::make_unique<prefix::Sweep>(parts(), *ages_, *horizons_);
  }

  // The first generation of every endpoint.
  void add_endpoints() {
    for (std::uint32_t id = 1; id <= kEndpoints; ++id) {
      for (abi::Word* word : {&record(id).confirmed_life, &record(id).life}) {
        word->store(abi::LifeWord::make(1, kFirstTick, kFirstTick).bits);
      }
    }
    record(kCapped).capacity_blocks.store(kCapacity);
    segment_->header().global_horizon.store(kFirstTick);
  }
  // What the maintenance does when a daemon starts: everything is counted before anything is cut.
  void begin(std::uint64_t tick) {
    horizons_->advance(tick, kTtlTicks);
    sweep_->slice(tick, lines_);
    horizons_->recount();
    horizons_->advance(tick, kTtlTicks);
    if (lines_ < kRoomyLines) ages_->set_room(ages_->came(), std::int64_t{1} << 40);
  }

  // Returns how many blocks it may have cost: those whose words were replaced, those left out.
  std::uint64_t run(const Script& script, const Operation& operation, std::uint64_t tick) {
    const std::uint32_t id = operation.endpoint;
    switch (operation.kind) {
      case Operation::Kind::kStamp: {
        const abi::Word& word = confirmed(id) ? record(id).confirmed_life : record(id).life;
        const std::uint32_t stamp = prefix::stamp_at(tick, {word.load()});
        const prefix::StampOutcome outcome =
            table_->stamp(script.prompts[operation.prompt], id, stamp,
                          confirmed(id) ? abi::Tier::kGpu : abi::Tier::kAssumed, stamp_of(tick));
        return outcome.replaced + outcome.left_out;
      }
      case Operation::Kind::kRemove:
        table_->remove(script.prompts[operation.prompt].back(), id, stamp_of(tick));
        return 0;
      case Operation::Kind::kReset: reset(id, tick); return 0;
      case Operation::Kind::kTime:
        horizons_->advance(tick + operation.ticks, kTtlTicks);
        // A table of a few lines has to be filled beyond the load limit, or nothing is replaced.
        if (lines_ < kRoomyLines) ages_->set_room(ages_->came(), std::int64_t{1} << 40);
        return 0;
      case Operation::Kind::kSweep: sweep_->slice(tick, lines_); return 0;
    }
    return 0;
  }

  // A reset that was broken off between its two stores is ended, as a daemon that starts does it.
  void repair(std::uint64_t tick) {
    for (std::uint32_t id = 1; id <= kEndpoints; ++id) {
      const abi::LifeWord life{record(id).life.load()};
      const abi::LifeWord sure{record(id).confirmed_life.load()};
      if (life.generation() != sure.generation()) reset(id, tick);
    }
  }

  bool finds(std::uint64_t key, std::uint32_t id, std::uint64_t tick) {
    const std::uint64_t keys[] = {key};
    return match(keys, id, tick, true) == 1;
  }
  std::uint32_t match(std::span<const std::uint64_t> keys, std::uint32_t id, std::uint64_t tick,
                      bool exact) {
    const std::uint16_t ids[] = {static_cast<std::uint16_t>(id)};
    const std::uint64_t lives[] = {record(id).life.load()};
    std::uint32_t blocks[1];
    if (exact)
      table_->match_exact(keys, stamp_of(tick), ids, lives, blocks, *scratch_);
    else
      table_->match(keys, stamp_of(tick), ids, lives, blocks, *scratch_);
    return blocks[0];
  }

  // Full tick from which the endpoint's words live, by the word in the file.
  std::uint64_t horizon(std::uint32_t id, std::uint64_t tick) {
    const abi::Word& word = confirmed(id) ? record(id).confirmed_life : record(id).life;
    const std::uint32_t horizon = abi::LifeWord{word.load()}.horizon();
    const std::uint32_t ahead = (horizon - stamp_of(tick)) & abi::kStampMask;
    return ahead <= abi::kAheadTicks ? tick + ahead : tick + ahead - (1ULL << abi::kStampBits);
  }
  std::uint32_t generation(std::uint32_t id) {
    return abi::LifeWord{record(id).life.load()}.generation();
  }
  struct Counted {
    std::uint64_t words_of_capped;
    double load;
  };
  // After one period of maintenance.
  Counted count(std::uint64_t tick) {
    begin(tick);
    sweep_->slice(tick, lines_);
    const auto words = static_cast<double>(lines_ * abi::kWordsPerLine);
    return {sweep_->live_words(kCapped),
            static_cast<double>(sweep_->totals().live + sweep_->totals().markers) / words};
  }

 private:
  static std::uint32_t stamp_of(std::uint64_t tick) {
    return static_cast<std::uint32_t>(tick) & abi::kStampMask;
  }
  abi::EndpointRecord& record(std::uint32_t id) { return segment_->endpoints()[id]; }

  void reset(std::uint32_t id, std::uint64_t tick) {
    const abi::LifeWord old{record(id).life.load()};
    const std::uint32_t floor = abi::floor_after(old, tick);
    const std::uint64_t next = abi::LifeWord::make(old.generation() + 1, floor, floor).bits;
    PICKD_STEP("reset: before");
    record(id).confirmed_life.store(next);
    PICKD_STEP("reset: half");
    record(id).life.store(next);
    PICKD_STEP("reset: after");
  }

  prefix::TableParts parts() {
    return {segment_->prefix_words(),
            lines_,
            segment_->endpoints(),
            kEndpoints + 1,
            &segment_->header().global_horizon,
            segment_->header().hot_holders};
  }

  std::uint64_t lines_;
  std::unique_ptr<state::StateSegment> segment_;
  std::unique_ptr<prefix::Ages> ages_;
  std::unique_ptr<prefix::PrefixTable> table_;
  std::unique_ptr<prefix::Horizons> horizons_;
  std::unique_ptr<prefix::Sweep> sweep_;
  std::unique_ptr<prefix::MatchScratch> scratch_ = std::make_unique<prefix::MatchScratch>();
};

}  // namespace pickd::crash
