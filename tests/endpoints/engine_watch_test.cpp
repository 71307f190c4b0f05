// Engine watch: scrapes and reports on a real table, with a tick that the test sets.
#include "daemon/endpoints/engine_watch.hpp"

#include <atomic>
#include <memory>
#include <thread>

#include "daemon/endpoints/failure_word.hpp"
#include "tests/endpoints/table_fixture.hpp"

namespace pickd::endpoints::test {
namespace {

using State = abi::EndpointState;

class Watching : public EndpointTableTest {
 protected:
  Watching() {
    EndpointTable::Parts parts{records_.get(), ids_, &high_water_, 500};
    parts.scraped = [](const EndpointSpec&, std::string_view) { return true; };
    // Made anew in its place: readers hold on to what it has, so it cannot be assigned.
    std::destroy_at(&table_);
    std::construct_at(&table_, parts, store_);
    add("a");
    add("b");
  }
  std::uint16_t id(const char* name) { return endpoint(name).id; }
  LoadNotes ok(const char* name, double start_s = 1.7e9, double progress = 10) {
    EngineFacts facts;
    facts.waiting = 1;
    facts.running = 2;
    facts.process_start_s = start_s;
    facts.progress = progress;
    facts.progress_series = 1;
    watch_.scrape_sent(id(name));
    return watch_.scrape_ok(id(name), facts, tick_);
  }
  void fail(const char* name) { note_failure(record(name), life(name).generation()); }

