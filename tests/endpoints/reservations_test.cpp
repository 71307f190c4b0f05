// Reservations, one thread: what each call does to the counts, and to whom it answers what.
#include "daemon/endpoints/reservations.hpp"

#include <algorithm>
#include <set>

#include "daemon/endpoints/count_word.hpp"
#include "tests/endpoints/reservation_fixture.hpp"

namespace pickd::endpoints::test {
namespace {

using Reservations = ReservationsTest;

TEST_F(Reservations, AddTheRequestAndItsTokensToTheEndpoint) {
  ASSERT_TRUE(reserve({7, 1}, 3, 100));
  EXPECT_EQ(requests(3), 1U);
  EXPECT_EQ(tokens(3), 100U);
  ASSERT_TRUE(reserve({7, 2}, 3, 50));
  EXPECT_EQ(requests(3), 2U);
  EXPECT_EQ(tokens(3), 150U);
  EXPECT_EQ(requests(4), 0U);
  EXPECT_EQ(table_.count_held(), 2U);
  EXPECT_EQ(table_.holder({7, 1}), handle(3));
}

TEST_F(Reservations, GiveTokensBackAtTheFirstTokenAndTheRequestAtTheEnd) {
  reserve({7, 1}, 3, 100);
  EXPECT_EQ(table_.first_token({7, 1}, kUid), ReportOutcome::kApplied);
  EXPECT_EQ(requests(3), 1U);
  EXPECT_EQ(tokens(3), 0U);
  std::uint64_t held = 0;
  EXPECT_EQ(table_.end({7, 1}, kUid, &held), ReportOutcome::kApplied);
  EXPECT_EQ(held, handle(3));
  EXPECT_EQ(requests(3), 0U);
  EXPECT_EQ(tokens(3), 0U);
  EXPECT_EQ(table_.count_held(), 0U);
}

TEST_F(Reservations, GiveBothBackWhenARequestEndsBeforeItsFirstToken) {
  reserve({7, 1}, 3, 100);
  EXPECT_EQ(table_.end({7, 1}, kUid), ReportOutcome::kApplied);
  EXPECT_EQ(requests(3), 0U);
  EXPECT_EQ(tokens(3), 0U);
}

TEST_F(Reservations, OfOneTicketAreOneAUser) {
  ASSERT_TRUE(reserve({7, 1}, 3, 100));
  EXPECT_FALSE(reserve({7, 1}, 4, 50));
  EXPECT_EQ(table_.count_held(), 1U);
  EXPECT_EQ(requests(4), 0U);
  EXPECT_EQ(table_.end({7, 1}, kUid), ReportOutcome::kApplied);
  EXPECT_TRUE(reserve({7, 1}, 4, 50));
}

TEST_F(Reservations, OfAnotherUserLeaveTheOwnerAPlace) {
  for (std::uint64_t sequence = 1; sequence <= 20; ++sequence) {
    NewReservation copy = reservation({7, sequence}, 3, 1);
    copy.uid = kUid + 1;
    for (std::uint32_t turn = 0; turn < 2 * abi::kReservationProbes; ++turn) table_.reserve(copy);
  }
  for (std::uint64_t sequence = 1; sequence <= 20; ++sequence) {
    ASSERT_TRUE(reserve({7, sequence}, 4, 100)) << sequence;
    EXPECT_EQ(table_.end({7, sequence}, kUid), ReportOutcome::kApplied);
  }
}

TEST_F(Reservations, TakeARepeatedFirstTokenForNoFaultAndGiveBackOnce) {
  reserve({7, 1}, 3, 100);
  reserve({7, 2}, 3, 40);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(table_.first_token({7, 1}, kUid), ReportOutcome::kApplied);
  }
  EXPECT_EQ(tokens(3), 40U);
}

// Field case 32: one decrement, whatever is reported again.
TEST_F(Reservations, KnowATicketNoMoreAfterItsEnd) {
  reserve({7, 1}, 3, 100);
  reserve({7, 2}, 3, 10);
  table_.end({7, 1}, kUid);
  EXPECT_EQ(table_.end({7, 1}, kUid), ReportOutcome::kUnknownTicket);
  EXPECT_EQ(table_.first_token({7, 1}, kUid), ReportOutcome::kUnknownTicket);
  EXPECT_EQ(table_.touch({7, 1}, kUid, 5), ReportOutcome::kUnknownTicket);
  EXPECT_EQ(table_.move({7, 1}, kUid, handle(4)), ReportOutcome::kUnknownTicket);
  EXPECT_EQ(table_.holder({7, 1}), 0U);
  EXPECT_EQ(requests(3), 1U);
  EXPECT_EQ(tokens(3), 10U);
  EXPECT_EQ(requests(4), 0U);
}

TEST_F(Reservations, KnowNoTicketThatWasNeverGiven) {
  reserve({7, 1}, 3, 100);
  EXPECT_EQ(table_.end({7, 2}, kUid), ReportOutcome::kUnknownTicket);
  EXPECT_EQ(table_.end({8, 1}, kUid), ReportOutcome::kUnknownTicket);
  EXPECT_EQ(requests(3), 1U);
}

TEST_F(Reservations, RefuseTheTicketOfAnotherUser) {
  reserve({7, 1}, 3, 100);
  EXPECT_EQ(table_.end({7, 1}, kUid + 1), ReportOutcome::kOtherUser);
  EXPECT_EQ(table_.first_token({7, 1}, kUid + 1), ReportOutcome::kOtherUser);
  EXPECT_EQ(table_.move({7, 1}, kUid + 1, handle(4)), ReportOutcome::kOtherUser);
  EXPECT_EQ(table_.touch({7, 1}, kUid + 1, 99), ReportOutcome::kOtherUser);
  EXPECT_EQ(requests(3), 1U);
  EXPECT_EQ(tokens(3), 100U);
}

TEST_F(Reservations, MoveWhatIsHeldToAnotherEndpoint) {
  reserve({7, 1}, 3, 100);
  EXPECT_EQ(table_.move({7, 1}, kUid, handle(4)), ReportOutcome::kApplied);
  EXPECT_EQ(requests(3), 0U);
  EXPECT_EQ(tokens(3), 0U);
  EXPECT_EQ(requests(4), 1U);
  EXPECT_EQ(tokens(4), 100U);
  EXPECT_EQ(table_.holder({7, 1}), handle(4));
  EXPECT_EQ(table_.end({7, 1}, kUid), ReportOutcome::kApplied);
  EXPECT_EQ(requests(4), 0U);
  EXPECT_EQ(tokens(4), 0U);
}

TEST_F(Reservations, MoveOnlyTheRequestAfterTheFirstToken) {
  reserve({7, 1}, 3, 100);
  table_.first_token({7, 1}, kUid);
  EXPECT_EQ(table_.move({7, 1}, kUid, handle(4)), ReportOutcome::kApplied);
  EXPECT_EQ(requests(4), 1U);
  EXPECT_EQ(tokens(4), 0U);
  table_.end({7, 1}, kUid);
  EXPECT_EQ(requests(4), 0U);
  EXPECT_EQ(tokens(4), 0U);
}

TEST_F(Reservations, CountAPrefillEndpointBesideTheDecodeEndpoint) {
  NewReservation made = reservation({7, 1}, 3, 100);
  made.prefill_endpoint = handle(5);
  ASSERT_TRUE(table_.reserve(made));
  EXPECT_EQ(requests(5), 1U);
  EXPECT_EQ(tokens(5), 100U) << "the prompt is computed there";
  EXPECT_EQ(prompts(5), 0U);
  EXPECT_EQ(requests(3), 1U);
  EXPECT_EQ(tokens(3), 0U);
  EXPECT_EQ(prompts(3), 100U) << "and decoded here";
  table_.end({7, 1}, kUid);
  for (const std::uint32_t id : {3U, 5U}) {
    EXPECT_EQ(requests(id), 0U) << id;
    EXPECT_EQ(tokens(id), 0U) << id;
    EXPECT_EQ(prompts(id), 0U) << id;
  }
}

TEST_F(Reservations, FreeThePrefillEndpointWithTheFirstTokenOnce) {
  NewReservation made = reservation({7, 1}, 3, 100);
  made.prefill_endpoint = handle(5);
  ASSERT_TRUE(table_.reserve(made));
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(table_.first_token({7, 1}, kUid), ReportOutcome::kApplied);
    EXPECT_EQ(requests(5), 0U);
    EXPECT_EQ(tokens(5), 0U);
    EXPECT_EQ(requests(3), 1U);
  }
  EXPECT_EQ(table_.move({7, 1}, kUid, handle(4)), ReportOutcome::kApplied);
  EXPECT_EQ(prompts(4), 100U);
  EXPECT_EQ(prompts(3), 0U);
  table_.end({7, 1}, kUid);
  EXPECT_EQ(requests(5), 0U);
  EXPECT_EQ(requests(4), 0U);
}

