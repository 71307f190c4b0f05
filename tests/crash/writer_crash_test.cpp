// kill -9 of the writer at every step of inserting, touching, marking, replacing, removing, raising
// horizons and sweeping. What readers see at once, what the next daemon finds, and what it has
// after going on to the end of the script keep the properties of the store.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "daemon/prefix/line_scan.hpp"
#include "tests/crash/killed_process.hpp"
#include "tests/crash/store.hpp"
#include "tests/state/temporary_directory.hpp"

namespace pickd::crash {
namespace {

struct Geometry {
  const char* name;
  std::uint64_t lines;
  bool full;  // the table is too small: the load rule cuts, words are replaced
};

class WriterCrash : public state::test::InADirectory, public testing::WithParamInterface<Geometry> {
 protected:
  void run_script(Store& store, const Script& script, std::size_t from, Told told, Legacy& legacy) {
    for (std::size_t at = from; at < script.operations.size(); ++at) {
      legacy.begun = at + 1;
      legacy.replaced += store.run(script, script.operations[at], told.tick);
      told.apply(script, script.operations[at]);
      legacy.done = at + 1;
    }
  }

  // `before`, `after`: what was told without and with the operation that was broken off.
  void check(Store& store, const Script& script, const Told& before, const Told& after,
             std::uint64_t losses_max, const std::string& where) {
    const std::uint64_t tick = after.tick;
    std::set<std::uint64_t> keys;
    for (const auto& prompt : script.prompts) keys.insert(prompt.begin(), prompt.end());
    std::uint64_t lost = 0;
    std::uint64_t holes = 0;
    for (std::uint32_t id = 1; id <= kEndpoints; ++id) {
      const std::uint64_t horizon = store.horizon(id, tick);
      std::set<std::uint64_t> found;
      for (const std::uint64_t key : keys) {
        const std::uint64_t told = std::max(before.told(key, id), after.told(key, id));
        const std::uint64_t sure = std::min(before.told(key, id), after.told(key, id));
        if (store.finds(key, id, tick)) {
          ASSERT_NE(told, 0U) << "endpoint " << id << " never stamped it; " << where;
          ASSERT_GE(told, horizon) << "older than the horizon of " << id << "; " << where;
          found.insert(key);
        } else {
          lost += sure != 0 && sure >= horizon;
        }
      }
      for (const auto& prompt : script.prompts) {
        std::uint32_t length = 0;
        while (length < prompt.size() && found.contains(prompt[length])) ++length;
        ASSERT_EQ(store.match(prompt, id, tick, true), length) << where;
        for (std::size_t at = 1; at < prompt.size(); ++at) {
          holes += found.contains(prompt[at]) && !found.contains(prompt[at - 1]);
        }
      }
    }
    ASSERT_LE(lost, losses_max) << where;
    // One replaced parent may be the parent of several prompts' blocks.
    ASSERT_LE(holes, losses_max * script.prompts.size()) << where;
  }

  void check_limits(Store& store, std::uint64_t tick, const std::string& where) {
    // The newest bucket is never cut: what came in one tick stays, however much it is.
    const Store::Counted counted = store.count(tick);
    ASSERT_LE(counted.words_of_capped, 2 * kCapacity) << where;
    ASSERT_LE(counted.load, 0.76) << where;
  }

