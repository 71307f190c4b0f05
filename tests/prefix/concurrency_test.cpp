// Stampers, event writers, the maintenance, resets and readers at once. Meant for ThreadSanitizer;
// what it asserts while they run is what any interleaving must keep, and afterwards the table must
// be equal to what each thread knows it did last.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/prefix/table_fixture.hpp"

namespace pickd::prefix::test {
namespace {

constexpr std::uint32_t kRounds = 400;

// Endpoints by who writes them.
constexpr std::uint32_t kStamperA = 1;  // 1..12, together with B: the same words from two threads
constexpr std::uint32_t kStampedEnd = 13;
constexpr std::uint32_t kEvents = 13;  // one event writer: stores and removals
constexpr std::uint32_t kReset = 14;   // is reset all the time

class Crowd {
 public:
  void run() {
    std::vector<std::thread> threads;
    threads.emplace_back([this] { stamp_shared(1); });
    threads.emplace_back([this] { stamp_shared(2); });
    threads.emplace_back([this] { write_events(); });
    threads.emplace_back([this] { pick_and_reset(); });
    std::thread maintenance([this] { maintain(); });
    std::thread reader([this] { read(); });
    for (std::thread& thread : threads) thread.join();
    done_.store(true);
    maintenance.join();
    reader.join();
  }

  void check() {
    t_.now = tick_.load();
    t_.advance();
    t_.sweep_all();  // ends the pass that raced,
    t_.sweep_all();  // and this one did not
    for (std::uint32_t id = kStamperA; id < kStampedEnd; ++id) {
      for (const auto& prompt : prompts_) {
        ASSERT_EQ(t_.match_one(prompt, static_cast<std::uint16_t>(id), true), prompt.size()) << id;
      }
    }
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
      for (std::size_t at = kHead; at < prompts_[i].size(); ++at) {
        ASSERT_EQ(t_.match_one(std::span(prompts_[i]).subspan(at, 1), kEvents, true) == 1,
                  stored_[i][at]);
      }
    }
    EXPECT_GT(looks_.load(), 0U);
    EXPECT_EQ(too_old_.load(), 0U);
    t_.horizons.recount();
    t_.advance();
    EXPECT_NEAR(t_.horizons.live_words(),
                static_cast<double>(t_.census().live + t_.census().markers), 1.0)
        << "a pass without races sets every count right";
  }

 private:
  std::uint32_t now() const { return static_cast<std::uint32_t>(tick_.load()) & abi::kStampMask; }

  void stamp_shared(std::uint64_t seed) {
    base::Random random(seed);
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      for (std::uint32_t id = kStamperA; id < kStampedEnd; ++id) {
        const std::uint64_t tick = tick_.load();
        const auto& prompt = prompts_[round < kRounds - 1 ? random.below(kPrompts) : 0];
        t_.table.stamp(prompt, id, stamp_at(tick, t_.life(id)), abi::Tier::kAssumed, now());
      }
    }
    for (std::uint32_t id = kStamperA; id < kStampedEnd; ++id) {
      for (const auto& prompt : prompts_) {
        t_.table.stamp(prompt, id, stamp_at(tick_.load(), t_.life(id)), abi::Tier::kAssumed, now());
      }
    }
  }

  void write_events() {
    base::Random random(3);
    for (std::uint32_t round = 0; round < kRounds * 4; ++round) {
      const std::size_t prompt = random.below(kPrompts);
      const std::size_t behind_head = prompts_[prompt].size() - kHead;
      if (behind_head == 0) continue;
      const std::size_t at = kHead + random.below(static_cast<std::uint32_t>(behind_head));
      const auto keys = std::span(prompts_[prompt]).subspan(at, 1);
      stored_[prompt][at] = random.below(2) == 0;
      if (stored_[prompt][at]) {
        t_.table.stamp(keys, kEvents, stamp_at(tick_.load(), t_.life(kEvents)), abi::Tier::kGpu,
                       now());
      } else {
        t_.table.remove(keys[0], kEvents, now());
      }
    }
  }