TEST_F(Reservations, MoveWhoDecodesAndLeaveWhoPrefills) {
  NewReservation made = reservation({7, 1}, 3, 100);
  made.prefill_endpoint = handle(5);
  ASSERT_TRUE(table_.reserve(made));
  EXPECT_EQ(table_.move({7, 1}, kUid, handle(4)), ReportOutcome::kApplied);
  EXPECT_EQ(tokens(5), 100U);
  EXPECT_EQ(tokens(4), 0U);
  EXPECT_EQ(requests(4), 1U);
  EXPECT_EQ(requests(3), 0U);
  table_.end({7, 1}, kUid);
  EXPECT_EQ(tokens(5), 0U);
  EXPECT_EQ(requests(5), 0U);
  EXPECT_EQ(requests(4), 0U);
}

TEST_F(Reservations, CountWhoEncodesUntilTheFirstToken) {
  NewReservation made = reservation({7, 1}, 3, 100);
  made.prefill_endpoint = handle(5);
  made.encode_endpoint = handle(6);
  ASSERT_TRUE(table_.reserve(made));
  EXPECT_EQ(requests(6), 1U);
  EXPECT_EQ(tokens(6), 0U);
  EXPECT_EQ(tokens(5), 100U);
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(table_.first_token({7, 1}, kUid), ReportOutcome::kApplied);
    EXPECT_EQ(requests(6), 0U);
    EXPECT_EQ(requests(5), 0U);
  }
  table_.end({7, 1}, kUid);
  for (const std::uint32_t id : {3U, 5U, 6U}) EXPECT_EQ(requests(id), 0U) << id;
}