  void kill_everywhere(std::uint64_t seed) {
    const Script script(seed);
    std::string origin;
    {
      Store store(path("prepared"), GetParam().lines, &origin);
      store.add_endpoints();
    }
    const auto prepare = [&] {
      std::filesystem::copy_file(path("prepared"), path(),
                                 std::filesystem::copy_options::overwrite_existing);
      std::filesystem::permissions(
          path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    };
    KilledProcess writer;
    for (std::uint64_t kill_at = 1;; ++kill_at) {
      prepare();
      const bool killed = writer.run(kill_at, [&](Legacy& legacy) {
        std::string how;
        Store store(path(), GetParam().lines, &how);
        EXPECT_EQ(how, "warm");
        store.begin(kFirstTick);
        run_script(store, script, 0, Told(), legacy);
      });
      const Legacy left = writer.legacy();
      if (!killed) {
        replaced_ += left.replaced;
        break;
      }
      steps_.insert(left.last_step);
      check_after(script, left, writer.where());
      if (HasFailure()) return;
    }
    std::printf("  seed %llu: killed at %llu steps\n", static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(writer.legacy().steps));
  }

  // A test that never reaches a step proves nothing about it.
  void check_coverage() {
    for (const char* kind :
         {"insert: after", "touch: before", "touch: a marker", "mark: after",
          "horizons: before one is raised", "horizons: before the global one", "sweep: cleared",
          "sweep: brought forward", "sweep: counts of an endpoint", "reset: half"}) {
      EXPECT_TRUE(steps_.contains(kind)) << kind << " was never reached";
    }
    if (prefix::can_clear_pairs()) {
      EXPECT_TRUE(steps_.contains("sweep: cleared two"));
    }
    if (GetParam().full) {
      EXPECT_TRUE(steps_.contains("replace: after"));
      EXPECT_GT(replaced_, 0U);
    } else {
      EXPECT_TRUE(steps_.contains("remove: a copy"));
      EXPECT_EQ(replaced_, 0U);
    }
  }

  void check_after(const Script& script, const Legacy& left, const std::string& where) {
    Told before;
    for (std::size_t at = 0; at < left.done; ++at) before.apply(script, script.operations[at]);
    Told after = before;
    const bool within = left.begun > left.done;
    if (within) after.apply(script, script.operations[left.done]);
    // A stamp that was broken off may have replaced words that nobody counted: for each key a
    // holder's, and another for a marker.
    std::uint64_t losses_max = left.replaced;
    if (GetParam().full && within) {
      const Operation& operation = script.operations[left.done];
      if (operation.kind == Operation::Kind::kStamp)
        losses_max += 2 * script.prompts[operation.prompt].size();
    }

    std::string origin;
    Store store(path(), GetParam().lines, &origin);
    ASSERT_EQ(origin, "warm") << where;
    // What a reader that has the file mapped sees, before anybody repairs anything.
    check(store, script, before, after, losses_max, where);
    if (HasFatalFailure()) return;

    store.repair(after.tick);
    store.begin(after.tick);
    check(store, script, before, after, losses_max, where + ", reopened");
    check_limits(store, after.tick, where + ", reopened");
    if (HasFatalFailure()) return;

    // The next daemon goes on. What was half done is done anew, but for time, which has passed, and
    // a reset that took hold.
    Legacy rest{};
    const bool finished = within && took_hold(store, script, left.done);
    const std::size_t from = finished ? left.done + 1 : left.done;
    Told told = finished ? after : before;
    run_script(store, script, from, told, rest);
    for (std::size_t at = from; at < script.operations.size(); ++at)
      told.apply(script, script.operations[at]);
    check(store, script, told, told, losses_max + rest.replaced, where + ", at the end");
    check_limits(store, told.tick, where + ", at the end");
  }

  // Whether the operation that was broken off is over all the same.
  static bool took_hold(Store& store, const Script& script, std::size_t at) {
    const Operation& broken = script.operations[at];
    if (broken.kind != Operation::Kind::kReset) return broken.kind == Operation::Kind::kTime;
    std::uint32_t generation = 1;
    for (std::size_t i = 0; i < at; ++i) {
      const Operation& operation = script.operations[i];
      generation +=
          operation.kind == Operation::Kind::kReset && operation.endpoint == broken.endpoint;
    }
    return store.generation(broken.endpoint) > generation;
  }

  std::set<std::string> steps_;  // at which a writer was killed
  std::uint64_t replaced_ = 0;
};

TEST_P(WriterCrash, KeepsThePropertiesOfTheStoreAtEveryStep) {
  const std::uint64_t seeds = std::getenv("LONG_TESTS") != nullptr ? 12 : 1;
  for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) kill_everywhere(seed);
  if (!HasFailure()) check_coverage();
}

INSTANTIATE_TEST_SUITE_P(Tables, WriterCrash,
                         testing::Values(Geometry{"Roomy", 512, false},
                                         Geometry{"Tight", 12, true}),
                         [](const auto& which) { return which.param.name; });

}  // namespace
}  // namespace pickd::crash
