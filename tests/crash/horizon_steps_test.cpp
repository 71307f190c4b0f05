// What a kill between two stores of one call that raises horizons leaves: a hot block, found by its
// marker, must not be gone before the blocks behind it.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/crash/killed_process.hpp"
#include "tests/crash/store.hpp"
#include "tests/state/temporary_directory.hpp"

namespace pickd::crash {
namespace {

constexpr std::uint64_t kLines = 64;
constexpr std::uint32_t kHolders = 11;

using HorizonSteps = state::test::InADirectory;

// One shared block, hot, and behind it another for each holder; then what fills the table.
Script hot_block_and_filling() {
  Script script(1);
  script.prompts.clear();
  const auto block = [](std::uint64_t name) { return base::Random(name).next(); };
  for (std::uint64_t id = 0; id < kHolders; ++id)
    script.prompts.push_back({block(7), block(1000 + id)});
  for (std::uint64_t i = 0; i < 16; ++i) {
    std::vector<std::uint64_t> keys;
    for (std::uint64_t at = 0; at < 36; ++at) keys.push_back(block(2000 + i * 36 + at));
    script.prompts.push_back(std::move(keys));
  }
  return script;
}

TEST_F(HorizonSteps, ForgetWhatIsBehindAHotBlockBeforeTheBlock) {
  const Script script = hot_block_and_filling();
  using Kind = Operation::Kind;
  {
    std::string origin;
    Store store(path("prepared"), kLines, &origin);
    store.add_endpoints();
    for (std::uint32_t id = 1; id <= kHolders; ++id)
      store.run(script, {Kind::kStamp, id, id - 1, 0}, kFirstTick);
    EXPECT_EQ(store.count(kFirstTick).load, (2 * kHolders + 1) / (kLines * 8.0))
        << "one marker more: it is hot";
  }
  KilledProcess writer;
  writer.only("horizons");
  bool cut = false;
  for (std::uint64_t kill_at = 1;; ++kill_at) {
    std::filesystem::copy_file(path("prepared"), path(),
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::permissions(path(), std::filesystem::perms(0600));
    const bool killed = writer.run(kill_at, [&](Legacy& legacy) {
      std::string origin;
      Store store(path(), kLines, &origin);
      store.begin(kFirstTick);
      legacy.done = kFirstTick;
      for (std::size_t prompt = kHolders; prompt < script.prompts.size(); ++prompt) {
        ++legacy.done;
        store.run(script, {Kind::kTime, 0, 0, 1}, legacy.done - 1);
        const auto id = 2 + static_cast<std::uint32_t>(prompt) % 10;
        store.run(script, {Kind::kStamp, id, prompt, 0}, legacy.done);
      }
    });
    const std::uint64_t tick = std::max(writer.legacy().done, kFirstTick);
    std::string origin;
    Store store(path(), kLines, &origin);
    store.begin(tick);
    for (std::uint32_t id = 1; id <= kHolders; ++id) {
      const auto& keys = script.prompts[id - 1];
      cut |= !store.finds(keys[0], id, tick);
      ASSERT_TRUE(!store.finds(keys[1], id, tick) || store.finds(keys[0], id, tick))
          << "endpoint " << id << "; " << writer.where();
    }
    if (!killed) break;
  }
  EXPECT_TRUE(cut) << "the load rule must have cut the hot block off";
}

}  // namespace
}  // namespace pickd::crash
