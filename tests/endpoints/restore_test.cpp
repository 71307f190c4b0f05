// What a restart takes back: the routing snapshot, the endpoints it names, the reservations they
// carry. And what a reset does when the clock moves under it.
#include <cstring>

#include "daemon/endpoints/count_word.hpp"
#include "tests/endpoints/table_fixture.hpp"

namespace pickd::endpoints::test {
namespace {

constexpr std::uint64_t kTick = 1000;

// The shared memory of two daemons, one after the other.
struct Memory {
  static constexpr std::uint32_t kIds = 8;
  static constexpr std::size_t kRoutingBytes = 16 * 1024;
  std::unique_ptr<abi::EndpointRecord[]> records{new abi::EndpointRecord[kIds]()};
  std::unique_ptr<abi::Reservation[]> slots{new abi::Reservation[64]()};
  std::vector<std::byte> routing = std::vector<std::byte>(2 * kRoutingBytes);
  abi::Word version{0};
  abi::Word high_water{1};

  RoutingParts parts() {
    return {{routing.data(), routing.data() + kRoutingBytes}, kRoutingBytes, &version};
  }
};

struct Life {
  explicit Life(Memory& memory, std::function<std::uint64_t()> tick_now = {})
      : table({memory.records.get(), Memory::kIds, &memory.high_water, 500, memory.parts(),
               std::move(tick_now)},
              store),
        reservations(memory.slots.get(), 64, memory.records.get()) {}

