// A channel with a hostile client: what it writes breaks its own channel and is never read out of
// bounds. Run it with AddressSanitizer too.
#include <chrono>
#include <thread>

#include "abi/fence.hpp"
#include "daemon/base/random.hpp"
#include "tests/workers/client_side.hpp"

namespace pickd::workers::test {
namespace {

class HostileClient : public ChannelTest {
 protected:
  std::uint64_t ring() const { return client_->header().submissions_bytes; }
  // Brings both indices to `index` by honest records of one unit.
  void advance_to(std::uint64_t index) {
    while (client_->tail() < index) {
      ASSERT_TRUE(client_->submit(ClientSide::record(128)));
      ASSERT_FALSE(next_submission().empty());
    }
  }
  void expect_broken() {
    EXPECT_EQ(take(), Channel::Look::kBroken);
    EXPECT_EQ(take(), Channel::Look::kBroken) << "and it stays broken";
  }
};

TEST_F(HostileClient, BreaksWithATailBeyondTheRing) {
  client_->write_at(0, ClientSide::record(128), 128);
  client_->publish(ring() + 128);
  expect_broken();
}

TEST_F(HostileClient, BreaksWithATailFarAway) {
  client_->write_at(0, ClientSide::record(128), 128);
  client_->publish(~0ULL - 127);
  expect_broken();
}

TEST_F(HostileClient, BreaksWithATailThatWentBack) {
  advance_to(1024);
  client_->publish(512);
  EXPECT_TRUE(channel_->has_submissions(true));
  expect_broken();
}

TEST_F(HostileClient, BreaksWithATailWithinAUnit) {
  client_->write_at(0, ClientSide::record(16), 16);
  for (const std::uint64_t tail : {1, 16, 64, 127, 129, 200}) {
    client_->publish(tail);
    EXPECT_EQ(take(), Channel::Look::kBroken) << tail;
  }
}

TEST_F(HostileClient, TakesAFullRingForWhatItIs) {
  for (std::uint64_t at = 0; at < ring(); at += 128) {
    client_->write_at(at, ClientSide::record(128), 128);
  }
  client_->publish(ring());
  for (std::uint64_t at = 0; at < ring(); at += 128) ASSERT_EQ(take(), Channel::Look::kRecord);
  EXPECT_EQ(take(), Channel::Look::kNothing);
}

TEST_F(HostileClient, BreaksWithALengthThatIsNone) {
  for (const std::uint32_t bytes : {0U, 1U, 15U}) {
    client_->write_at(0, ClientSide::record(bytes), 16);
    client_->publish(128);
    EXPECT_EQ(take(), Channel::Look::kBroken) << bytes;
  }
}

TEST_F(HostileClient, BreaksWithALengthBeyondWhatIsThere) {
  for (const std::uint32_t bytes : {129U, 256U, 65'536U, 0x7FFFFFFFU, 0xFFFFFF80U, 0xFFFFFFFFU}) {
    client_->write_at(0, ClientSide::record(16), 16);
    std::memcpy(client_->submissions(), &bytes, sizeof bytes);
    client_->publish(128);
    EXPECT_EQ(take(), Channel::Look::kBroken) << bytes;
  }
}

TEST_F(HostileClient, BreaksWithALengthBeyondTheLongestRecord) {
  const auto bytes = static_cast<std::uint32_t>(copy_.size() + 1);
  client_->write_at(0, ClientSide::record(bytes), bytes);
  client_->publish(abi::ring_units_bytes(bytes));
  expect_broken();
}

TEST_F(HostileClient, BreaksWithARecordOverTheEndOfTheRing) {
  advance_to(ring() - 128);
  client_->write_at(ring() - 128, ClientSide::record(256), 16);
  client_->publish(ring() + 128);
  expect_broken();
}

TEST_F(HostileClient, BreaksWithPaddingThatDoesNotFillTheRing) {
  advance_to(ring() - 512);
  for (const std::uint32_t bytes : {16U, 128U, 384U}) {
    client_->write_at(ring() - 512, ClientSide::record(bytes, 0, abi::RecordType::kPadding), 16);
    client_->publish(ring() + 256);
    EXPECT_EQ(take(), Channel::Look::kBroken) << bytes;
  }
  client_->write_at(ring() - 512, ClientSide::record(640, 0, abi::RecordType::kPadding), 16);
  expect_broken();
  client_->write_at(ring() - 512, ClientSide::record(512, 0, abi::RecordType::kPadding), 16);
  std::size_t bytes = 1;
  EXPECT_EQ(take(&bytes), Channel::Look::kRecord) << "the right size is padding";
  EXPECT_EQ(bytes, 0U);
}

TEST_F(HostileClient, BreaksWithPaddingThatIsNotThereYet) {
  advance_to(ring() - 512);
  client_->write_at(ring() - 512, ClientSide::record(512, 0, abi::RecordType::kPadding), 16);
  client_->publish(ring() - 384);
  expect_broken();
}

TEST_F(HostileClient, PassesAnUnknownTypeOnForTheWorkerToRefuse) {
  client_->write_at(0, ClientSide::record(64, 5, static_cast<abi::RecordType>(200)), 64);
  client_->publish(128);
  std::size_t bytes = 0;
  EXPECT_EQ(take(&bytes), Channel::Look::kRecord);
  EXPECT_EQ(bytes, 64U);
}

TEST_F(HostileClient, DoesNotMoveTheDaemonByWritingItsIndices) {
  advance_to(1024);
  client_->indices().submissions_head.store(12'345);
  client_->indices().completions_tail.store(987'654);
  ASSERT_TRUE(channel_->put(ClientSide::record(64, 3)));
  EXPECT_EQ(client_->indices().completions_tail.load(), 128U) << "its own index is private";
  client_->indices().submissions_head.store(1024);
  ASSERT_TRUE(client_->submit(ClientSide::record(100, 4)));
  EXPECT_EQ(next_submission().size(), 100U);
  EXPECT_EQ(client_->indices().submissions_head.load(), 1152U);
}

TEST_F(HostileClient, DoesNotMoveTheDaemonByWritingTheHeader) {
  client_->header().submissions_bytes = 1ULL << 40;
  client_->header().completions_bytes = 0;
  client_->header().submissions_offset = ~0ULL;
  client_->header().keys_max = ~0U;
  EXPECT_EQ(take(), Channel::Look::kNothing);
  EXPECT_TRUE(channel_->put(ClientSide::record(64)));
  client_->indices().submissions_tail.store(128 * 1024);
  EXPECT_EQ(take(), Channel::Look::kBroken);
}

TEST_F(HostileClient, GetsNothingMoreWithAHeadThatItNeverReached) {
  const auto record = ClientSide::record(128);
  while (channel_->put(record)) {
  }
  const std::uint64_t tail = client_->indices().completions_tail.load();
  for (const std::uint64_t head : {tail + 128, tail + 1, ~std::uint64_t{0}, tail - 8192}) {
    client_->indices().completions_head.store(head);
    EXPECT_FALSE(channel_->put(record)) << head;
    EXPECT_EQ(client_->indices().completions_tail.load(), tail);
  }
  client_->indices().completions_head.store(128);
  EXPECT_TRUE(channel_->put(record)) << "an honest one is believed again";
}

#ifndef PICKD_TSAN  // the race is what this is about
TEST_F(HostileClient, CannotChangeALengthAfterItWasChecked) {
  // Every unit of the ring begins with a length that never stands still.
  auto* words = reinterpret_cast<std::atomic<std::uint32_t>*>(client_->submissions());
  const std::uint64_t units = ring() / 128;
  for (std::uint64_t unit = 0; unit < units; ++unit) {
    client_->write_at(unit * 128, ClientSide::record(100), 100);
  }
  std::atomic<std::uint64_t> at_work{0};
  std::atomic<bool> stop{false};
  std::thread flipper([&] {
    constexpr std::uint32_t kLengths[] = {100, 16, 128, 0xFFFFFFFF, 0, 48, 65'536};
    for (std::uint32_t turn = 0; !stop.load(std::memory_order_relaxed); ++turn) {
      const std::uint64_t unit = at_work.load(std::memory_order_relaxed) % units;
      words[unit * 32].store(kLengths[turn % std::size(kLengths)], std::memory_order_relaxed);
    }
  });
  std::uint64_t taken = 0;
  // More turns where a busy machine leaves the other thread standing at a length that is none.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (int turn = 0; turn < 300'000 || taken <= 1000; ++turn) {
    if (turn >= 300'000) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << taken;
      std::this_thread::yield();
    }
    at_work.store(taken, std::memory_order_relaxed);
    client_->publish((taken + 1) * 128);
    std::size_t bytes = 0;
    if (take(&bytes) != Channel::Look::kRecord) continue;
    std::uint32_t told = 0;
    std::memcpy(&told, copy_.data(), sizeof told);
    ASSERT_EQ(told, bytes) << "the copy says what was checked";
    ASSERT_GE(bytes, 16U);
    ASSERT_LE(bytes, 128U);
    ++taken;
  }
  stop.store(true);
  flipper.join();
  EXPECT_GT(taken, 1000U);
}
#endif

TEST_F(HostileClient, SurvivesARingOfNoise) {
  base::Random random(12);
  for (int round = 0; round < 3000; ++round) {
    if (round % 30 == 0) {  // a fresh one once in a while: the old one may be broken for good
      auto made = Channel::create(channel_->parameters(), &descriptors_);
      ASSERT_TRUE(made.ok());
      channel_ = std::move(*made);
      client_ = std::make_unique<ClientSide>(descriptors_.segment.get());
    }
    auto* words = reinterpret_cast<std::uint32_t*>(client_->submissions());
    for (std::uint64_t at = 0; at < ring() / 4; at += 32) {
      words[at] =
          random.below(4) == 0 ? static_cast<std::uint32_t>(random.next()) : random.below(400);
      words[at + 1] = random.below(4);
    }
    client_->indices().submissions_tail.store(random.below(2) == 0 ? random.below(600) * 128ULL
                                                                   : random.next());
    for (int look = 0; look < 600; ++look) {
      std::size_t bytes = 0;
      if (take(&bytes) != Channel::Look::kRecord) break;
      ASSERT_LE(bytes, copy_.size());
    }
  }
}

}  // namespace
}  // namespace pickd::workers::test