TEST_F(Reservations, GiveWhoEncodesBackWithoutAPrefillEndpointAndWithoutAToken) {
  NewReservation made = reservation({7, 1}, 3, 100);
  made.encode_endpoint = handle(6);
  ASSERT_TRUE(table_.reserve(made));
  EXPECT_EQ(requests(6), 1U);
  EXPECT_EQ(tokens(3), 100U) << "the prompt is computed where it is decoded";
  table_.end({7, 1}, kUid);
  EXPECT_EQ(requests(6), 0U);
  EXPECT_EQ(tokens(3), 0U);
}

// Field case 31: an endpoint flaps while requests run; completions of old ones hit nothing.
TEST_F(Reservations, GiveNothingBackToAGenerationThatIsGone) {
  reserve({7, 1}, 3, 100);  // A
  next_generation(3);
  EXPECT_EQ(requests(3), 0U);
  reserve({7, 2}, 3, 30);  // B
  EXPECT_EQ(table_.end({7, 1}, kUid), ReportOutcome::kStaleGeneration);
  EXPECT_EQ(requests(3), 1U) << "A's end is of its own generation only";
  EXPECT_EQ(tokens(3), 30U);
  EXPECT_EQ(table_.end({7, 1}, kUid), ReportOutcome::kUnknownTicket);
  EXPECT_EQ(table_.end({7, 2}, kUid), ReportOutcome::kApplied);
  EXPECT_EQ(requests(3), 0U);
  EXPECT_EQ(tokens(3), 0U);
}