  // Everything stamped for kReset before its last reset must be invisible to who reads its life
  // after.
  void pick_and_reset() {
    base::Random random(4);
    MatchScratch scratch;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      const auto& prompt = prompts_[random.below(kPrompts)];
      t_.table.stamp(prompt, kReset, stamp_at(tick_.load(), t_.life(kReset)), abi::Tier::kAssumed,
                     now());
      std::uint64_t tick;
      do {
        tick = tick_.load();
        const std::uint32_t floor = abi::floor_after(t_.life(kReset), tick);
        const std::uint32_t generation = t_.life(kReset).generation() + 1;
        t_.record(kReset).confirmed_life.store(abi::LifeWord::make(generation, floor, floor).bits);
        t_.record(kReset).life.store(abi::LifeWord::make(generation, floor, floor).bits);
      } while (tick_.load() != tick);
      const std::uint16_t ids[] = {kReset};
      const std::uint64_t lives[] = {t_.life(kReset).bits};
      std::uint32_t blocks[1];
      t_.table.match(prompt, now(), ids, lives, blocks, scratch);
      if (blocks[0] != 0) too_old_.fetch_add(1);
    }
  }

  void maintain() {
    while (!done_.load()) {
      const std::uint64_t tick = tick_.fetch_add(1) + 1;
      t_.horizons.advance(tick, kTtl);
      t_.sweep.slice(tick, 97);
    }
  }

  void read() {
    auto scratch = std::make_unique<MatchScratch>();
    base::Random random(5);
    const auto ids = t_.all_ids();
    std::vector<std::uint64_t> lives(ids.size());
    std::vector<std::uint32_t> blocks(ids.size());
    do {
      const std::uint32_t before = now();
      for (std::size_t i = 0; i < ids.size(); ++i) lives[i] = t_.life(ids[i]).bits;
      const auto& prompt = prompts_[random.below(kPrompts)];
      if (random.below(2) == 0)
        t_.table.match(prompt, before, ids, lives, blocks, *scratch);
      else
        t_.table.match_exact(prompt, before, ids, lives, blocks, *scratch);
      for (const std::uint32_t found : blocks) ASSERT_LE(found, prompt.size());
      ASSERT_EQ(blocks[14], 0U) << "nobody ever stamped endpoint 15";
      looks_.fetch_add(1);
    } while (!done_.load());
  }

  static constexpr std::uint32_t kPrompts = 24;
  static constexpr std::size_t kHead = 8;  // keys that prompts share; events are about the rest
  static constexpr std::uint64_t kTtl = 500'000;

  TestTable t_{{.lines = 1 << 13,
                .endpoint_ids = 16,
                .hot_holders = 6,
                .tick = 1'000'000,
                .ttl_ticks = kTtl}};
  std::atomic<std::uint64_t> tick_{1'000'000};
  std::atomic<bool> done_{false};
  std::atomic<std::uint64_t> looks_{0};
  std::atomic<std::uint64_t> too_old_{0};
  std::vector<std::vector<std::uint64_t>> prompts_ = [] {
    std::vector<std::vector<std::uint64_t>> made;
    base::Random random(9);
    for (std::uint32_t i = 0; i < kPrompts; ++i) {
      std::vector<std::uint64_t> values(kHead + random.below(24));
      for (std::size_t at = kHead; at < values.size(); ++at) values[at] = i + at;
      made.push_back(chain(i % 3, values));
    }
    return made;
  }();
  // By prompt and block; written by the event writer, read after it was joined.
  std::vector<std::vector<bool>> stored_ =
      std::vector<std::vector<bool>>(kPrompts, std::vector<bool>(32));
};

TEST(Concurrency, LeavesTheTableEqualToWhatEveryThreadDidLast) {
  Crowd crowd;
  crowd.run();
  crowd.check();
}

}  // namespace
}  // namespace pickd::prefix::test
