// Real processes over one state file: a writer with two stampers and its maintenance, and readers
// that have nothing but the read-only descriptor, one of them with a clock that is a tick behind.
// While they run no reader may be told of anything below a floor or a horizon; afterwards the file
// is equal to what was written.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "daemon/state/state_segment.hpp"
#include "daemon/state/tick_clock.hpp"
#include "tests/prefix/table_fixture.hpp"
#include "tests/state/temporary_directory.hpp"

namespace pickd::prefix::test {
namespace {

constexpr std::uint32_t kIds = 16;
constexpr std::uint64_t kTtl = 40;

// Endpoints by what happens to them.
constexpr std::uint16_t kSteadyEnd = 9;  // 1..8: stamped by both threads, prompts in turn
constexpr std::uint16_t kAlways = 9;     // one prompt, again in every round: always there
constexpr std::uint16_t kByTick = 10;    // the prompt of each tick, once: gone after the TTL
constexpr std::uint16_t kReset = 11;     // the prompt of its generation, and reset in every round
constexpr std::uint16_t kNever = 12;     // nobody stamps it

constexpr std::uint32_t kPrompts = 20;
std::vector<std::uint64_t> steady_prompt(std::uint64_t i) {
  std::vector<std::uint64_t> values(4 + i);
  for (std::size_t at = 3; at < values.size(); ++at) values[at] = i * 100 + at;
  return chain(i % 2, values);
}
std::vector<std::uint64_t> prompt_of_tick(std::uint64_t tick) { return chain(1'000'000 + tick, 6); }
std::vector<std::uint64_t> prompt_of_generation(std::uint64_t generation) {
  return chain(2'000'000'000 + generation, 6);
}

// Of all processes; beside the state file, as none of it is a reader's to know.
struct Shared {
  std::atomic<std::uint32_t> ready;
  std::atomic<bool> done;
  std::atomic<std::uint64_t> looks[2];
  std::atomic<std::uint64_t> wrong[2];
  char first_wrong[2][200];
  std::atomic<std::uint64_t> replaced;
  // Newest tick at which a thread stamped a prompt for an endpoint; 0 = never.
  std::atomic<std::uint64_t> ticks[2][kSteadyEnd][kPrompts];
};

class Processes : public state::test::InADirectory {
 protected:
  Processes() {
    void* memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    shared_ = new (memory) Shared();
    state::StateParameters parameters;
    parameters.bytes = 4 << 20;
    parameters.endpoints_max = kIds - 1;
    parameters.reservations_max = 64;
    parameters.clock_mode = abi::ClockMode::kVirtual;
    parameters.hot_holders = 4;
    auto made = state::StateSegment::create(path(), parameters);
    EXPECT_TRUE(made.ok()) << made.error().text;
    segment_ = std::move(made.value());
    abi::StateHeader& header = segment_->header();
    header.virtual_tick.store(1000);
    header.global_horizon.store(1000);
    for (std::uint32_t id = 1; id < kIds; ++id) {
      for (abi::Word* word : {&segment_->endpoints()[id].confirmed_life, &life_word(id)})
        word->store(abi::LifeWord::make(1, 1000, 1000).bits);
    }
  }
  ~Processes() override { ::munmap(shared_, sizeof(Shared)); }

  abi::Word& life_word(std::uint32_t id) const { return segment_->endpoints()[id].life; }
  abi::LifeWord life(std::uint32_t id) const { return {life_word(id).load()}; }

  static TableParts parts(std::byte* base) {
    auto* header = reinterpret_cast<abi::StateHeader*>(base);
    return {reinterpret_cast<abi::Word*>(base + header->prefix_offset),
            header->prefix_lines,
            reinterpret_cast<abi::EndpointRecord*>(base + header->endpoints_offset),
            header->endpoint_ids,
            &header->global_horizon,
            header->hot_holders};
  }
  TableParts own_parts() const { return parts(reinterpret_cast<std::byte*>(&segment_->header())); }

  // ---- The writer ----

  void write(std::uint32_t rounds) {
    Ages ages(kIds);
    PrefixTable table(own_parts(), &ages);
    std::atomic<bool> stop{false};
    std::thread maintenance([&] {
      Horizons horizons(own_parts(), ages);
      Sweep sweep(own_parts(), ages, horizons);
      do {
        const std::uint64_t now = tick();
        horizons.advance(now, kTtl);
        sweep.slice(now, 997);
      } while (!stop.load());
    });
    std::thread second([&] { stamp(table, 1, rounds); });
    stamp(table, 0, rounds);
    second.join();
    stop.store(true);
    maintenance.join();
  }

  std::uint64_t tick() const { return state::TickClock(segment_->header()).tick(); }

  void stamp(PrefixTable& table, std::uint32_t thread, std::uint32_t rounds) {
    base::Random random(thread + 1);
    state::TickClock clock(segment_->header());
    for (std::uint32_t round = 0; round < rounds; ++round) {
      // The tick first, then the life words: as a pick does it.
      for (int i = 0; i < 4; ++i) {
        const std::uint64_t now = clock.tick();
        const auto id = static_cast<std::uint16_t>(1 + random.below(kSteadyEnd - 1));
        const std::uint32_t prompt = random.below(kPrompts);
        stamp_one(table, steady_prompt(prompt), id, now);
        shared_->ticks[thread][id][prompt].store(now);
      }
      const std::uint64_t now = clock.tick();
      stamp_one(table, steady_prompt(0), kAlways, now);
      stamp_one(table, prompt_of_tick(now), kByTick, now);
      const abi::LifeWord seen = life(kReset);
      if (thread == 1) {  // late, for a generation that the other thread may have ended
        const auto outcome =
            table.stamp(prompt_of_generation(seen.generation()), kReset, stamp_at(now, seen),
                        abi::Tier::kAssumed, static_cast<std::uint32_t>(now));
        shared_->replaced.fetch_add(outcome.replaced);
      } else {
        stamp_one(table, prompt_of_generation(seen.generation()), kReset, now);
        reset(now);
        clock.set_virtual_tick(clock.tick() + 1);
      }
    }
  }
  void stamp_one(PrefixTable& table, const std::vector<std::uint64_t>& keys, std::uint16_t id,
                 std::uint64_t now) {
    const auto outcome = table.stamp(keys, id, stamp_at(now, life(id)), abi::Tier::kAssumed,
                                     static_cast<std::uint32_t>(now));
    shared_->replaced.fetch_add(outcome.replaced);
  }
  // By the thread that moves the clock, so the tick need not be looked at again.
  void reset(std::uint64_t now) {
    const abi::LifeWord old = life(kReset);
    const std::uint32_t floor = abi::floor_after(old, now);
    const std::uint64_t next = abi::LifeWord::make(old.generation() + 1, floor, floor).bits;
    segment_->endpoints()[kReset].confirmed_life.store(next);
    life_word(kReset).store(next);
  }

  // ---- A reader ----

  class Reader {
   public:
    Reader(Shared& shared, int descriptor, std::uint32_t which)
        : shared_(shared), which_(which), behind_(which) {
      void* memory = ::mmap(nullptr, 4 << 20, PROT_READ, MAP_SHARED, descriptor, 0);
      if (memory == MAP_FAILED) ::_exit(3);
      base_ = static_cast<std::byte*>(memory);
      table_ = std::make_unique<PrefixTable>(parts(base_));
    }

    void run() {
      shared_.ready.fetch_add(1);
      base::Random random(which_ + 10);
      bool last = false;
      do {
        last = shared_.done.load();  // one more look after the end
        look_at_generations();
        look_at_ticks();
        look_at_always();
        expect(match(steady_prompt(random.below(kPrompts)), kNever) == 0, "never stamped", 0);
        shared_.looks[which_].fetch_add(1);
      } while (!last);
      expect(in_time_ > 0, "not one look in time", 0);
    }

   private:
    std::uint64_t now() const {
      auto* header = reinterpret_cast<abi::StateHeader*>(base_);
      return header->virtual_tick.load(std::memory_order_acquire) - behind_;
    }
    abi::LifeWord life(std::uint16_t id) const {
      return {table_->parts().records[id].life.load(std::memory_order_acquire)};
    }
    std::uint32_t match(const std::vector<std::uint64_t>& keys, std::uint16_t id) {
      return match(keys, id, now(), life(id));
    }
    std::uint32_t match(const std::vector<std::uint64_t>& keys, std::uint16_t id,
                        std::uint64_t tick, abi::LifeWord seen) {
      const std::uint16_t ids[] = {id};
      const std::uint64_t lives[] = {seen.bits};
      std::uint32_t blocks[1];
      const auto stamp = static_cast<std::uint32_t>(tick) & abi::kStampMask;
      // In turn: both must be right.
      if (++turn_ % 2 == 0)
        table_->match(keys, stamp, ids, lives, blocks, *scratch_);
      else
        table_->match_exact(keys, stamp, ids, lives, blocks, *scratch_);
      return blocks[0];
    }
    void expect(bool right, const char* what, std::uint64_t which) {
      if (right) return;
      if (shared_.wrong[which_].fetch_add(1) != 0) return;
      std::snprintf(shared_.first_wrong[which_], sizeof shared_.first_wrong[which_],
                    "%s (%llu) at tick %llu", what, static_cast<unsigned long long>(which),
                    static_cast<unsigned long long>(now()));
    }

    void look_at_always() {
      const std::uint64_t before = now();
      const bool found = match(steady_prompt(0), kAlways, before, life(kAlways)) == 4;
      // A reader that was stopped for longer than its clock may be behind may miss it, never more.
      const bool in_time = now() - before <= abi::kClockSlackTicks - 2;
      in_time_ += in_time;
      expect(found || !in_time, "the prompt that is always there", 0);
    }
    void look_at_generations() {
      const std::uint64_t tick = now();
      const abi::LifeWord seen = life(kReset);
      for (std::uint32_t back = 1; back <= 3 && back < seen.generation(); ++back) {
        const std::uint32_t generation = seen.generation() - back;
        expect(match(prompt_of_generation(generation), kReset, tick, seen) == 0,
               "a block of a generation that is gone", generation);
      }
    }
    void look_at_ticks() {
      const std::uint64_t tick = now();
      const abi::LifeWord seen = life(kByTick);
      // The first tick that the horizon forgets, and some before it.
      const std::uint64_t horizon =
          tick - abi::stamp_age(seen.horizon(), static_cast<std::uint32_t>(tick));
      for (std::uint64_t back = 1; back <= 3; ++back) {
        expect(match(prompt_of_tick(horizon - back), kByTick, tick, seen) == 0,
               "a block older than the horizon", horizon - back);
      }
    }

    Shared& shared_;
    std::uint32_t which_;
    std::uint64_t behind_;
    std::byte* base_ = nullptr;
    std::unique_ptr<PrefixTable> table_;
    std::unique_ptr<MatchScratch> scratch_ = std::make_unique<MatchScratch>();
    std::uint64_t turn_ = 0;
    std::uint64_t in_time_ = 0;
  };

  template <typename Body>
  static pid_t start(Body&& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      body();
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    return child;
  }
  static void join(pid_t child, const char* who) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << who << " ended with status " << status;
  }

  // The file against what both threads wrote last.
  void compare_with_model() {
    std::map<std::pair<std::uint64_t, std::uint16_t>, std::uint64_t> newest;
    std::vector<std::vector<std::uint64_t>> prompts;
    for (std::uint32_t prompt = 0; prompt < kPrompts; ++prompt) {
      prompts.push_back(steady_prompt(prompt));
      for (std::uint16_t id = 1; id < kSteadyEnd; ++id) {
        const std::uint64_t tick =
            std::max(shared_->ticks[0][id][prompt].load(), shared_->ticks[1][id][prompt].load());
        for (const std::uint64_t key : prompts.back()) {
          std::uint64_t& held = newest[{key, id}];
          held = std::max(held, tick);
        }
      }
    }
    Ages ages(kIds);
    PrefixTable table(own_parts(), &ages);
    Horizons horizons(own_parts(), ages);
    Sweep sweep(own_parts(), ages, horizons);
    // At least what is oldest has expired by now, however far the writers came.
    std::uint64_t oldest = ~std::uint64_t{0};
    for (const auto& [held, stamped] : newest) oldest = std::min(oldest, stamped);
    const std::uint64_t now = std::max<std::uint64_t>(tick(), oldest + kTtl + 1);
    horizons.advance(now, kTtl);
    sweep.slice(now, own_parts().lines);
    MatchScratch scratch;
    std::uint64_t live = 0;
    for (const auto& [held, tick] : newest) {
      const std::uint64_t keys[] = {held.first};
      const std::uint16_t ids[] = {held.second};
      const std::uint64_t lives[] = {life(held.second).bits};
      std::uint32_t blocks[1];
      table.match_exact(keys, static_cast<std::uint32_t>(now), ids, lives, blocks, scratch);
      ASSERT_EQ(blocks[0] == 1, tick != 0 && tick + kTtl >= now)
          << "endpoint " << held.second << ", stamped at " << tick << ", now " << now;
      live += blocks[0];
    }
    EXPECT_GT(live, 0U);
    EXPECT_LT(live, newest.size()) << "some of it must have expired";
  }

  Shared* shared_;
  std::unique_ptr<state::StateSegment> segment_;
};

TEST_F(Processes, NeverReadWhatIsForgottenAndLeaveWhatWasWritten) {
  const std::uint32_t rounds = std::getenv("LONG_TESTS") != nullptr ? 200'000 : 6'000;
  auto descriptor = segment_->open_read_only();
  ASSERT_TRUE(descriptor.ok()) << descriptor.error().text;
  // There before the first reader looks.
  PrefixTable table(own_parts());
  stamp_one(table, steady_prompt(0), kAlways, tick());

  pid_t readers[2];
  for (std::uint32_t which = 0; which < 2; ++which) {
    readers[which] = start([&] { Reader(*shared_, descriptor->get(), which).run(); });
  }
  const pid_t writer = start([&] {
    while (shared_->ready.load() != 2) std::this_thread::yield();
    write(rounds);
  });
  join(writer, "the writer");
  shared_->done.store(true);
  join(readers[0], "the reader");
  join(readers[1], "the reader that is behind");

  for (std::uint32_t which = 0; which < 2; ++which) {
    EXPECT_GT(shared_->looks[which].load(), 1U);
    EXPECT_EQ(shared_->wrong[which].load(), 0U)
        << "reader " << which << ": " << shared_->first_wrong[which];
  }
  EXPECT_EQ(shared_->replaced.load(), 0U) << "the table is large enough";
  EXPECT_EQ(life(kReset).generation(), 1 + rounds);
  compare_with_model();
}

}  // namespace
}  // namespace pickd::prefix::test