TEST_F(Reservations, TellOfAFirstTokenOfAGenerationThatIsGone) {
  reserve({7, 1}, 3, 100);
  next_generation(3);
  reserve({7, 2}, 3, 30);
  EXPECT_EQ(table_.first_token({7, 1}, kUid), ReportOutcome::kStaleGeneration);
  EXPECT_EQ(tokens(3), 30U);
}

TEST_F(Reservations, AddNothingToAGenerationThatWasReplacedBeforeThePickReserved) {
  NewReservation made = reservation({7, 1}, 3, 100);
  next_generation(3);
  ASSERT_TRUE(table_.reserve(made));
  EXPECT_EQ(requests(3), 0U);
  EXPECT_EQ(table_.end({7, 1}, kUid), ReportOutcome::kStaleGeneration);
  EXPECT_EQ(requests(3), 0U);
}

TEST_F(Reservations, EndByTheirLeaseUnlessTheyAreTouched) {
  reserve({7, 1}, 3, 100, 1000);
  reserve({7, 2}, 3, 50, 1000);
  table_.touch({7, 2}, kUid, 1090);
  std::uint32_t cursor = 5;
  EXPECT_EQ(table_.expire_slice(&cursor, kSlots, 1100, 100), 0U)
      << "as old as the lease is not older";
  EXPECT_EQ(cursor, 5U) << "a whole turn ends where it began";
  EXPECT_EQ(table_.expire_slice(&cursor, kSlots, 1101, 100), 1U);
  EXPECT_EQ(requests(3), 1U);
  EXPECT_EQ(tokens(3), 50U);
  EXPECT_EQ(table_.end({7, 1}, kUid), ReportOutcome::kUnknownTicket);
  EXPECT_EQ(table_.expire_slice(&cursor, kSlots, 1191, 100), 1U);
  EXPECT_EQ(requests(3), 0U);
}

TEST_F(Reservations, ExpireSliceBySlice) {
  for (std::uint64_t at = 1; at <= 100; ++at) reserve({7, at}, 3, 1, 10);
  std::uint32_t cursor = 0;
  std::uint32_t expired = 0;
  for (std::uint32_t turn = 0; turn < kSlots / 16; ++turn) {
    expired += table_.expire_slice(&cursor, 16, 1000, 100);
  }
  EXPECT_EQ(expired, 100U);
  EXPECT_EQ(cursor, 0U);
  EXPECT_EQ(requests(3), 0U);
}

TEST_F(Reservations, DoNotExpireWhatWasPickedAheadOfThisThreadsClock) {
  reserve({7, 1}, 3, 1, 2000);
  std::uint32_t cursor = 0;
  EXPECT_EQ(table_.expire_slice(&cursor, kSlots, 1999, 0), 0U);
}

TEST_F(Reservations, EndThoseOfADeadClientOfItsUserOnly) {
  reserve({7, 0}, 3, 10);  // no honest client begins with 0
  reserve({7, 2}, 4, 10);
  reserve({8, 1}, 3, 10);
  NewReservation other = reservation({7, 3}, 5, 10);
  other.uid = kUid + 1;  // another user that claims the same client id
  table_.reserve(other);
  EXPECT_EQ(table_.release_client(7, kUid), 2U);
  EXPECT_EQ(requests(3), 1U);
  EXPECT_EQ(requests(4), 0U);
  EXPECT_EQ(requests(5), 1U);
  EXPECT_EQ(table_.release_client(7, kUid), 0U);
}

