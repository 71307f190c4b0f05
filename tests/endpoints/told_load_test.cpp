// Told load: the facts of scrapes and our own counts in one record.
#include "daemon/endpoints/told_load.hpp"

#include "tests/endpoints/table_fixture.hpp"

namespace pickd::endpoints::test {
namespace {

constexpr std::uint32_t kUnknown = abi::kUnknown32;

EngineFacts facts(std::uint32_t waiting, std::uint32_t running, std::uint32_t kv_ppm = kUnknown) {
  EngineFacts made;
  made.waiting = waiting;
  made.running = running;
  made.kv_use_ppm = kv_ppm;
  return made;
}

class ToldLoad : public EndpointTableTest {
 protected:
  ToldLoad() {
    add("a");
    rules_.capacity_blocks_default = 500;
  }
  LoadNotes tell(const EngineFacts& told, std::uint32_t own_before = 0) {
    return tell_load(record("a"), memory_, told, own_before, 0, tick_, rules_);
  }
  void own(std::uint64_t count) {
    record("a").inflight_requests.store(abi::CountWord::make(life("a").generation(), count).bits);
  }

  LoadRules rules_;
  LoadMemory memory_;
  std::uint64_t tick_ = 5000;
};

TEST_F(ToldLoad, IsStoredWithItsAgeAndWhenItIsStale) {
  tell(facts(3, 5, 250'000));
  EXPECT_EQ(record("a").waiting.load(), 3U);
  EXPECT_EQ(record("a").running.load(), 5U);
  EXPECT_EQ(record("a").kv_use_ppm.load(), 250'000U);
  EXPECT_EQ(record("a").scrape_tick.load(), 5000U);
  EXPECT_EQ(record("a").told_ticks_max.load(), 40U);
}

TEST_F(ToldLoad, OfOthersIsWhatIsThereBeyondOurOwn) {
  own(4);
  EXPECT_EQ(tell(facts(1, 5), 4).foreign, 2U);
  EXPECT_EQ(record("a").foreign_requests.load(), 2U);
}

TEST_F(ToldLoad, OfOurOwnIsNotCountedTwice) {
  own(6);
  EXPECT_EQ(tell(facts(0, 6), 6).foreign, 0U);
  // The page was made while six were there; one ended before it came, or began after it was asked.
  own(5);
  EXPECT_EQ(tell(facts(0, 6), 6).foreign, 0U);
  own(7);
  EXPECT_EQ(tell(facts(0, 6), 6).foreign, 0U);
  own(100);
  EXPECT_EQ(tell(facts(0, 6), 0).foreign, 0U) << "never below nobody";
}

TEST_F(ToldLoad, OfOneCountAloneIsJoinedAndOfNoneUnknown) {
  EXPECT_EQ(tell(facts(kUnknown, 6)).foreign, 6U);
  memory_ = {};
  EXPECT_EQ(tell(facts(kUnknown, kUnknown)).foreign, kUnknown);
}

// Field case 61 goes on here: an unsound value leaves the last good one, which ages.
TEST_F(ToldLoad, KeepsTheLastGoodValueUntilThatIsStale) {
  tell(facts(3, 5, 250'000));
  tick_ += 40;
  tell(facts(kUnknown, 6, kUnknown));
  EXPECT_EQ(record("a").waiting.load(), 3U);
  EXPECT_EQ(record("a").running.load(), 6U);
  EXPECT_EQ(record("a").kv_use_ppm.load(), 250'000U);
  tick_ += 1;
  tell(facts(kUnknown, 6, kUnknown));
  EXPECT_EQ(record("a").waiting.load(), kUnknown);
  EXPECT_EQ(record("a").running.load(), 6U);
  EXPECT_EQ(record("a").kv_use_ppm.load(), kUnknown);
}

// A gauge that stands at 99 % with nothing there must not starve an endpoint for ever.
TEST_F(ToldLoad, OfACacheThatIsFullWithNobodyThereIsDistrustedInTime) {
  LoadNotes notes;
  for (; tick_ < 5200; tick_ += 20) {
    notes = tell(facts(0, 0, 990'000));
    EXPECT_FALSE(notes.frozen);
    EXPECT_EQ(record("a").kv_use_ppm.load(), 990'000U);
  }
  notes = tell(facts(0, 0, 990'000));
  EXPECT_TRUE(notes.frozen);
  EXPECT_EQ(record("a").kv_use_ppm.load(), 0U) << "what our own counts say: nobody is there";
  // It gets a request: now the page counts again, and what is really full gets no second one.
  own(1);
  tick_ += 20;
  EXPECT_FALSE(tell(facts(0, 1, 990'000), 1).frozen);
  EXPECT_EQ(record("a").kv_use_ppm.load(), 990'000U);
  own(0);
  for (int at = 0; at < 9; ++at, tick_ += 20) EXPECT_FALSE(tell(facts(0, 1, 990'000)).frozen);
}

TEST_F(ToldLoad, OfOthersIsBelievedForAMinuteThoughNothingMoves) {
  EngineFacts told = facts(40, 10, 990'000);
  tell(told);
  tick_ += 1199;
  EXPECT_FALSE(tell(told).frozen);
  EXPECT_EQ(record("a").waiting.load(), 40U);
  tick_ += 1;
  EXPECT_TRUE(tell(told).frozen);
  EXPECT_EQ(record("a").waiting.load(), 0U);
  EXPECT_EQ(record("a").foreign_requests.load(), 0U);
  told.waiting = 39;
  EXPECT_FALSE(tell(told).frozen) << "it moves";
  EXPECT_EQ(record("a").waiting.load(), 39U);
}

TEST_F(ToldLoad, OfAnEngineThatProgressesIsNeverDistrusted) {
  EngineFacts told = facts(0, 8, 500'000);
  for (int at = 0; at < 200; ++at, tick_ += 20) {
    told.progress = 1000.0 + at;
    EXPECT_FALSE(tell(told).frozen);
  }
}

// Field case 34: nothing is known of a fresh one, and nothing is not full.
TEST_F(ToldLoad, OfAFreshEndpointIsUnknown) {
  EXPECT_EQ(record("a").waiting.load(), kUnknown);
  EXPECT_EQ(record("a").kv_use_ppm.load(), kUnknown);
  EXPECT_EQ(record("a").foreign_requests.load(), kUnknown);
}

TEST_F(ToldLoad, CapacityIsTheEnginesInBlocksOfTheStore) {
  EngineFacts told = facts(0, 0);
  told.block_tokens = 16;
  told.blocks = 24'188;
  EXPECT_FALSE(tell(told).block_odd);
  EXPECT_EQ(record("a").capacity_blocks.load(), 24'188U / 4);
}

// Field case 52: the scheduler's unit is not the block of the cache.
TEST_F(ToldLoad, AnImplausibleBlockFallsBackToTheConfigurationAndIsReported) {
  EngineFacts told = facts(0, 0);
  told.blocks = 412'345;
  for (const std::uint32_t odd : {1U, 4U, 7U, 1025U, 16'384U}) {
    told.block_tokens = odd;
    EXPECT_TRUE(tell(told).block_odd) << odd;
    EXPECT_EQ(record("a").capacity_blocks.load(), 500U);
  }
  for (const std::uint32_t sound : {8U, 528U, 1024U}) {
    told.block_tokens = sound;
    EXPECT_FALSE(tell(told).block_odd) << sound;
  }
}

TEST_F(ToldLoad, ACapacityThatASourceToldIsLeftAlone) {
  record("a").capacity_blocks.store(77);
  EngineFacts told = facts(0, 0);
  told.block_tokens = 16;
  told.blocks = 1000;
  tell_load(record("a"), memory_, told, 0, 77, tick_, rules_);
  EXPECT_EQ(record("a").capacity_blocks.load(), 77U);
}

// Field cases 55 and 56.
TEST_F(ToldLoad, AdaptersAreTheNewestSetAndNoFamilyIsNoSignal) {
  EngineFacts told = facts(0, 0);
  told.tells_adapters = true;
  told.adapters_max = 4;
  told.adapters_active = {"x", "y"};
  tell(told);
  EXPECT_EQ(record("a").adapters_max.load(), 4U);
  EXPECT_EQ(record("a").adapters_active[1].load(), adapter_hash("y", 1));
  record("a").adapters_recent[0].store(adapter_hash("x", 1));
  tell(facts(0, 0));
  EXPECT_EQ(record("a").adapters_active[1].load(), adapter_hash("y", 1)) << "no signal";
  told.adapters_active.clear();
  tell(told);
  EXPECT_EQ(record("a").adapters_active[0].load(), 0U) << "an empty set is none";
  EXPECT_EQ(record("a").adapters_recent[0].load(), adapter_hash("x", 1)) << "our own picks stay";
}

TEST_F(ToldLoad, NoticesARestartByTheStartOfTheProcess) {
  EngineFacts told = facts(0, 0);
  told.process_start_s = 1.7e9;
  EXPECT_FALSE(tell(told).restarted);
  told.process_start_s = 1.7e9 + 1;
  EXPECT_FALSE(tell(told).restarted) << "the kernel's word of its boot moves by a second";
  told.process_start_s = 1.7e9 + 60;
  EXPECT_TRUE(tell(told).restarted);
  EXPECT_EQ(record("a").engine_start_ms.load(), 1'700'000'001'000U) << "nothing was stored";
}

TEST_F(ToldLoad, NoticesARestartByCountersThatGoBack) {
  EngineFacts told = facts(0, 0);
  told.progress = 1000;
  told.progress_series = 3;
  EXPECT_FALSE(tell(told).restarted);
  told.progress = 900;
  told.progress_series = 2;
  EXPECT_FALSE(tell(told).restarted) << "a series is missing: this may be half of them";
  told.progress = 10;
  told.progress_series = 3;
  EXPECT_TRUE(tell(told).restarted);
}

TEST_F(ToldLoad, NoticesARestartOfOneRankThoughTheSumOfAllWentOn) {
  EngineFacts before = facts(0, 0);
  before.process_start_s = 1000;
  before.progress = 300;
  before.progress_series = 2;
  before.pages = {{1000, 100, 1}, {900, 200, 1}};
  EXPECT_FALSE(tell(before).restarted);
  EngineFacts after = before;
  after.pages = {{1000, 700, 1}, {900, 250, 1}};
  after.progress = 950;
  EXPECT_FALSE(tell(after).restarted);
  EngineFacts back = after;
  back.pages = {{1000, 1700, 1}, {900, 3, 1}};
  back.progress = 1703;
  EXPECT_TRUE(tell(back).restarted);
  // By its start too, though another rank's is newer.
  EngineFacts again = after;
  again.pages = {{1000, 700, 1}, {950, 250, 1}};
  EXPECT_TRUE(tell(again).restarted);
  // Another number of ranks says nothing of any of them.
  EngineFacts fewer = after;
  fewer.pages = {{1000, 3, 1}};
  EXPECT_FALSE(tell(fewer).restarted);
}

TEST_F(ToldLoad, OfEachModelIsStoredWhereThereAreSeveral) {
  EngineFacts told = facts(9, 8);
  told.models = {{"m-a", 0, 3}, {"m-b", 9, kUnknown}};
  tell(told);
  const abi::ModelLoadWord first{record("a").model_load[0].load()};
  const abi::ModelLoadWord second{record("a").model_load[1].load()};
  EXPECT_EQ(first.hash(), adapter_hash("m-a", 3));
  EXPECT_EQ(first.waiting(), 0U);
  EXPECT_EQ(first.running(), 3U);
  EXPECT_EQ(second.waiting(), 9U);
  EXPECT_EQ(second.running(), abi::ModelLoadWord::kUnknown);
  EXPECT_EQ(record("a").model_load[2].load(), 0U);
}

}  // namespace
}  // namespace pickd::endpoints::test
