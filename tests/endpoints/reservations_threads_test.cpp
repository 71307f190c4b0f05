// Reservations under threads: whatever calls meet on one ticket, each release happens once and the
// counts are exact when all is over.
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "daemon/base/random.hpp"
#include "tests/endpoints/reservation_fixture.hpp"

namespace pickd::endpoints::test {
namespace {

// Runs `work(thread)` on `count` threads that start together.
template <typename Work>
void together(std::uint32_t count, Work work) {
  std::atomic<std::uint32_t> waiting{count};
  std::vector<std::thread> threads;
  for (std::uint32_t at = 0; at < count; ++at) {
    threads.emplace_back([&, at] {
      waiting.fetch_sub(1);
      while (waiting.load() != 0) std::this_thread::yield();
      work(at);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Runs `work(thread, round)` on `count` threads; no thread is a round ahead of another.
template <typename Work>
void in_lockstep(std::uint32_t count, std::uint64_t rounds, Work work) {
  std::atomic<std::uint64_t> arrived{0};
  together(count, [&](std::uint32_t thread) {
    for (std::uint64_t round = 0; round < rounds; ++round) {
      arrived.fetch_add(1);
      for (std::uint32_t turn = 1; arrived.load() < (round + 1) * count; ++turn) {
        if (turn % 256 == 0) std::this_thread::yield();
      }
      work(thread, round);
    }
  });
}

class ReservationsThreads : public ReservationsTest {
 protected:
  ReservationsThreads() : ReservationsTest(8192) {}
  void expect_nothing_in_flight() const {
    for (std::uint32_t id = 1; id < kEndpoints; ++id) {
      EXPECT_EQ(requests(id), 0U) << id;
      EXPECT_EQ(tokens(id), 0U) << id;
    }
    EXPECT_EQ(table_.count_held(), 0U);
  }
};

TEST_F(ReservationsThreads, ReleaseATicketOnceHoweverManyEndIt) {
  constexpr std::uint64_t kTickets = 2000;
  // One that stays: a second release of another would show in its counts.
  reserve({1, 1}, 3, 7);
  for (std::uint64_t at = 1; at <= kTickets; ++at) ASSERT_TRUE(reserve({7, at}, 3, 10));
  std::atomic<std::uint64_t> applied{0};
  together(4, [&](std::uint32_t) {
    for (std::uint64_t at = 1; at <= kTickets; ++at) {
      if (table_.end({7, at}, kUid) == ReportOutcome::kApplied) applied.fetch_add(1);
    }
  });
  EXPECT_EQ(applied.load(), kTickets);
  EXPECT_EQ(requests(3), 1U);
  EXPECT_EQ(tokens(3), 7U);
}

TEST_F(ReservationsThreads, GiveTokensBackOnceHoweverManyReportTheFirstToken) {
  constexpr std::uint64_t kTickets = 2000;
  reserve({1, 1}, 3, 1'000'000);
  for (std::uint64_t at = 1; at <= kTickets; ++at) ASSERT_TRUE(reserve({7, at}, 3, 10));
  together(4, [&](std::uint32_t) {
    for (std::uint64_t at = 1; at <= kTickets; ++at) table_.first_token({7, at}, kUid);
  });
  EXPECT_EQ(tokens(3), 1'000'000U);
  EXPECT_EQ(requests(3), kTickets + 1);
}

// A first token that meets moves must take the tokens from where they are now.
TEST_F(ReservationsThreads, TakeTheTokensFromTheEndpointThatHoldsThemWhenAMoveMeetsAFirstToken) {
  constexpr std::uint64_t kTickets = 20'000;
  for (const std::uint32_t id : {3U, 4U}) reserve({1, id}, id, 1'000'000);
  in_lockstep(2, kTickets, [&](std::uint32_t thread, std::uint64_t at) {
    const Ticket ticket{7, at % 100 + 1};
    if (thread == 0) {
      reserve(ticket, 3, 10);
      table_.first_token(ticket, kUid);
      table_.end(ticket, kUid);
    } else {
      for (int turn = 0; turn < 8; ++turn) table_.move(ticket, kUid, handle(turn % 2 == 0 ? 4 : 3));
    }
  });
  table_.release_client(7, kUid);
  for (const std::uint32_t id : {3U, 4U}) {
    EXPECT_EQ(tokens(id), 1'000'000U) << id;
    EXPECT_EQ(requests(id), 1U) << id;
  }
}

// An end that meets a move is applied: a lost one would hold its request until the lease is over.
TEST_F(ReservationsThreads, EndATicketThatIsJustBeingMoved) {
  constexpr std::uint64_t kTickets = 20'000;
  std::atomic<std::uint64_t> applied{0};
  in_lockstep(2, kTickets, [&](std::uint32_t thread, std::uint64_t at) {
    const Ticket ticket{7, at % 100 + 1};
    if (thread == 0) {
      reserve(ticket, 3, 10);
      applied += table_.end(ticket, kUid) == ReportOutcome::kApplied ? 1 : 0;
    } else {
      for (int turn = 0; turn < 8; ++turn) table_.move(ticket, kUid, handle(turn % 2 == 0 ? 4 : 3));
    }
  });
  EXPECT_EQ(applied.load(), kTickets);
  expect_nothing_in_flight();
}

// The same for those that a client's death or a lease ends.
TEST_F(ReservationsThreads, ReleaseWhatADeadClientHoldsThoughItIsJustBeingMoved) {
  constexpr std::uint64_t kTickets = 300;
  std::atomic<std::uint64_t> released{0};
  in_lockstep(2, kTickets, [&](std::uint32_t thread, std::uint64_t at) {
    const Ticket ticket{7, at + 1};
    if (thread == 0) {
      reserve(ticket, 3, 10);
      released += table_.release_client(7, kUid);
    } else {
      for (int turn = 0; turn < 400; ++turn) {
        table_.move(ticket, kUid, handle(turn % 2 == 0 ? 4 : 3));
      }
    }
  });
  EXPECT_EQ(released.load(), kTickets);
  expect_nothing_in_flight();
}

TEST_F(ReservationsThreads, StayExactWhenEverythingMeets) {
  constexpr std::uint64_t kRounds = 20'000;
  constexpr std::uint32_t kWorkers = 3;
  std::array<std::atomic<std::uint64_t>, kWorkers> last{};
  std::atomic<std::uint32_t> working{kWorkers};
  together(kWorkers + 1, [&](std::uint32_t thread) {
    base::Random random(thread + 1);
    if (thread == kWorkers) {  // maintenance
      std::uint32_t cursor = 0;
      while (working.load() != 0) table_.expire_slice(&cursor, 64, 50'000, 49'000);
      return;
    }
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      reserve({thread, round}, 1 + random.below(kEndpoints - 1), random.below(1000),
              random.below(50'000));
      last[thread].store(round);
      // Reports on anybody's recent tickets.
      for (int report = 0; report < 3; ++report) {
        const std::uint32_t of = random.below(kWorkers);
        const std::uint64_t newest = last[of].load();
        if (newest == 0) continue;
        const Ticket ticket{
            of,
            newest - random.below(static_cast<std::uint32_t>(std::min<std::uint64_t>(newest, 16)))};
        switch (random.below(4)) {
          case 0: table_.first_token(ticket, kUid); break;
          case 1: table_.move(ticket, kUid, handle(1 + random.below(kEndpoints - 1))); break;
          case 2: table_.touch(ticket, kUid, random.below(50'000)); break;
          default: table_.end(ticket, kUid); break;
        }
      }
      if (round % 4096 == 0) table_.release_client(thread, kUid, round - 8);
    }
    working.fetch_sub(1);
  });
  // The counts are the sums over what is still held.
  std::vector<std::uint64_t> held_requests(kEndpoints);
  std::vector<std::uint64_t> held_tokens(kEndpoints);
  for (std::uint32_t at = 0; at < table_.slot_count(); ++at) {
    const std::uint64_t state = slots_[at].state.load();
    if (state >> 62 != static_cast<std::uint64_t>(abi::ReservationState::kHeld)) {
      ASSERT_EQ(state, 0U) << "left half written";
      continue;
    }
    const std::uint32_t id = abi::handle_endpoint(slots_[at].endpoint.load());
    held_requests[id] += 1;
    if ((state >> 56 & abi::kReservationFirstToken) == 0)
      held_tokens[id] += slots_[at].tokens.load() >> 32;
  }
  for (std::uint32_t id = 1; id < kEndpoints; ++id) {
    EXPECT_EQ(requests(id), held_requests[id]) << id;
    EXPECT_EQ(tokens(id), held_tokens[id]) << id;
  }
  for (std::uint32_t thread = 0; thread < kWorkers; ++thread) table_.release_client(thread, kUid);
  expect_nothing_in_flight();
}

}  // namespace
}  // namespace pickd::endpoints::test
