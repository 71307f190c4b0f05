// The table against a naive model, maps of maps, under random operations in virtual time.
//
// The model knows nothing of lines, words or horizons but this: what an endpoint was told it holds,
// when, and how sure. Where forgetting is a matter of estimates (capacity, load), the horizon that
// the table chose is taken over and only its direction checked. Short by default; LONG_TESTS=1
// makes it a million operations a seed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <unordered_map>

#include "tests/prefix/table_fixture.hpp"

namespace pickd::prefix::test {
namespace {

constexpr std::uint32_t kEndpoints = 24;

struct Held {
  std::int64_t tick;
  bool confirmed;
};

class Model {
 public:
  explicit Model(std::int64_t now) { floors_.fill(now), horizons_.fill(now), confirmed_.fill(now); }

  void advance(std::int64_t now, std::int64_t ttl) {
    for (std::uint32_t id = 1; id <= kEndpoints; ++id)
      horizons_[id] = std::max(horizons_[id], now - ttl);
  }
  void reset(std::uint32_t id, std::int64_t now) {
    floors_[id] = horizons_[id] = confirmed_[id] = std::max(now, floors_[id]) + 1;
  }
  void adopt(std::uint32_t id, std::int64_t horizon, std::int64_t confirmed) {
    horizons_[id] = horizon;
    confirmed_[id] = confirmed;
  }
  std::int64_t floor(std::uint32_t id) const { return floors_[id]; }
  std::int64_t horizon(std::uint32_t id) const { return horizons_[id]; }

  bool lives(const Held& held, std::uint32_t id) const {
    return held.tick >= (held.confirmed ? confirmed_[id] : horizons_[id]);
  }
  void stamp(std::uint64_t key, std::uint32_t id, std::int64_t tick, bool confirmed) {
    if (tick < (confirmed ? confirmed_[id] : horizons_[id])) return;
    const auto [at, made] = holders_[key].try_emplace(id, Held{tick, confirmed});
    if (made) return;
    if (!(at->second.confirmed && !confirmed && lives(at->second, id)))
      at->second.confirmed = confirmed;
    at->second.tick = std::max(at->second.tick, tick);
  }
  void remove(std::uint64_t key, std::uint32_t id) {
    if (const auto at = holders_.find(key); at != holders_.end()) at->second.erase(id);
  }
  bool holds(std::uint64_t key, std::uint32_t id) const {
    const auto at = holders_.find(key);
    if (at == holders_.end()) return false;
    const auto held = at->second.find(id);
    return held != at->second.end() && lives(held->second, id);
  }
  std::uint32_t match(std::span<const std::uint64_t> keys, std::uint32_t id) const {
    std::uint32_t blocks = 0;
    while (blocks < keys.size() && holds(keys[blocks], id)) ++blocks;
    return blocks;
  }
  template <typename Visit>
  void for_each_live(Visit&& visit) const {
    for (const auto& [key, holders] : holders_) {
      for (const auto& [id, held] : holders) {
        if (lives(held, id)) visit(key, id);
      }
    }
  }

 private:
  std::unordered_map<std::uint64_t, std::map<std::uint32_t, Held>> holders_;
  std::array<std::int64_t, kEndpoints + 1> floors_{};
  std::array<std::int64_t, kEndpoints + 1> horizons_{};
  std::array<std::int64_t, kEndpoints + 1> confirmed_{};
};

struct ModelCase {
  const char* name;
  std::uint64_t seed;
  std::uint64_t lines;
  bool tight;  // capacity, load and replacement play: the table's horizons are adopted
};

class ModelRun {
 public:
  explicit ModelRun(const ModelCase& which)
      : case_(which),
        random_(which.seed),
        t_({.lines = which.lines,
            .endpoint_ids = kEndpoints + 1,
            .tick = 2'000'000,
            .ttl_ticks = kTtl}),
        model_(static_cast<std::int64_t>(t_.now)) {
    for (int i = 0; i < 300; ++i) {
      std::vector<std::uint64_t> values(1 + random_.below(48));
      // Few roots and rare branches, so that prompts share long prefixes.
      for (auto& value : values) value = random_.below(12) == 0 ? 1 + random_.below(3) : 0;
      prompts_.push_back(chain(random_.below(3), values));
    }
    if (case_.tight) {
      for (std::uint32_t id = 1; id <= 6; ++id) t_.record(id).capacity_blocks.store(400);
    }
  }