TEST_F(Reservations, EndThoseAfterTheLastAnswerThatWasSeen) {
  for (std::uint64_t sequence = 1; sequence <= 6; ++sequence) reserve({7, sequence}, 3, 10);
  EXPECT_EQ(table_.release_client(7, kUid, 4), 2U);
  EXPECT_EQ(requests(3), 4U);
  EXPECT_EQ(table_.end({7, 4}, kUid), ReportOutcome::kApplied);
  EXPECT_EQ(table_.end({7, 5}, kUid), ReportOutcome::kUnknownTicket);
}

TEST_F(Reservations, SayFullAndAddNothingWhenNoSlotIsFree) {
  std::uint64_t sequence = 0;
  std::uint64_t held = 0;
  std::uint64_t refused = 0;
  while (refused < 50) {
    reserve({7, ++sequence}, 3, 10) ? ++held : ++refused;
    ASSERT_LE(held, kSlots);
  }
  EXPECT_EQ(requests(3), held);
  EXPECT_EQ(tokens(3), held * 10);
  EXPECT_EQ(table_.count_held(), held);
  // A ticket looks at 64 neighbours: with 256 slots the table is nearly full by then.
  EXPECT_GT(held, kSlots / 2);
  EXPECT_EQ(table_.release_client(7, kUid), held);
  EXPECT_EQ(requests(3), 0U);
  EXPECT_EQ(tokens(3), 0U);
}

TEST(ReservationsOfFewSlots, UseEveryOne) {
  abi::Reservation slots[4]{};
  abi::EndpointRecord records[2]{};
  pickd::endpoints::Reservations table(slots, 4, records);
  NewReservation made;
  made.endpoint = abi::endpoint_handle(1, 0);
  for (std::uint64_t sequence = 1; sequence <= 4; ++sequence) {
    made.ticket = {1, sequence};
    EXPECT_TRUE(table.reserve(made)) << sequence;
  }
  made.ticket = {1, 5};
  EXPECT_FALSE(table.reserve(made));
  EXPECT_EQ(count_of(records[1].inflight_requests), 4U);
}

TEST(CountWord, NeverFallsBelowZero) {
  abi::Word word{abi::CountWord::make(5, 3).bits};
  EXPECT_TRUE(change_count(word, 5, -10));
  EXPECT_EQ(count_of(word), 0U);
  EXPECT_TRUE(change_count(word, 5, 4));
  EXPECT_EQ(count_of(word), 4U);
}

TEST(CountWord, HeedsItsGenerationOnly) {
  abi::Word word{abi::CountWord::make(5, 3).bits};
  EXPECT_FALSE(change_count(word, 4, 1));
  EXPECT_FALSE(change_count(word, 6, -1));
  EXPECT_EQ(word.load(), abi::CountWord::make(5, 3).bits);
  reset_count(word, 6);
  EXPECT_EQ(abi::CountWord{word.load()}.generation(), 6U);
  EXPECT_EQ(count_of(word), 0U);
}

TEST(CountWord, ComparesGenerationsByTheirLow24Bits) {
  abi::Word word{0};
  reset_count(word, abi::kGenerationMask + 3);
  EXPECT_TRUE(change_count(word, 2, 1));
  EXPECT_EQ(count_of(word), 1U);
}

// ---- Where a ticket stands ----------------------------------------------------------------------

using SecretPlaces = ReservationsTest;

// The slot that a table with this key takes for a ticket.
std::ptrdiff_t place_of(const base::SipKey& key, Ticket ticket) {
  constexpr std::uint32_t kMany = 4096;
  const std::unique_ptr<abi::Reservation[]> slots(new abi::Reservation[kMany]());
  const std::unique_ptr<abi::EndpointRecord[]> records(new abi::EndpointRecord[2]());
  pickd::endpoints::Reservations table(slots.get(), kMany, records.get(), UINT32_MAX, key);
  NewReservation made;
  made.ticket = ticket;
  made.endpoint = abi::endpoint_handle(1, 0);
  EXPECT_TRUE(table.reserve(made));
  const auto* held = std::find_if(slots.get(), slots.get() + kMany,
                                  [](const auto& slot) { return slot.state.load() != 0; });
  return held - slots.get();
}