  EngineWatch watch_{table_, store_, records_.get(), {}};
  std::uint64_t tick_ = 2000;
};

TEST_F(Watching, ANewEndpointIsReadyWithItsFirstScrape) {
  watch_.turn(tick_);
  EXPECT_EQ(state("a"), State::kStarting);
  ok("a");
  EXPECT_EQ(state("a"), State::kReady);
  EXPECT_EQ(record("a").waiting.load(), 1U);
  EXPECT_EQ(state("b"), State::kStarting);
  watch_.scrape_unreadable(id("b"), tick_);
  EXPECT_EQ(state("b"), State::kReady) << "a server without metrics may be an engine";
  EXPECT_EQ(record("b").waiting.load(), abi::kUnknown32);
}

TEST_F(Watching, ScrapesThatFailMakeSuspectThenDownAndAGoodOneReady) {
  ok("a");
  watch_.take_changes();
  watch_.scrape_failed(id("a"), tick_);
  EXPECT_EQ(state("a"), State::kSuspect);
  watch_.scrape_failed(id("a"), tick_);
  watch_.scrape_failed(id("a"), tick_);
  EXPECT_EQ(state("a"), State::kDown);
  ok("a");
  EXPECT_EQ(state("a"), State::kReady);
  const auto changes = watch_.take_changes();
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[1].from, State::kSuspect);
  EXPECT_EQ(changes[1].to, State::kDown);
  EXPECT_TRUE(watch_.take_changes().empty());
}

TEST_F(Watching, AFailedRequestIsSuspectAtOnceAndReadyAfterAPauseAndAnAnswer) {
  ok("a");
  fail("a");
  EXPECT_EQ(state("a"), State::kSuspect) << "before the control thread looks";
  EXPECT_EQ(watch_.turn(tick_), 1U);
  EXPECT_EQ(state("a"), State::kSuspect);
  tick_ += 30;
  EXPECT_EQ(watch_.turn(tick_), 0U);
  ok("a");
  EXPECT_EQ(state("a"), State::kReady);
  fail("a");
  fail("a");
  watch_.turn(tick_);
  EXPECT_EQ(state("a"), State::kDown) << "the row goes on";
  note_success(record("a"), life("a").generation());
  watch_.turn(tick_);
  EXPECT_EQ(state("a"), State::kReady);
}

// Field case 26: the same address, an empty cache.
TEST_F(Watching, ARestartedEngineIsANewGeneration) {
  ok("a");
  const std::uint32_t before = life("a").generation();
  record("a").inflight_requests.store(abi::CountWord::make(before, 5).bits);
  fail("a");
  tick_ += 100;
  EXPECT_TRUE(ok("a", 1.7e9 + 300, 1).restarted);
  EXPECT_EQ(life("a").generation(), before + 1);
  EXPECT_GT(life("a").floor(), tick_);
  EXPECT_EQ(endpoint("a").generation, before + 1);
  EXPECT_EQ(abi::CountWord{record("a").inflight_requests.load()}.count(), 0U);
  EXPECT_EQ(record("a").foreign_requests.load(), 3U);
  EXPECT_EQ(state("a"), State::kReady) << "what failed was the one before";
  EXPECT_FALSE(ok("a", 1.7e9 + 300, 2).restarted);
  EXPECT_TRUE(ok("a", std::numeric_limits<double>::quiet_NaN(), 0).restarted) << "by its counters";
}

TEST_F(Watching, ARestartWithinASecondIsNoticedWhenAScrapeWasMissed) {
  ok("a", 1.7e9);
  const std::uint32_t before = life("a").generation();
  ok("a", 1.7e9 + .5);
  EXPECT_EQ(life("a").generation(), before) << "a correction of the clock";
  watch_.scrape_failed(id("a"), tick_);
  EXPECT_TRUE(ok("a", 1.7e9 + 1).restarted);
  EXPECT_GT(life("a").generation(), before);
}

// Two engines behind the address of a load balancer answer in turn.
TEST_F(Watching, SeveralEnginesBehindOneAddressAreNotARestartWithEveryPage) {
  ok("a");
  const std::uint32_t before = life("a").generation();
  bool unsteady = false;
  for (int page = 0; page < 100; ++page) {
    tick_ += 20;
    unsteady = ok("a", page % 2 == 0 ? 1.7e9 + 300 : 1.7e9, 10).unsteady;
    EXPECT_EQ(record("a").waiting.load(), 1U) << "its load is told all the same";
  }
  EXPECT_TRUE(unsteady);
  EXPECT_LE(life("a").generation(), before + 5);
  const std::uint32_t after = life("a").generation();
  ok("a", 1.7e9 + 300);
  tick_ += 20 * 61;
  EXPECT_FALSE(ok("a", 1.7e9 + 300).unsteady);
  EXPECT_TRUE(ok("a", 1.7e9 + 900).restarted) << "steady for a minute, it is believed again";
  EXPECT_EQ(life("a").generation(), after + 1);
}

TEST_F(Watching, ARestartThatANewDaemonFindsIsNoticedToo) {
  ok("a");
  const std::uint32_t before = life("a").generation();
  EngineWatch next(table_, store_, records_.get(), {});  // the record stays, the memory does not
  EngineFacts facts;
  facts.process_start_s = 1.7e9 + 300;
  EXPECT_TRUE(next.scrape_ok(id("a"), facts, tick_).restarted);
  EXPECT_EQ(life("a").generation(), before + 1);
}

// Field case 25: an address that changes hands.
TEST_F(Watching, AnotherAddressIsWatchedAnew) {
  ok("a");
  ASSERT_TRUE(table_.update(spec("a", "elsewhere:1"), tick_).ok());
  EXPECT_EQ(state("a"), State::kStarting);
  EXPECT_EQ(record("a").waiting.load(), abi::kUnknown32);
  EXPECT_EQ(watch_.facts(id("a")), nullptr);
  watch_.turn(tick_);
  EXPECT_EQ(state("a"), State::kStarting);
  EXPECT_FALSE(ok("a", 1.6e9, 0).restarted);
  EXPECT_EQ(state("a"), State::kReady);
}

// Field case 29: what is gone is gone, and its late scrape touches nobody.
TEST_F(Watching, AScrapeOfARemovedEndpointTouchesNobody) {
  const std::uint16_t gone = id("b");
  watch_.scrape_sent(gone);
  ASSERT_TRUE(table_.replace({spec("a")}, "test", tick_).ok());
  watch_.scrape_ok(gone, {}, tick_);
  watch_.scrape_failed(gone, tick_);
  watch_.scrape_unreadable(gone, tick_);
  watch_.turn(tick_);
  EXPECT_EQ(static_cast<State>(records_[gone].state.load()), State::kFree);
}

TEST_F(Watching, AnOperatorsDrainHolds) {
  ok("a");
  ASSERT_TRUE(table_.drain("a", true).ok());
  watch_.scrape_failed(id("a"), tick_);
  ok("a");
  fail("a");
  watch_.turn(tick_);
  EXPECT_EQ(state("a"), State::kDraining);
  ASSERT_TRUE(table_.drain("a", false).ok());
  watch_.turn(tick_);
  EXPECT_EQ(state("a"), State::kSuspect) << "the failure was seen meanwhile";
}

TEST_F(Watching, WhatWasScrapedOutlivesASourceThatRepeatsItsSet) {
  EngineFacts facts;
  facts.waiting = 7;
  facts.block_tokens = 16;
  facts.blocks = 4000;
  facts.tells_adapters = true;
  facts.adapters_active = {"x"};
  watch_.scrape_ok(id("a"), facts, tick_);
  ASSERT_TRUE(table_.replace({spec("a"), spec("b")}, "test", tick_ + 5).ok());
  EXPECT_EQ(record("a").waiting.load(), 7U);
  EXPECT_EQ(record("a").capacity_blocks.load(), 1000U);
  EXPECT_EQ(record("a").adapters_active[0].load(), adapter_hash("x", 1));
  EXPECT_EQ(state("a"), State::kReady);
}

// A worker that fails requests while the control thread makes the endpoint ready again: no failure
// is lost.
TEST_F(Watching, NoFailureIsLostBetweenAWorkerAndATurn) {
  ok("a");
  std::atomic<bool> stop{false};
  abi::EndpointRecord& shared = record("a");
  const std::uint32_t generation = life("a").generation();
  std::thread worker([&] {
    for (int at = 0; at < 20'000; ++at) {
      note_failure(shared, generation);
      if (at % 3 == 0) note_success(shared, generation);
    }
    note_failure(shared, generation);
    stop.store(true);
  });
  while (!stop.load()) {
    ++tick_;
    watch_.turn(tick_);
  }
  worker.join();
  watch_.turn(tick_);
  EXPECT_NE(state("a"), State::kReady) << "the last request failed";
}

}  // namespace
}  // namespace pickd::endpoints::test