  void run(std::uint64_t operations) {
    for (std::uint64_t done = 0; done < operations && !testing::Test::HasFatalFailure(); ++done) {
      const std::uint32_t dice = random_.below(1000);
      if (dice < 400)
        look();
      else if (dice < 700)
        pick();
      else if (dice < 760)
        event();
      else if (dice < 800)
        remove();
      else if (dice < 815)
        reset();
      else if (dice < 900)
        finish_late();
      else if (dice < 998)
        pass_time(random_.below(40));
      else
        pass_time(random_.below(kLeap));
      if (done % 20'000 == 0) compare_all();
    }
    compare_all();
    t_.sweep_all();
    compare_all();
    std::printf(
        "  seed %llu: %llu ops, %llu looks, %llu stamped, %llu replaced, %llu found less, "
        "%llu passed over a hole, %.1f wraps\n",
        ull(case_.seed), ull(operations), ull(looks_), ull(stamped_), ull(replaced_), ull(less_),
        ull(passed_over_), static_cast<double>(t_.now - 2'000'000) / (1U << abi::kStampBits));
  }

  void expect_equal() const {
    EXPECT_EQ(replaced_, 0U) << "the table is large enough";
    EXPECT_EQ(less_, 0U);
  }
  void expect_bounded() const {
    EXPECT_GT(replaced_, 0U) << "the case must replace";
    EXPECT_LT(static_cast<double>(replaced_), 0.02 * static_cast<double>(stamped_));
  }

 private:
  static constexpr std::uint64_t kTtl = 20'000;
  static constexpr std::uint32_t kLeap = 60'000;
  static unsigned long long ull(std::uint64_t value) { return value; }

  struct Late {
    std::size_t prompt;
    std::uint32_t id;
    std::uint64_t tick;
    abi::LifeWord seen;
    std::int64_t model_floor;
    bool confirmed;
  };

  std::uint32_t any_id() { return 1 + random_.below(kEndpoints); }
  std::size_t any_prompt() { return random_.below(static_cast<std::uint32_t>(prompts_.size())); }

  void look() {
    ++looks_;
    const auto& keys = prompts_[any_prompt()];
    std::vector<std::uint16_t> ids;
    const std::uint32_t chance = 1 + random_.below(4);
    for (std::uint32_t id = 1; id <= kEndpoints; ++id) {
      if (random_.below(4) < chance) ids.push_back(static_cast<std::uint16_t>(id));
    }
    if (ids.empty()) return;
    const auto exact = t_.match(keys, ids, true);
    const auto gallop = t_.match(keys, ids);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::uint32_t expected = model_.match(keys, ids[i]);
      ASSERT_LE(exact[i], expected) << "endpoint " << ids[i] << " at tick " << t_.now;
      less_ += exact[i] < expected;
      ASSERT_GE(gallop[i], exact[i]);
      if (gallop[i] == exact[i]) continue;
      ++passed_over_;  // only ever over a hole: the last block it counts is held
      ASSERT_TRUE(model_.holds(keys[gallop[i] - 1], ids[i]));
    }
  }

  void pick() { begin(any_prompt(), any_id(), false); }
  void event() {
    if (!case_.tight) begin(any_prompt(), any_id(), true);
  }
  // A stamp happens at once or some operations later, when its generation may be gone.
  void begin(std::size_t prompt, std::uint32_t id, bool confirmed) {
    late_.push_back({prompt, id, t_.now, t_.life(id), model_.floor(id), confirmed});
    if (random_.below(4) != 0) finish(late_.size() - 1);
  }
  void finish_late() {
    if (!late_.empty()) finish(random_.below(static_cast<std::uint32_t>(late_.size())));
  }
  void finish(std::size_t at) {
    const Late late = late_[at];
    late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(at));
    // A worker that stops for hours is outside of what the 20 bits can tell apart.
    if (t_.now - late.tick > abi::kAheadTicks / 2) return;
    const auto& keys = prompts_[late.prompt];
    const StampOutcome outcome =
        t_.table.stamp(keys, late.id, stamp_at(late.tick, late.seen),
                       late.confirmed ? abi::Tier::kGpu : abi::Tier::kAssumed, t_.stamp_now());
    stamped_ += outcome.inserted + outcome.touched;
    replaced_ += outcome.replaced;
    const std::int64_t tick = std::max(static_cast<std::int64_t>(late.tick), late.model_floor);
    for (const std::uint64_t key : keys) model_.stamp(key, late.id, tick, late.confirmed);
  }

