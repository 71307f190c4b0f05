// The client's ring ends against a plain reference of the other side, written from abi/LAYOUT.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "libclient/ring.hpp"

namespace pickd::client {
namespace {

constexpr std::uint64_t kRingBytes = 4096;

using Bytes = std::vector<std::byte>;

// A record of `bytes` with random content behind a right head.
Bytes make_record(std::size_t bytes, std::uint64_t sequence, std::mt19937& random) {
  Bytes record(bytes);
  for (std::byte& byte : record) byte = static_cast<std::byte>(random());
  const abi::RecordHead head{static_cast<std::uint32_t>(bytes), abi::RecordType::kPick, 0, 0,
                             sequence};
  std::memcpy(record.data(), &head, sizeof head);
  return record;
}

// Memory for one ring and its two indices.
struct Ring {
  alignas(128) std::byte bytes[kRingBytes] = {};
  std::atomic<std::uint64_t> tail{0};
  std::atomic<std::uint64_t> head{0};
};

// The daemon's side of the submissions: takes the next record, or nothing.
std::optional<Bytes> reference_take(Ring& ring) {
  for (;;) {
    const std::uint64_t head = ring.head.load();
    if (head == ring.tail.load()) return std::nullopt;
    std::uint32_t bytes;
    std::memcpy(&bytes, ring.bytes + head % kRingBytes, sizeof bytes);
    const auto type = static_cast<abi::RecordType>(ring.bytes[head % kRingBytes + 4]);
    EXPECT_LE(head % kRingBytes + bytes, kRingBytes) << "a record wraps";
    EXPECT_EQ(head % 128, 0U);
    const Bytes record(ring.bytes + head % kRingBytes, ring.bytes + head % kRingBytes + bytes);
    ring.head.store(head + (bytes + 127) / 128 * 128);
    if (type != abi::RecordType::kPadding) return record;
    EXPECT_EQ((head + bytes) % kRingBytes, 0U) << "padding ends at the end of the ring";
  }
}

// The daemon's side of the completions. False when there is no room.
bool reference_put(Ring& ring, const Bytes& record) {
  const std::uint64_t units = (record.size() + 127) / 128 * 128;
  std::uint64_t tail = ring.tail.load();
  const std::uint64_t to_end = kRingBytes - tail % kRingBytes;
  const std::uint64_t padding = to_end < units ? to_end : 0;
  if (tail + padding + units - ring.head.load() > kRingBytes) return false;
  if (padding != 0) {
    const abi::RecordHead head{static_cast<std::uint32_t>(padding), abi::RecordType::kPadding, 0, 0,
                               0};
    std::memcpy(ring.bytes + tail % kRingBytes, &head, sizeof head);
    tail += padding;
  }
  std::memcpy(ring.bytes + tail % kRingBytes, record.data(), record.size());
  ring.tail.store(tail + units);
  return true;
}

class Submissions : public testing::Test {
 protected:
  Submissions() { writer_.attach(ring_.bytes, kRingBytes, &ring_.tail, &ring_.head); }
  bool put(const Bytes& record, std::uint64_t spare = 0) {
    std::byte* to = writer_.reserve(record.size(), spare);
    if (to == nullptr) return false;
    std::memcpy(to, record.data(), record.size());
    writer_.publish();
    return true;
  }
  Ring ring_;
  SubmissionWriter writer_;
  std::mt19937 random_{1};
};

TEST_F(Submissions, ArriveWholeAndInOrderThroughManyWraps) {
  std::deque<Bytes> expected;
  std::uint64_t sequence = 0;
  std::uint64_t full = 0;
  while (sequence < 20'000) {
    if (random_() % 2 == 0) {
      const Bytes record = make_record(16 + random_() % 1500, ++sequence, random_);
      if (put(record)) {
        expected.push_back(record);
      } else {
        ++full;
      }
    } else if (const auto taken = reference_take(ring_); taken.has_value()) {
      ASSERT_EQ(*taken, expected.front());
      expected.pop_front();
    } else {
      ASSERT_TRUE(expected.empty());
    }
  }
  EXPECT_GT(full, 100U) << "the ring was never full: this test saw half of what it is for";
  EXPECT_FALSE(writer_.broken());
}

TEST_F(Submissions, AreNotSeenBeforeTheyArePublished) {
  ASSERT_NE(writer_.reserve(100, 0), nullptr);
  EXPECT_EQ(ring_.tail.load(), 0U);
  writer_.publish();
  EXPECT_EQ(ring_.tail.load(), 128U);
}

TEST_F(Submissions, CanBeReservedAgainWithoutPublishing) {
  ASSERT_NE(writer_.reserve(1000, 0),
            nullptr);  // given up, as when a request turns out to be malformed
  const Bytes record = make_record(200, 1, random_);
  ASSERT_TRUE(put(record));
  EXPECT_EQ(ring_.tail.load(), 256U);
  EXPECT_EQ(reference_take(ring_), record);
}

TEST_F(Submissions, FillTheRingToTheLastByte) {
  for (std::uint64_t i = 0; i < kRingBytes / 128; ++i)
    ASSERT_TRUE(put(make_record(128, i, random_)));
  EXPECT_FALSE(put(make_record(16, 99, random_)));
  ASSERT_TRUE(reference_take(ring_).has_value());
  EXPECT_TRUE(put(make_record(16, 99, random_)));
}

TEST_F(Submissions, LeaveTheSpareRoomThatTheyWereAskedFor) {
  while (put(make_record(128, 1, random_), abi::kRingUnitBytes)) {
  }
  EXPECT_EQ(ring_.tail.load(), kRingBytes - 128);
  EXPECT_TRUE(put(make_record(16, 2, random_))) << "the spare unit is for a cancel record";
}

TEST_F(Submissions, TellWhenTheDaemonHasTakenThem) {
  ASSERT_TRUE(put(make_record(300, 1, random_)));
  const std::uint64_t position = writer_.position();
  EXPECT_LT(writer_.consumed(), position);
  ASSERT_TRUE(reference_take(ring_).has_value());
  EXPECT_EQ(writer_.consumed(), position);
}

TEST_F(Submissions, BreakOnAnIndexThatCannotBe) {
  for (const std::uint64_t head : {std::uint64_t{128 * 40}, std::uint64_t{64}, UINT64_MAX}) {
    Ring ring;
    SubmissionWriter writer;
    writer.attach(ring.bytes, kRingBytes, &ring.tail, &ring.head);
    ASSERT_NE(writer.reserve(kRingBytes, 0), nullptr);
    writer.publish();
    ring.head.store(head);
    EXPECT_EQ(writer.reserve(16, 0), nullptr);
    EXPECT_TRUE(writer.broken()) << "head " << head;
  }
}

class Completions : public testing::Test {
 protected:
  Completions() { reader_.attach(ring_.bytes, kRingBytes, &ring_.head, &ring_.tail); }
  Ring ring_;
  CompletionReader reader_;
  std::mt19937 random_{2};
};

TEST_F(Completions, ArriveWholeAndInOrderThroughManyWraps) {
  std::deque<Bytes> expected;
  std::uint64_t sequence = 0;
  while (sequence < 20'000) {
    if (random_() % 2 == 0) {
      const Bytes record = make_record(16 + random_() % 1500, ++sequence, random_);
      if (reference_put(ring_, record)) expected.push_back(record);
      continue;
    }
    CompletionRecord record;
    const ReadOutcome outcome = reader_.next(record);
    if (outcome == ReadOutcome::kNone) {
      ASSERT_TRUE(expected.empty());
      continue;
    }
    ASSERT_EQ(outcome, ReadOutcome::kRecord);
    ASSERT_EQ(Bytes(record.data, record.data + record.head.bytes), expected.front());
    expected.pop_front();
    reader_.take();
  }
  EXPECT_FALSE(reader_.broken());
}

TEST_F(Completions, StayUntilTheyAreTaken) {
  ASSERT_TRUE(reference_put(ring_, make_record(40, 7, random_)));
  CompletionRecord record;
  for (int look = 0; look < 3; ++look) {
    ASSERT_EQ(reader_.next(record), ReadOutcome::kRecord);
    EXPECT_EQ(record.head.sequence, 7U);
    EXPECT_EQ(ring_.head.load(), 0U);
  }
  reader_.take();
  EXPECT_EQ(ring_.head.load(), 128U);
  EXPECT_EQ(reader_.next(record), ReadOutcome::kNone);
}

TEST_F(Completions, AreGivenBackInRowsWhenTheyAreTakenQuietly) {
  CompletionRecord record;
  std::uint64_t most_kept = 0;
  for (std::uint64_t sequence = 1; sequence <= 1000; ++sequence) {
    ASSERT_TRUE(reference_put(ring_, make_record(40 + sequence % 700, sequence, random_)))
        << "three quarters are free whenever nothing is outstanding";
    ASSERT_EQ(reader_.next(record), ReadOutcome::kRecord);
    ASSERT_EQ(record.head.sequence, sequence);
    reader_.take_quietly();
    most_kept = std::max(most_kept, ring_.tail.load() - ring_.head.load());
    ASSERT_EQ(reader_.next(record), ReadOutcome::kNone);
  }
  EXPECT_LT(most_kept, kRingBytes / 4);
  EXPECT_GT(most_kept, 0U);
}

TEST_F(Completions, BreakOnLengthsThatCannotBe) {
  for (const std::uint32_t bytes : {0U, 15U, 129U, 4097U, UINT32_MAX}) {
    Ring ring;
    CompletionReader reader;
    reader.attach(ring.bytes, kRingBytes, &ring.head, &ring.tail);
    const abi::RecordHead head{bytes, abi::RecordType::kPick, 0, 0, 1};
    std::memcpy(ring.bytes, &head, sizeof head);
    ring.tail.store(128);
    CompletionRecord record;
    EXPECT_EQ(reader.next(record), ReadOutcome::kBroken) << bytes << " bytes";
    EXPECT_TRUE(reader.broken());
  }
}

TEST_F(Completions, BreakOnARecordThatWraps) {
  for (int i = 0; i < 31; ++i) {
    ASSERT_TRUE(reference_put(ring_, make_record(128, 1, random_)));
    CompletionRecord record;
    ASSERT_EQ(reader_.next(record), ReadOutcome::kRecord);
    reader_.take();
  }
  const abi::RecordHead head{256, abi::RecordType::kPick, 0, 0, 1};
  std::memcpy(ring_.bytes + 31 * 128, &head, sizeof head);
  ring_.tail.store(33 * 128);
  CompletionRecord record;
  EXPECT_EQ(reader_.next(record), ReadOutcome::kBroken);
}

TEST_F(Completions, BreakOnAnIndexThatCannotBe) {
  for (const std::uint64_t tail : {std::uint64_t{128 * 40}, std::uint64_t{64}, UINT64_MAX}) {
    Ring ring;
    CompletionReader reader;
    reader.attach(ring.bytes, kRingBytes, &ring.head, &ring.tail);
    ring.tail.store(tail);
    CompletionRecord record;
    EXPECT_EQ(reader.next(record), ReadOutcome::kBroken) << "tail " << tail;
  }
}

// Both ends at once, with the real orders of memory: what arrives is what was written.
TEST(Rings, CarryRecordsBetweenTwoThreads) {
  Ring ring;
  SubmissionWriter writer;
  writer.attach(ring.bytes, kRingBytes, &ring.tail, &ring.head);
  CompletionReader reader;  // the same protocol seen from the other end
  reader.attach(ring.bytes, kRingBytes, &ring.head, &ring.tail);
  constexpr std::uint64_t kRecords = 5'000;
  std::atomic<bool> given_up{false};

  std::thread producer([&] {
    for (std::uint64_t sequence = 1; sequence <= kRecords;) {
      const std::size_t bytes = 16 + sequence * 37 % 900;
      std::byte* to = writer.reserve(bytes, 0);
      if (to == nullptr && given_up.load()) return;
      if (to == nullptr) continue;
      const abi::RecordHead head{static_cast<std::uint32_t>(bytes), abi::RecordType::kPick, 0, 0,
                                 sequence};
      std::memset(to, static_cast<int>(sequence & 0xFF), bytes);
      std::memcpy(to, &head, sizeof head);
      writer.publish();
      ++sequence;
    }
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t sequence = 1; sequence <= kRecords;) {
    CompletionRecord record;
    const ReadOutcome outcome = reader.next(record);
    if (outcome == ReadOutcome::kBroken) break;
    if (outcome == ReadOutcome::kNone) continue;
    if (record.head.sequence != sequence || record.head.bytes != 16 + sequence * 37 % 900) ++wrong;
    for (std::size_t i = sizeof record.head; i < record.head.bytes; ++i) {
      if (record.data[i] != static_cast<std::byte>(sequence & 0xFF)) ++wrong;
    }
    reader.take();
    ++sequence;
  }
  given_up.store(true);
  producer.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_FALSE(reader.broken());
}

}  // namespace
}  // namespace pickd::client
