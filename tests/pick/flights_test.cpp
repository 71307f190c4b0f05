// Flights: what the learner is told of picked requests, and what it is not.
#include "daemon/pick/flights.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "daemon/endpoints/reservations.hpp"

namespace pickd::pick {
namespace {

constexpr std::uint64_t kMsNs = 1'000'000;

endpoints::NewReservation reservation(std::uint32_t endpoint, const PickFacts* facts,
                                      std::uint64_t now_ns, std::uint32_t prefill = 0) {
  endpoints::NewReservation made;
  made.endpoint = abi::endpoint_handle(endpoint, 1);
  if (prefill != 0) made.prefill_endpoint = abi::endpoint_handle(prefill, 1);
  made.prompt_tokens = 1000;
  made.uncached_tokens = 600;
  made.now_ns = now_ns;
  made.facts = facts;
  return made;
}

PickFacts streamed() {
  PickFacts facts;
  facts.stream = true;
  facts.kv_tokens = 1100;
  facts.uncached_tokens = 600;
  return facts;
}

endpoints::FlightEnd served() { return {true, {1000, 400, 20}}; }

TEST(Flights, TeachOfARequestFromItsPickToItsEnd) {
  Flights flights(4, 16);
  latency::Learner learner(4, 16);
  const PickFacts facts = streamed();
  flights.began(3, reservation(1, &facts, 100 * kMsNs));
  flights.first_token(3, 200 * kMsNs);
  flights.ended(3, 600 * kMsNs, served());
  EXPECT_EQ(flights.teach(learner), 3U);
  EXPECT_EQ(learner.counts().ttft_samples, 1U);
  EXPECT_EQ(learner.counts().itl_samples, 1U);
  EXPECT_EQ(learner.counts().refused, 0U);
}

// What happened before or elsewhere is no fault of a report: it is not told at all.
TEST(Flights, TellNothingOfAMovedRequestAfterItsMove) {
  Flights flights(4, 16);
  latency::Learner learner(4, 16);
  const PickFacts facts = streamed();
  flights.began(3, reservation(1, &facts, 100 * kMsNs));
  flights.moved(3, abi::endpoint_handle(2, 1), 150 * kMsNs);
  flights.first_token(3, 200 * kMsNs);
  flights.ended(3, 600 * kMsNs, served());
  EXPECT_EQ(flights.teach(learner), 2U) << "its pick, and that it left";
  EXPECT_EQ(learner.counts().ttft_samples, 0U);
  EXPECT_EQ(learner.counts().refused, 0U);
  EXPECT_FLOAT_EQ(flights.live().load(2, 1, 700 * kMsNs).running, 0);
}

TEST(Flights, TellNothingOfRequestsOfBeforeARestart) {
  Flights flights(4, 16);
  latency::Learner learner(4, 16);
  flights.began(3, reservation(1, nullptr, 100 * kMsNs));
  EXPECT_FLOAT_EQ(flights.live().load(1, 1, 200 * kMsNs).queued_tokens, 600) << "but they count";
  flights.first_token(3, 200 * kMsNs);
  flights.ended(3, 600 * kMsNs, served());
  EXPECT_EQ(flights.teach(learner), 0U);
  EXPECT_EQ(learner.counts().refused, 0U);
}

TEST(Flights, CountASplitRequestWhereItIsComputedAndWhereItDecodes) {
  Flights flights(4, 16);
  latency::Learner learner(4, 16);
  const PickFacts facts = streamed();
  flights.began(3, reservation(1, &facts, 100 * kMsNs, 2));
  const latency::LiveLoad& live = flights.live();
  EXPECT_FLOAT_EQ(live.load(2, 1, 150 * kMsNs).queued_tokens, 600);
  EXPECT_FLOAT_EQ(live.load(1, 1, 150 * kMsNs).queued_tokens, 0);
  EXPECT_FLOAT_EQ(live.load(1, 1, 150 * kMsNs).kv_tokens, 1100);
  flights.first_token(3, 200 * kMsNs);
  EXPECT_FLOAT_EQ(live.load(2, 1, 250 * kMsNs).running, 0);
  EXPECT_FLOAT_EQ(live.load(2, 1, 250 * kMsNs).kv_tokens, 0);
  EXPECT_FLOAT_EQ(live.load(1, 1, 250 * kMsNs).decoding(), 1);
  flights.ended(3, 600 * kMsNs, served());
  EXPECT_FLOAT_EQ(live.load(1, 1, 700 * kMsNs).running, 0);
  flights.teach(learner);
  EXPECT_EQ(learner.counts().ttft_samples, 0U) << "the way between the two is in its TTFT";
  EXPECT_EQ(learner.counts().itl_samples, 1U);
  EXPECT_EQ(learner.counts().refused, 0U);
}

TEST(Flights, ForgetWhatAFullQueueRefusedWithoutHarm) {
  constexpr std::uint32_t kMany = 40'000;
  Flights flights(4, kMany);
  latency::Learner learner(4, kMany);
  const PickFacts facts = streamed();
  for (std::uint32_t flight = 0; flight < kMany; ++flight)
    flights.began(flight, reservation(1, &facts, 100 * kMsNs));
  const std::size_t taught = flights.teach(learner);
  EXPECT_EQ(flights.events_dropped(), kMany - taught);
  for (std::uint32_t flight = 0; flight < kMany; ++flight)
    flights.ended(flight, 200 * kMsNs, served());
  while (flights.teach(learner) != 0) {
  }
  EXPECT_EQ(learner.counts().refused, 0U);
  EXPECT_FLOAT_EQ(flights.live().load(1, 1, 300 * kMsNs).running, 0);
}

// Events of one flight come out in their order, whatever other threads put in between.
TEST(FlightQueue, KeepsTheOrderOfEachThread) {
  constexpr std::uint32_t kThreads = 3;
  constexpr std::uint64_t kEvents = 50'000;
  FlightQueue queue;
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&queue, thread] {
      for (std::uint64_t event = 0; event < kEvents;) {
        FlightQueue::Cell* cell = queue.claim();
        if (cell == nullptr) {
          std::this_thread::yield();
          continue;
        }
        cell->event = {FlightQueue::Kind::kPicked, thread, event, {}};
        cell->picked.number = event;
        queue.publish(cell);
        ++event;
      }
    });
  }
  std::uint64_t next[kThreads] = {};
  std::uint64_t wrong = 0;
  for (std::uint64_t taken = 0; taken < kThreads * kEvents;) {
    const bool some = queue.take([&](const FlightQueue::Cell& cell) {
      if (cell.event.at_ns != next[cell.event.flight]++) ++wrong;
      if (cell.picked.number != cell.event.at_ns) ++wrong;
    });
    taken += some ? 1 : 0;
    if (!some) std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_FALSE(queue.take([](const FlightQueue::Cell&) {}));
}

}  // namespace
}  // namespace pickd::pick