TEST_F(SecretPlaces, OfOneKeyTellNothingOfThoseOfAnother) {
  // Tickets that a user chose so that they stand together under one key.
  const base::SipKey known{1, 2};
  std::vector<Ticket> together;
  for (std::uint64_t sequence = 1; together.size() < 8; ++sequence) {
    if (place_of(known, {7, sequence}) < 256) together.push_back({7, sequence});
  }
  std::set<std::ptrdiff_t> regions;
  for (const Ticket ticket : together) regions.insert(place_of({3, 4}, ticket) / 256);
  EXPECT_GT(regions.size(), 2U) << "8 tickets in 16 regions";
  EXPECT_NE(place_of({1, 3}, {7, 1}), place_of(known, {7, 1})) << "each half of the key counts";
}

TEST_F(SecretPlaces, AreFoundAgainByTheNextDaemonThoughItHasAnotherKey) {
  for (std::uint64_t sequence = 1; sequence <= 150; ++sequence)
    ASSERT_TRUE(reserve({7, sequence}, 3, 10));
  ASSERT_EQ(table_.first_token({7, 4}, kUid), ReportOutcome::kApplied);
  for (std::uint64_t life = 1; life <= 5; ++life) {
    for (std::uint32_t id = 1; id < kEndpoints; ++id) {
      reset_count(records_[id].inflight_requests, generation(id));
      reset_count(records_[id].inflight_tokens, generation(id));
      reset_count(records_[id].inflight_prompts, generation(id));
    }
    pickd::endpoints::Reservations next(slots_.get(), kSlots, records_.get(), UINT32_MAX,
                                        {life, ~life});
    EXPECT_EQ(next.recover(kEndpoints), 150U);
    EXPECT_EQ(requests(3), 150U);
    EXPECT_EQ(tokens(3), 1490U) << "one had its first token";
    for (std::uint64_t sequence = 1; sequence <= 150; ++sequence)
      ASSERT_EQ(next.holder({7, sequence}), handle(3)) << sequence;
    if (life == 5) {
      for (std::uint64_t sequence = 1; sequence <= 150; ++sequence)
        EXPECT_EQ(next.end({7, sequence}, kUid), ReportOutcome::kApplied);
      EXPECT_EQ(next.count_held(), 0U);
      EXPECT_EQ(requests(3), 0U);
      EXPECT_EQ(tokens(3), 0U);
    }
  }
}

TEST_F(SecretPlaces, HoldARecordOnceThoughTheMoveOfItWasBroken) {
  ASSERT_TRUE(reserve({7, 1}, 3, 10));
  auto* held = std::find_if(slots_.get(), slots_.get() + kSlots,
                            [](const auto& slot) { return slot.state.load() != 0; });
  abi::Reservation& copy = slots_[(static_cast<std::size_t>(held - slots_.get()) + 100) % kSlots];
  for (auto word :
       {&abi::Reservation::client, &abi::Reservation::sequence, &abi::Reservation::endpoint,
        &abi::Reservation::tokens, &abi::Reservation::owner, &abi::Reservation::picked_tick,
        &abi::Reservation::state}) {
    (copy.*word).store((held->*word).load());
  }
  reset_count(records_[3].inflight_requests, generation(3));
  reset_count(records_[3].inflight_tokens, generation(3));
  reset_count(records_[3].inflight_prompts, generation(3));
  pickd::endpoints::Reservations next(slots_.get(), kSlots, records_.get(), UINT32_MAX, {5, 6});
  EXPECT_EQ(next.recover(kEndpoints), 1U);
  EXPECT_EQ(requests(3), 1U);
  EXPECT_EQ(next.end({7, 1}, kUid), ReportOutcome::kApplied);
  EXPECT_EQ(next.count_held(), 0U);
}

}  // namespace
}  // namespace pickd::endpoints::test