  TopologyStore store;
  EndpointTable table;
  Reservations reservations;
};

EndpointSpec full_spec() {
  EndpointSpec made = spec("a", "10.0.0.1:8000", {"m1", "m2"});
  made.pool = "gpu";
  made.role = abi::Role::kPrefill;
  made.labels = {{"zone", "east"}, {"gpu", "h100"}};
  made.adapters_active = {"lora-1"};
  made.more_ports = {8001, 8002};
  return made;
}

TEST(Restore, BringsEndpointsBackWithTheirIdsAndGenerations) {
  Memory memory;
  std::uint32_t generation = 0;
  {
    Life first(memory);
    ASSERT_TRUE(first.table.add(spec("z"), "file", kTick).ok());
    ASSERT_TRUE(first.table.add(full_spec(), "client:1", kTick).ok());
    ASSERT_TRUE(first.table.reset("a", kTick + 5).ok());
    generation = first.store.current().find_name("a")->generation;
  }
  Life second(memory);
  EXPECT_EQ(second.table.restore(kTick + 10), 2U);
  const TopologyEndpoint* a = second.store.current().find_name("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->id, 2U);
  EXPECT_EQ(a->generation, generation);
  EXPECT_EQ(a->address, "10.0.0.1:8000");
  EXPECT_EQ(a->pool, "gpu");
  EXPECT_EQ(a->role, abi::Role::kPrefill);
  EXPECT_EQ(a->source, "client:1");
  EXPECT_EQ(a->models, (std::vector<std::string>{"m1", "m2"}));
  EXPECT_EQ(*a->label("zone"), "east");
  EXPECT_EQ(a->more_ports, (std::vector<std::uint16_t>{8001, 8002}));
  EXPECT_EQ(a->adapters_active, std::vector<std::string>{"lora-1"});
  EXPECT_EQ(second.store.current().candidates("m2")->size(), 2U) << "z serves any model";
}

TEST(Restore, BeginsAnEndpointAnewWhoseHorizonOrFloorLiesInTheFuture) {
  for (const std::uint64_t flipped : {std::uint64_t{1} << 16, std::uint64_t{1} << (20 + 16)}) {
    for (const bool confirmed : {false, true}) {
      Memory memory;
      {
        Life first(memory);
        ASSERT_TRUE(first.table.add(spec("a"), "file", kTick).ok());
        ASSERT_TRUE(first.table.add(spec("b", "10.0.0.2:8000"), "file", kTick).ok());
      }
      abi::EndpointRecord& record = memory.records[1];
      abi::Word& word = confirmed ? record.confirmed_life : record.life;
      word.store(word.load() ^ flipped);
      const std::uint64_t other = memory.records[2].life.load();
      Life second(memory);
      std::vector<std::string> damaged;
      EXPECT_EQ(second.table.restore(kTick + 5, &damaged), 2U);
      EXPECT_EQ(damaged, std::vector<std::string>{"a"});
      for (const abi::Word* now : {&record.life, &record.confirmed_life}) {
        EXPECT_EQ(abi::LifeWord{now->load()}.horizon(), kTick + 6) << flipped << confirmed;
      }
      EXPECT_EQ(second.store.current().find_name("a")->generation,
                abi::LifeWord{record.life.load()}.generation());
      EXPECT_EQ(memory.records[2].life.load(), other);
    }
  }
}

TEST(Restore, KeepsAnEndpointDraining) {
  Memory memory;
  {
    Life first(memory);
    ASSERT_TRUE(first.table.add(spec("a"), "file", kTick).ok());
    ASSERT_TRUE(first.table.drain("a", true).ok());
  }
  Life second(memory);
  ASSERT_EQ(second.table.restore(kTick), 1U);
  EXPECT_EQ(memory.records[1].state.load(),
            static_cast<std::uint32_t>(abi::EndpointState::kDraining));
}

TEST(Restore, RetiresARecordThatTheSnapshotDoesNotName) {
  Memory memory;
  {
    Life first(memory);
    ASSERT_TRUE(first.table.add(spec("a"), "file", kTick).ok());
  }
  memory.version.store(0);  // no snapshot was ever whole
  const std::uint64_t life_before = memory.records[1].life.load();
  Life second(memory);
  EXPECT_EQ(second.table.restore(kTick + 3), 0U);
  EXPECT_EQ(memory.records[1].state.load(), static_cast<std::uint32_t>(abi::EndpointState::kFree));
  EXPECT_NE(memory.records[1].life.load(), life_before) << "its blocks are dead";
}

TEST(Restore, ReadsTheWholeSnapshotWhenAWriterDiedInTheOther) {
  Memory memory;
  {
    Life first(memory);
    ASSERT_TRUE(first.table.add(spec("a"), "file", kTick).ok());
  }
  // A writer that died half-way: the version is odd, the buffer it was at is garbage.
  const std::uint64_t version = memory.version.load();
  std::memset(memory.parts().buffers[(version / 2 + 1) & 1], 0xAA, Memory::kRoutingBytes);
  memory.version.store(version + 1);
  Life second(memory);
  EXPECT_EQ(second.table.restore(kTick), 1U);
}

TEST(Restore, BelievesNoByteOfADamagedSnapshot) {
  Memory memory;
  {
    Life first(memory);
    ASSERT_TRUE(first.table.add(full_spec(), "file", kTick).ok());
    ASSERT_TRUE(first.table.add(spec("b"), "file", kTick).ok());
  }
  const std::vector<std::byte> whole = memory.routing;
  std::uint64_t random = 7;
  std::size_t refused = 0;
  for (int turn = 0; turn < 2000; ++turn) {
    memory.routing = whole;
    for (int flip = 0; flip < 4; ++flip) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      const std::size_t buffer = (memory.version.load() / 2 & 1) * Memory::kRoutingBytes;
      memory.routing[buffer + (random >> 33) % 700] = static_cast<std::byte>(random >> 20);
    }
    const auto endpoints = read_routing(memory.parts());
    refused += endpoints.has_value() ? 0 : 1;
  }
  EXPECT_GT(refused, 0U) << "and none of them crashed";
}

TEST(Restore, WritesAnEmptySnapshotWhenItDoesNotFit) {
  Memory memory;
  RoutingParts small = memory.parts();
  small.bytes = 64;
  std::vector<TopologyEndpoint> endpoints(1);
  endpoints[0].id = 1;
  endpoints[0].name = std::string(100, 'n');
  EXPECT_FALSE(write_routing(small, Topology(endpoints)));
  EXPECT_FALSE(read_routing(small).has_value());
}

TEST(Restore, LetsTheFileTakeOverANameThatAClientGave) {
  Memory memory;
  {
    Life first(memory);
    ASSERT_TRUE(first.table.add(spec("e0"), "client:7", kTick).ok());
  }
  Life second(memory);
  ASSERT_EQ(second.table.restore(kTick), 1U);
  const std::uint64_t life_before = memory.records[1].life.load();
  EXPECT_EQ(second.table.replace({spec("e0")}, "file", kTick).error().code, -EEXIST);
  ASSERT_TRUE(
      second.table.replace({spec("e0")}, "file", kTick, EndpointTable::NameTaken::kTakeOver).ok());
  EXPECT_EQ(second.store.current().find_name("e0")->source, "file");
  EXPECT_EQ(memory.records[1].life.load(), life_before) << "the same engine: its blocks live on";
}

TEST(Restore, RefusesWhatTheSnapshotHasNoRoomFor) {
  Memory memory;
  Life life(memory);
  EndpointSpec big = spec("a");
  for (int at = 0; at < 64; ++at) big.models.push_back(std::string(253, 'm') + std::to_string(at));
  EXPECT_EQ(life.table.add(big, "file", kTick).error().code, -E2BIG) << "16 KiB do not hold it";
  EXPECT_EQ(life.table.count(), 0U);
  ASSERT_TRUE(life.table.add(spec("a"), "file", kTick).ok());
  EXPECT_EQ(life.table.update(big, kTick).error().code, -E2BIG);
  EXPECT_EQ(life.table.replace({big}, "file", kTick).error().code, -E2BIG);
  EXPECT_EQ(life.table.count(), 1U) << "and nothing was lost on the way";
  EXPECT_TRUE(read_routing(memory.parts()).has_value());
}

TEST(Update, OfLoadAloneKeepsTheTopology) {
  Memory memory;
  Life life(memory);
  ASSERT_TRUE(life.table.add(spec("a"), "file", kTick).ok());
  const Topology* before = &life.store.current();
  EndpointSpec told = spec("a");
  told.waiting = 17;
  ASSERT_TRUE(life.table.update(told, kTick + 1).ok());
  EXPECT_EQ(&life.store.current(), before);
  EXPECT_EQ(memory.records[1].waiting.load(), 17U);
}

TEST(Restore, NamesEveryOwnerOnce) {
  Memory memory;
  Life life(memory);
  ASSERT_TRUE(life.table.add(spec("a"), "file", kTick).ok());
  const std::uint32_t generation = life.store.current().find_name("a")->generation;
  for (std::uint64_t sequence = 1; sequence <= 4; ++sequence) {
    NewReservation held{
        {sequence % 2, sequence}, abi::endpoint_handle(1, generation), 0, 0, 1, 1, 0, 5, kTick};
    ASSERT_TRUE(life.reservations.reserve(held));
  }
  EXPECT_EQ(life.reservations.owners().size(), 2U);
}

TEST(Reservation, OfAnotherUserDoesNotHideTheOwners) {
  Memory memory;
  Life life(memory);
  ASSERT_TRUE(life.table.add(spec("a"), "file", kTick).ok());
  const std::uint32_t generation = life.store.current().find_name("a")->generation;
  NewReservation held{{9, 9}, abi::endpoint_handle(1, generation), 0, 0, 10, 10, 0, 666, kTick};
  ASSERT_TRUE(life.reservations.reserve(held)) << "a copy of somebody's ticket comes first";
  held.uid = 5;
  ASSERT_TRUE(life.reservations.reserve(held));
  EXPECT_EQ(life.reservations.end({9, 9}, 5), ReportOutcome::kApplied);
  EXPECT_EQ(life.reservations.end({9, 9}, 5), ReportOutcome::kOtherUser) << "only the copy is left";
  EXPECT_EQ(abi::CountWord{memory.records[1].inflight_requests.load()}.count(), 1U);
}

TEST(Restore, CountsReservationsAgainAndFreesTheRest) {
  Memory memory;
  {
    Life first(memory);
    ASSERT_TRUE(first.table.add(spec("a"), "file", kTick).ok());
    const std::uint32_t generation = first.store.current().find_name("a")->generation;
    NewReservation held{{1, 1}, abi::endpoint_handle(1, generation), 0, 0, 100, 120, 0, 5, kTick};
    ASSERT_TRUE(first.reservations.reserve(held));
    held.ticket.sequence = 2;
    ASSERT_TRUE(first.reservations.reserve(held));
    ASSERT_EQ(first.reservations.first_token({1, 2}, 5), ReportOutcome::kApplied);
    held.ticket.sequence = 3;
    held.endpoint = abi::endpoint_handle(1, generation + 7);  // of a generation that is gone
    ASSERT_TRUE(first.reservations.reserve(held));
    held.ticket.sequence = 4;
    held.endpoint = abi::endpoint_handle(4000, 1);  // out of the table: damage
    for (std::uint32_t at = 0; at < 64; ++at) {
      if (memory.slots[at].state.load() != 0) continue;
      memory.slots[at].state.store(2ULL << 62);
      memory.slots[at].endpoint.store(held.endpoint);
      break;
    }
  }
  Life second(memory);
  second.table.restore(kTick + 1);
  EXPECT_EQ(second.reservations.recover(Memory::kIds), 2U);
  EXPECT_EQ(abi::CountWord{memory.records[1].inflight_requests.load()}.count(), 2U);
  EXPECT_EQ(abi::CountWord{memory.records[1].inflight_tokens.load()}.count(), 100U);
  EXPECT_EQ(second.reservations.count_held(), 2U);
  EXPECT_EQ(second.reservations.end({1, 1}, 5), ReportOutcome::kApplied);
  EXPECT_EQ(second.reservations.end({1, 2}, 5), ReportOutcome::kApplied);
  EXPECT_EQ(abi::CountWord{memory.records[1].inflight_requests.load()}.count(), 0U);
  EXPECT_EQ(abi::CountWord{memory.records[1].inflight_tokens.load()}.count(), 0U);
}

TEST(Reset, PutsTheFloorAboveATickThatCameBeforeItsStore) {
  Memory memory;
  std::uint64_t clock = kTick;
  Life life(memory, [&clock] { return clock; });
  ASSERT_TRUE(life.table.add(spec("a"), "file", kTick).ok());
  // The caller read kTick + 4, then the clock moved on: a pick may have read kTick + 6 and still
  // seen the old generation, so that its stamp is kTick + 6.
  clock = kTick + 6;
  ASSERT_TRUE(life.table.reset("a", kTick + 4).ok());
  for (const abi::Word* word : {&memory.records[1].life, &memory.records[1].confirmed_life}) {
    const abi::LifeWord now{word->load()};
    EXPECT_EQ(now.floor(), kTick + 7);
    EXPECT_EQ(now.horizon(), kTick + 7);
    EXPECT_FALSE(abi::stamp_is_live(kTick + 6, now.horizon(), kTick + 7));
  }
  EXPECT_EQ(life.store.current().find_name("a")->generation,
            abi::LifeWord{memory.records[1].life.load()}.generation());
}

TEST(Update, LeavesADrainingEndpointDrainingAtANewAddress) {
  Memory memory;
  Life life(memory);
  ASSERT_TRUE(life.table.add(spec("a"), "file", kTick).ok());
  ASSERT_TRUE(life.table.drain("a", true).ok());
  ASSERT_TRUE(life.table.update(spec("a", "10.0.0.9:1"), kTick + 1).ok());
  EXPECT_EQ(memory.records[1].state.load(),
            static_cast<std::uint32_t>(abi::EndpointState::kDraining));
}

}  // namespace
}  // namespace pickd::endpoints::test
