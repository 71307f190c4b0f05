// The state segment is checked before it is believed.
#include <errno.h>
#include <gtest/gtest.h>

#include "tests/libclient/support.hpp"

namespace pickd::client {
namespace {

int map(Fd segment) {
  StateView view;
  LastError error;
  const int code = view.map(std::move(segment), error);
  if (code != 0) {
    EXPECT_NE(last_error(error), "") << "a refusal without words";
  }
  return code;
}

TEST(StateView, ReadsWhatTheDaemonWrote) {
  StateView view;
  LastError error;
  ASSERT_EQ(view.map(make_state_segment(), error), 0) << last_error(error);
  EXPECT_EQ(view.block_tokens(), 64U);
  EXPECT_EQ(view.keys_max(), 2048U);
  EXPECT_EQ(view.workers(), 2U);
  EXPECT_EQ(view.daemon_epoch(), 7U);
  EXPECT_FALSE(view.superseded());
  EXPECT_FALSE(view.asleep(1));
  ASSERT_NE(view.algorithm(abi::KeyKind::kText), nullptr);
  EXPECT_EQ(view.algorithm(abi::KeyKind::kText)->id, 1);
  EXPECT_EQ(view.algorithm(abi::KeyKind::kTokens)->id, 2);
  EXPECT_EQ(view.hash_secret()[1], 167 + 13);
}

TEST(StateView, FindsAlgorithmsByKindWhereverTheyStand) {
  StateView view;
  LastError error;
  Fd segment = make_state_segment([](abi::StateHeader& header) {
    header.key_algorithms[0] = {};
    header.key_algorithms[1] = {};
    header.key_algorithms[5] = {9, abi::KeyKind::kTokens, 1, 0, 256};
  });
  ASSERT_EQ(view.map(std::move(segment), error), 0) << last_error(error);
  EXPECT_EQ(view.algorithm(abi::KeyKind::kText), nullptr);
  ASSERT_NE(view.algorithm(abi::KeyKind::kTokens), nullptr);
  EXPECT_EQ(view.algorithm(abi::KeyKind::kTokens)->id, 9);
}

TEST(StateView, SeesTheDaemonsLaterStores) {
  Fd segment = make_state_segment();
  void* memory =
      ::mmap(nullptr, kTestStateBytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment.get(), 0);
  auto* header = static_cast<abi::StateHeader*>(memory);
  auto* words = reinterpret_cast<abi::WorkerWord*>(static_cast<char*>(memory) + abi::kPageBytes);
  StateView view;
  LastError error;
  ASSERT_EQ(view.map(std::move(segment), error), 0) << last_error(error);
  words[1].asleep.store(1);
  header->superseded.store(1);
  header->heartbeat_ns.store(123);
  EXPECT_FALSE(view.asleep(0));
  EXPECT_TRUE(view.asleep(1));
  EXPECT_TRUE(view.superseded());
  EXPECT_EQ(view.heartbeat_ns(), 123U);
  ::munmap(memory, kTestStateBytes);
}

TEST(StateView, RefusesASegmentThatIsStillBeingFilled) {
  EXPECT_EQ(map(make_state_segment([](auto& header) { header.segment.version.store(0); })),
            -EPROTO);
}

TEST(StateView, RefusesAnotherKindOfSegment) {
  EXPECT_EQ(
      map(make_state_segment([](auto& header) { header.segment.magic = abi::kChannelMagic; })),
      -EPROTO);
  EXPECT_EQ(
      map(make_state_segment([](auto& header) { header.segment.byte_order_mark = 0x04030201; })),
      -EPROTO);
}

TEST(StateView, NamesBothVersionsOfAnotherLayout) {
  StateView view;
  LastError error;
  Fd segment = make_state_segment([](abi::StateHeader& header) {
    header.segment.layout_major = 9;
    header.segment.layout_minor = 4;
    header.segment.version.store(abi::segment_version(9, 4));
  });
  EXPECT_EQ(view.map(std::move(segment), error), -EPROTONOSUPPORT);
  EXPECT_NE(last_error(error).find("9.4"), std::string::npos) << last_error(error);
  EXPECT_NE(last_error(error).find("1.x"), std::string::npos) << last_error(error);
}

TEST(StateView, AcceptsANewerMinorLayout) {
  EXPECT_EQ(map(make_state_segment([](abi::StateHeader& header) {
              header.segment.layout_minor = 3;
              header.segment.version.store(abi::segment_version(abi::kLayoutMajor, 3));
              header.segment.header_bytes += 64;
            })),
            0);
}

TEST(StateView, RefusesFeaturesThatAReaderMustUnderstand) {
  EXPECT_EQ(map(make_state_segment([](auto& header) { header.segment.features = 1U << 31; })),
            -EPROTONOSUPPORT);
}

TEST(StateView, RefusesAFileOfAnotherSizeThanItsHeaderSays) {
  const auto unchanged = [](abi::StateHeader&) {};
  EXPECT_EQ(map(make_state_segment(unchanged, kTestStateBytes / 2)), -EPROTO);
  EXPECT_EQ(map(make_state_segment(unchanged, 100)), -EPROTO);
  EXPECT_EQ(map(make_state_segment(unchanged, 0)), -EPROTO);
  EXPECT_EQ(map(make_state_segment([](auto& header) { header.segment.header_bytes = 64; })),
            -EPROTO);
  EXPECT_EQ(map(make_state_segment([](auto& header) { header.segment.header_bytes = UINT32_MAX; })),
            -EPROTO);
}

TEST(StateView, RefusesNumbersOutOfRange) {
  EXPECT_EQ(map(make_state_segment([](auto& header) { header.block_tokens = 0; })), -EPROTO);
  EXPECT_EQ(map(make_state_segment([](auto& header) { header.block_tokens = 4096; })), -EPROTO);
  EXPECT_EQ(map(make_state_segment([](auto& header) { header.keys_max = 0; })), -EPROTO);
  EXPECT_EQ(map(make_state_segment([](auto& header) { header.keys_max = 1 << 20; })), -EPROTO);
  EXPECT_EQ(map(make_state_segment([](auto& header) { header.workers = 0; })), -EPROTO);
  EXPECT_EQ(map(make_state_segment([](auto& header) { header.workers = 33; })), -EPROTO);
  EXPECT_EQ(map(make_state_segment([](auto& header) { header.key_algorithms[0].block_bytes = 0; })),
            -EPROTO);
}

TEST(StateView, RefusesWorkerWordsOutsideOfTheSegment) {
  for (const std::uint64_t offset :
       {kTestStateBytes, kTestStateBytes - 128, UINT64_MAX - 127, std::uint64_t{4097}}) {
    EXPECT_EQ(map(make_state_segment([offset](auto& header) { header.workers_offset = offset; })),
              -EPROTO)
        << offset;
  }
}

TEST(StateView, RefusesWhatIsNoMemory) {
  EXPECT_NE(map(Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC))), 0);
  EXPECT_EQ(map(Fd()), -EBADF);
}

}  // namespace
}  // namespace pickd::client
