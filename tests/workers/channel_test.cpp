// A channel with an honest client: records, padding, wraps, bells, and what the segment says.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <deque>
#include <thread>

#include "abi/fence.hpp"
#include "daemon/base/random.hpp"
#include "tests/workers/client_side.hpp"

namespace pickd::workers::test {
namespace {

class ChannelSegment : public ChannelTest {
 protected:
  static ChannelParameters parameters() {
    ChannelParameters made;
    made.id = 70;  // not the first colour
    made.worker = 3;
    made.daemon_epoch = 99;
    return made;
  }
  ChannelSegment() : ChannelTest(parameters()) {}
};

TEST_F(ChannelSegment, SaysInItsHeaderWhereEverythingIs) {
  const abi::ChannelHeader& header = client_->header();
  EXPECT_EQ(header.segment.magic, abi::kChannelMagic);
  EXPECT_EQ(header.segment.layout_major, abi::kLayoutMajor);
  EXPECT_EQ(header.segment.total_bytes, client_->bytes());
  EXPECT_EQ(header.segment.header_bytes, sizeof(abi::ChannelHeader));
  EXPECT_EQ(header.segment.byte_order_mark, abi::kByteOrderMark);
  EXPECT_EQ(header.segment.daemon_epoch, 99U);
  EXPECT_EQ(header.segment.version.load(),
            abi::segment_version(abi::kLayoutMajor, abi::kLayoutMinor));
  EXPECT_EQ(header.channel_id, 70U);
  EXPECT_EQ(header.worker, 3U);
  EXPECT_EQ(header.keys_max, 64U);
  EXPECT_GE(header.indices_offset, abi::kPageBytes);
  EXPECT_EQ(header.indices_offset % abi::kLinePairBytes, 0U);
  EXPECT_GE(header.submissions_offset, header.indices_offset + sizeof(abi::RingIndices));
  EXPECT_EQ(header.completions_offset, header.submissions_offset + header.submissions_bytes);
  EXPECT_EQ(header.completions_offset + header.completions_bytes, client_->bytes());
}

TEST_F(ChannelSegment, CannotBeShrunkGrownOrUnsealed) {
  const int fd = descriptors_.segment.get();
  EXPECT_EQ(::ftruncate(fd, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(client_->bytes() * 2)), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::fcntl(fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  EXPECT_NE(::fallocate(fd, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(client_->bytes()), 4096), 0);
}

using ChannelRing = ChannelTest;

TEST_F(ChannelRing, HasNothingAtFirst) {
  EXPECT_FALSE(channel_->has_submissions(false));
  EXPECT_FALSE(channel_->has_submissions(true));
  EXPECT_EQ(take(), Channel::Look::kNothing);
  EXPECT_TRUE(client_->next_completion().empty());
}

TEST_F(ChannelRing, CopiesARecordAndFreesItsPlace) {
  const auto record = ClientSide::record(200, 7);
  ASSERT_TRUE(client_->submit(record));
  EXPECT_TRUE(channel_->has_submissions(true));
  std::size_t bytes = 0;
  ASSERT_EQ(take(&bytes), Channel::Look::kRecord);
  ASSERT_EQ(bytes, 200U);
  EXPECT_EQ(0, std::memcmp(copy_.data(), record.data(), 200));
  EXPECT_EQ(client_->indices().submissions_head.load(), 256U);
  EXPECT_FALSE(channel_->has_submissions(true));
  EXPECT_EQ(take(), Channel::Look::kNothing);
}

TEST_F(ChannelRing, LooksAheadAtTheKeysOfThePickThatComesNext) {
  EXPECT_TRUE(channel_->look_ahead(16).empty());
  for (const std::uint32_t keys : {3U, 40U}) {
    std::vector<std::byte> record(sizeof(abi::PickRecord) + keys * sizeof(std::uint64_t));
    abi::PickRecord head{};
    head.head = {static_cast<std::uint32_t>(record.size()), abi::RecordType::kPick, 0, 0, keys};
    head.key_count = keys;
    std::memcpy(record.data(), &head, sizeof head);
    for (std::uint64_t key = 0; key < keys; ++key)
      std::memcpy(record.data() + sizeof head + key * sizeof key, &key, sizeof key);
    ASSERT_TRUE(client_->submit(record));
  }
  EXPECT_TRUE(channel_->look_ahead(16).empty()) << "nobody has looked at the index yet";
  ASSERT_EQ(take(), Channel::Look::kRecord);
  const auto ahead = channel_->look_ahead(16);
  ASSERT_EQ(ahead.size(), 16U) << "of the 40 of the second";
  for (std::uint64_t key = 0; key < 16; ++key) EXPECT_EQ(ahead[key].load(), key);
  ASSERT_EQ(take(), Channel::Look::kRecord) << "nothing was taken";
  EXPECT_TRUE(channel_->look_ahead(16).empty());
}

TEST_F(ChannelRing, TakesRecordsOfEverySizeThroughManyWrapsInOrder) {
  base::Random random(5);
  const auto most = static_cast<std::uint32_t>(copy_.size());
  std::uint64_t sent = 0;
  std::uint64_t got = 0;
  std::deque<std::vector<std::byte>> waiting;
  while (got < 5000) {
    if (sent < 5000) {
      auto record = ClientSide::record(16 + random.below(most - 15), sent, abi::RecordType::kPick,
                                       static_cast<std::byte>(random.below(256)));
      if (client_->submit(record)) {
        waiting.push_back(std::move(record));
        ++sent;
        if (random.below(3) != 0) continue;
      }
    }
    const auto record = next_submission();
    ASSERT_FALSE(record.empty()) << got;
    ASSERT_EQ(record, waiting.front()) << got;
    waiting.pop_front();
    ++got;
  }
  EXPECT_EQ(client_->indices().submissions_head.load(), client_->tail());
}

TEST_F(ChannelRing, GivesTheLongestRecordThatItsKeysAllow) {
  const auto record = ClientSide::record(static_cast<std::uint32_t>(copy_.size()));
  ASSERT_TRUE(client_->submit(record));
  EXPECT_EQ(next_submission(), record);
}

TEST_F(ChannelRing, PutsCompletionsThroughManyWrapsInOrder) {
  base::Random random(6);
  std::uint64_t put = 0;
  std::uint64_t got = 0;
  std::deque<std::vector<std::byte>> waiting;
  while (got < 5000) {
    auto record = ClientSide::record(24 + random.below(1000), put);
    if (put < 5000 && channel_->put(record)) {
      waiting.push_back(std::move(record));
      ++put;
      if (random.below(3) != 0) continue;
    }
    const auto record_got = client_->next_completion();
    ASSERT_FALSE(record_got.empty()) << got;
    ASSERT_EQ(record_got, waiting.front()) << got;
    waiting.pop_front();
    ++got;
  }
  EXPECT_GT(client_->paddings(), 100U);
}

TEST_F(ChannelRing, PutsNothingIntoAFullRingAndGoesOnWhenThereIsRoom) {
  const auto record = ClientSide::record(128);
  int put = 0;
  while (channel_->put(record)) ASSERT_LE(++put, 32);
  EXPECT_EQ(put, 32);
  const std::uint64_t tail = client_->indices().completions_tail.load();
  EXPECT_FALSE(channel_->put(record));
  EXPECT_EQ(client_->indices().completions_tail.load(), tail);
  EXPECT_FALSE(client_->next_completion().empty());
  EXPECT_TRUE(channel_->put(record));
  EXPECT_FALSE(channel_->put(record));
}

TEST_F(ChannelRing, WakesOnlyAClientThatSleeps) {
  pollfd pipe{descriptors_.pipe.get(), POLLIN, 0};
  EXPECT_FALSE(channel_->wake_client());
  EXPECT_EQ(::poll(&pipe, 1, 0), 0);
  client_->indices().completions_waiting.store(1);
  EXPECT_TRUE(channel_->wake_client());
  EXPECT_EQ(::poll(&pipe, 1, 0), 1);
}

TEST_F(ChannelRing, DoesNotWaitForAClientThatNeverReadsItsPipe) {
  client_->indices().completions_waiting.store(1);
  // Another flag of the shared descriptor: the daemon's end is its own.
  ::fcntl(descriptors_.pipe.get(), F_SETFL, 0);
  for (int turn = 0; turn < 200'000; ++turn) ASSERT_TRUE(channel_->wake_client());
}

TEST_F(ChannelRing, GivesTheClientABellThatTheWorkerSees) {
  pollfd bell{channel_->bell(), POLLIN, 0};
  EXPECT_EQ(::poll(&bell, 1, 0), 0);
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(descriptors_.bell.get(), &one, sizeof one), 8);
  EXPECT_EQ(::poll(&bell, 1, 0), 1);
}

TEST_F(ChannelRing, CarriesRecordsBetweenTwoThreads) {
  constexpr std::uint64_t kRecords = 50'000;
  std::thread client([this] {
    base::Random random(9);
    std::uint64_t sent = 0;
    std::uint64_t answered = 0;
    while (answered < kRecords) {
      if (sent < kRecords && client_->submit(ClientSide::record(16 + random.below(600), sent))) {
        ++sent;
      }
      const auto completion = client_->next_completion();
      if (completion.empty()) {
        std::this_thread::yield();
        continue;
      }
      abi::RecordHead head;
      std::memcpy(&head, completion.data(), sizeof head);
      ASSERT_EQ(head.sequence, answered++);
    }
  });
  std::uint64_t served = 0;
  while (served < kRecords) {
    const auto record = next_submission();
    if (record.empty()) {
      std::this_thread::yield();
      continue;
    }
    abi::RecordHead head;
    std::memcpy(&head, record.data(), sizeof head);
    ASSERT_EQ(head.sequence, served);
    while (!channel_->put(ClientSide::record(64, served))) std::this_thread::yield();
    ++served;
  }
  client.join();
}

}  // namespace
}  // namespace pickd::workers::test