  void remove() {
    ++removals_;
    const auto& keys = prompts_[any_prompt()];
    const std::uint64_t key = keys[random_.below(static_cast<std::uint32_t>(keys.size()))];
    const std::uint32_t id = any_id();
    t_.table.remove(key, id, t_.stamp_now());
    model_.remove(key, id);
  }

  void reset() {
    const std::uint32_t id = any_id();
    t_.reset(id);
    model_.reset(id, static_cast<std::int64_t>(t_.now));
  }

  void pass_time(std::uint64_t ticks) {
    t_.now += ticks;
    std::vector<abi::LifeWord> before;
    for (std::uint32_t id = 1; id <= kEndpoints; ++id) before.push_back(t_.life(id));
    t_.advance();
    model_.advance(static_cast<std::int64_t>(t_.now), kTtl);
    for (std::uint32_t id = 1; id <= kEndpoints; ++id) check_horizon(id, before[id - 1]);
    if (ticks > 1000)
      t_.sweep_all();
    else
      t_.sweep.slice(t_.now, random_.below(200));
  }

  void check_horizon(std::uint32_t id, abi::LifeWord before) {
    const std::uint32_t horizon = t_.life(id).horizon();
    const auto expected = static_cast<std::uint32_t>(model_.horizon(id)) & abi::kStampMask;
    if (!case_.tight) {
      ASSERT_EQ(horizon, expected) << "endpoint " << id << " at tick " << t_.now;
      return;
    }
    ASSERT_EQ(abi::newer_stamp(horizon, before.horizon(), t_.stamp_now()), horizon)
        << "it went back";
    ASSERT_EQ(abi::newer_stamp(horizon, expected, t_.stamp_now()), horizon) << "beyond the TTL";
    const auto full = [this](std::uint32_t stamp) {
      const std::uint32_t ahead = (stamp - t_.stamp_now()) & abi::kStampMask;
      return static_cast<std::int64_t>(t_.now) +
             (ahead <= 64 ? ahead : static_cast<std::int64_t>(ahead) - (1 << abi::kStampBits));
    };
    const abi::LifeWord confirmed{t_.record(id).confirmed_life.load()};
    model_.adopt(id, full(horizon), full(confirmed.horizon()));
  }

  // Everything, both ways: the table claims nothing that the model does not hold, and what the
  // model holds and the table does not was replaced.
  void compare_all() {
    std::uint64_t missing = 0;
    std::set<std::pair<std::uint64_t, std::uint32_t>> expected;
    model_.for_each_live([&](std::uint64_t key, std::uint32_t id) {
      const std::uint64_t keys[] = {key};
      missing += t_.match_one(keys, static_cast<std::uint16_t>(id), true) == 0;
      expected.emplace(key, id);
    });
    ASSERT_LE(missing, replaced_);
    std::set<std::uint64_t> keys;
    for (const auto& prompt : prompts_) keys.insert(prompt.begin(), prompt.end());
    for (const std::uint64_t key : keys) {
      const auto ids = t_.all_ids();
      const std::uint64_t one[] = {key};
      const auto blocks = t_.match(one, ids, true);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        ASSERT_TRUE(blocks[i] == 0 || expected.contains({key, ids[i]}));
      }
    }
    ASSERT_LE(t_.true_load(), 0.76);
  }

  ModelCase case_;
  base::Random random_;
  TestTable t_;
  Model model_;
  std::vector<std::vector<std::uint64_t>> prompts_;
  std::vector<Late> late_;
  std::uint64_t looks_ = 0;
  std::uint64_t stamped_ = 0;
  std::uint64_t replaced_ = 0;
  std::uint64_t less_ = 0;
  std::uint64_t passed_over_ = 0;
  std::uint64_t removals_ = 0;
};

class AgainstTheModel : public testing::TestWithParam<ModelCase> {};

TEST_P(AgainstTheModel, TheTableHoldsTheSame) {
  ModelRun run(GetParam());
  run.run(std::getenv("LONG_TESTS") != nullptr ? 1'200'000 : 100'000);
  if (GetParam().tight)
    run.expect_bounded();
  else
    run.expect_equal();
}

INSTANTIATE_TEST_SUITE_P(PrefixTable, AgainstTheModel,
                         testing::Values(ModelCase{"Roomy1", 1, 1 << 16, false},
                                         ModelCase{"Roomy2", 20'240'917, 1 << 16, false},
                                         ModelCase{"Tight1", 2, 2000, true},
                                         ModelCase{"Tight2", 97, 1000, true}),
                         [](const auto& which) { return which.param.name; });

}  // namespace
}  // namespace pickd::prefix::test
