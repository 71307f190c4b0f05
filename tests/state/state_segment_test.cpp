// The state segment's file: how it is made, what stands in it, who may do what with it.
#include "daemon/state/state_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "daemon/state/boot_id.hpp"
#include "daemon/state/counters.hpp"
#include "daemon/state/tick_clock.hpp"
#include "tests/state/temporary_directory.hpp"

namespace pickd::state::test {
namespace {

StateParameters small() {
  StateParameters parameters;
  parameters.bytes = 4ULL << 20;
  parameters.endpoints_max = 16;
  parameters.reservations_max = 1024;
  parameters.workers = 2;
  return parameters;
}

class StateSegmentFile : public InADirectory {
 protected:
  std::unique_ptr<StateSegment> create(const StateParameters& parameters = small()) {
    auto made = StateSegment::create(path(), parameters);
    EXPECT_TRUE(made.ok()) << made.error().text;
    return made ? std::move(made.value()) : nullptr;
  }
};

TEST_F(StateSegmentFile, IsOfItsSizeAllocatedAndForItsOwnerOnly) {
  const auto segment = create();
  struct stat file {};
  ASSERT_EQ(::stat(path().c_str(), &file), 0);
  EXPECT_EQ(file.st_size, 4 << 20);
  EXPECT_EQ(file.st_mode & 07777, 0600U);
  EXPECT_GE(file.st_blocks * 512, 4 << 20) << "a sparse file is SIGBUS later";
  EXPECT_EQ(segment->bytes(), 4ULL << 20);
  EXPECT_EQ(segment->path(), path());
}

TEST_F(StateSegmentFile, IsMadeUnderAnotherNameThatDoesNotStay) {
  const auto segment = create();
  EXPECT_EQ(files(), std::set<std::string>{"state"});
}

TEST_F(StateSegmentFile, TakesThePlaceOfOneThatIsThere) {
  std::ofstream(path()) << "something else";
  std::ofstream(path("state.new")) << "left by a daemon that died while it filled it";
  const auto first = create();
  ASSERT_NE(first, nullptr);
  first->header().superseded.store(0);
  first->prefix_words()[0].store(77);
  const auto second = create();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(first->prefix_words()[0].load(), 77U) << "who has the old one mapped keeps it whole";
  EXPECT_EQ(second->prefix_words()[0].load(), 0U);
  EXPECT_NE(first->header().instance_id, second->header().instance_id);
  EXPECT_NE(first->header().segment.daemon_epoch, second->header().segment.daemon_epoch);
  EXPECT_NE(0, std::memcmp(first->header().hash_secret, second->header().hash_secret,
                           sizeof first->header().hash_secret));
  EXPECT_EQ(files(), std::set<std::string>{"state"});
}

TEST_F(StateSegmentFile, DoesNotFollowALinkOfItsWorkingName) {
  std::ofstream(path("victim")) << "precious";
  ASSERT_EQ(::symlink(path("victim").c_str(), path("state.new").c_str()), 0);
  const auto segment = create();
  ASSERT_NE(segment, nullptr);
  std::string text;
  std::getline(std::ifstream(path("victim")), text);
  EXPECT_EQ(text, "precious");
}

TEST_F(StateSegmentFile, CannotBeMappedForWritingByWhoeverGetsTheReadOnlyDescriptor) {
  const auto segment = create();
  auto fd = segment->open_read_only();
  ASSERT_TRUE(fd.ok()) << fd.error().text;
  void* writable = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0);
  EXPECT_EQ(writable, MAP_FAILED);
  EXPECT_EQ(errno, EACCES);
  void* readable = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd->get(), 0);
  ASSERT_NE(readable, MAP_FAILED);
  EXPECT_NE(::mprotect(readable, 4096, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(static_cast<const abi::StateHeader*>(readable)->instance_id,
            segment->header().instance_id);
  ::munmap(readable, 4096);
  EXPECT_EQ(::write(fd->get(), "x", 1), -1);
  EXPECT_NE(::ftruncate(fd->get(), 0), 0);
}

TEST_F(StateSegmentFile, GivesADescriptorOfItselfWhenItsPathNamesAnother) {
  const auto first = create();
  const auto second = create();
  auto fd = first->open_read_only();
  ASSERT_TRUE(fd.ok());
  std::uint64_t instance = 0;
  ASSERT_EQ(::pread(fd->get(), &instance, sizeof instance, offsetof(abi::StateHeader, instance_id)),
            static_cast<ssize_t>(sizeof instance));
  EXPECT_EQ(instance, first->header().instance_id);
}

TEST_F(StateSegmentFile, SaysInItsHeaderWhatAReaderNeeds) {
  StateParameters parameters = small();
  parameters.block_tokens = 32;
  parameters.keys_max = 512;
  parameters.blocks_min = 3;
  parameters.blocks_max = 400;
  parameters.ttl_ticks = 1234;
  const std::uint64_t before_ns = base::boot_ns();
  const auto segment = create(parameters);
  const abi::StateHeader& header = segment->header();
  EXPECT_EQ(header.segment.magic, abi::kStateMagic);
  EXPECT_EQ(header.segment.layout_major, abi::kLayoutMajor);
  EXPECT_EQ(header.segment.layout_minor, abi::kLayoutMinor);
  EXPECT_EQ(header.segment.header_bytes, sizeof(abi::StateHeader));
  EXPECT_EQ(header.segment.total_bytes, 4ULL << 20);
  EXPECT_EQ(header.segment.byte_order_mark, abi::kByteOrderMark);
  EXPECT_EQ(header.segment.features, abi::kFeatureHotGroups);
  EXPECT_EQ(header.segment.version.load(),
            abi::segment_version(abi::kLayoutMajor, abi::kLayoutMinor));
  EXPECT_NE(header.segment.daemon_epoch, 0U);
  std::uint8_t boot_id[16];
  read_boot_id(boot_id);
  EXPECT_EQ(0, std::memcmp(boot_id, header.segment.boot_id, 16));
  EXPECT_EQ(header.block_tokens, 32U);
  EXPECT_EQ(header.keys_max, 512U);
  EXPECT_EQ(header.blocks_min, 3U);
  EXPECT_EQ(header.blocks_max, 400U);
  EXPECT_EQ(header.ttl_ticks, 1234U);
  EXPECT_EQ(header.tick_ns, abi::kTickNs);
  EXPECT_EQ(header.workers, 2U);
  EXPECT_EQ(header.endpoint_ids, 17U);
  EXPECT_EQ(header.reservation_slots, 1024U);
  EXPECT_EQ(header.daemon_pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_GE(header.heartbeat_ns.load(), before_ns);
  EXPECT_EQ(header.superseded.load(), 0U);
  EXPECT_EQ(header.endpoint_high_water.load(), 1U);
}

TEST_F(StateSegmentFile, ListsOneKeyAlgorithmForTextAndOneForTokens) {
  const auto segment = create();
  const auto& algorithms = segment->header().key_algorithms;
  EXPECT_EQ(algorithms[0].id, 1);
  EXPECT_EQ(algorithms[0].kind, abi::KeyKind::kText);
  EXPECT_EQ(algorithms[1].id, 2);
  EXPECT_EQ(algorithms[1].kind, abi::KeyKind::kTokens);
  for (int at = 0; at < 2; ++at) {
    EXPECT_EQ(algorithms[at].block_bytes, 256U);
    EXPECT_EQ(algorithms[at].tail, 1);
  }
  for (std::size_t at = 2; at < abi::kKeyAlgorithmsMax; ++at) EXPECT_EQ(algorithms[at].id, 0);
}

TEST_F(StateSegmentFile, AsksForNoFeatureThatIsNotInUse) {
  StateParameters parameters = small();
  parameters.hot_holders = 0;
  EXPECT_EQ(create(parameters)->header().segment.features, 0U);
}

TEST_F(StateSegmentFile, HandsOutItsPartsWhereTheHeaderSaysTheyAre) {
  const auto segment = create();
  const abi::StateHeader& header = segment->header();
  const auto* base = reinterpret_cast<const std::byte*>(&header);
  const auto offset = [base](const void* part) {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(part) - base);
  };
  EXPECT_EQ(offset(&segment->worker_word(0)), header.workers_offset);
  EXPECT_EQ(offset(&segment->worker_word(1)), header.workers_offset + abi::kLinePairBytes);
  EXPECT_EQ(offset(segment->counters(2)), header.counters_offset + 16ULL * abi::kCountersMax);
  EXPECT_EQ(offset(segment->endpoints()), header.endpoints_offset);
  EXPECT_EQ(offset(segment->reservations()), header.reservations_offset);
  EXPECT_EQ(offset(segment->routing_buffer(0)), header.routing_offset);
  EXPECT_EQ(offset(segment->routing_buffer(1)), header.routing_offset + header.routing_bytes);
  EXPECT_EQ(offset(segment->prefix_words()), header.prefix_offset);
}

TEST_F(StateSegmentFile, SaysWhichDirectoryIsMissing) {
  const auto refused = StateSegment::create(directory_ + "/no/such/state", small());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, -ENOENT);
  EXPECT_NE(refused.error().text.find("state.path " + directory_ + "/no/such/state"),
            std::string::npos);
  EXPECT_NE(refused.error().text.find("directory"), std::string::npos);
}

TEST_F(StateSegmentFile, LeavesNothingBehindWhenItCannotTakeItsPlace) {
  std::filesystem::create_directory(path());
  std::ofstream(path("state/file")) << "x";
  const auto refused = StateSegment::create(path(), small());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text.find("cannot be put in place"), std::string::npos);
  EXPECT_EQ(files(), std::set<std::string>{"state"});
}

TEST_F(StateSegmentFile, SaysWhatIsWantedAndWhatIsThereWhenTheFileSystemIsTooSmall) {
  if (::mount("tmpfs", directory_.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "a tmpfs cannot be mounted here: " << std::strerror(errno);
  }
  const auto refused = StateSegment::create(path(), small());
  EXPECT_FALSE(refused.ok());
  if (!refused.ok()) {
    EXPECT_EQ(refused.error().code, -ENOSPC);
    EXPECT_NE(refused.error().text.find("4 MiB wanted"), std::string::npos) << refused.error().text;
    EXPECT_NE(refused.error().text.find("1 MiB free"), std::string::npos) << refused.error().text;
    EXPECT_NE(refused.error().text.find("state.size_mib"), std::string::npos);
  }
  EXPECT_EQ(files(), std::set<std::string>{});
  ::umount(directory_.c_str());
}

TEST_F(StateSegmentFile, SumsCountersOverAllThreads) {
  const auto segment = create();
  Counters first(segment->counters(0));
  Counters last(segment->counters(abi::kThreadsCountedMax - 1));
  Counters control(segment->counters(kControlRow));
  first.add(abi::Counter::picks);
  first.add(abi::Counter::picks, 10);
  last.add(abi::Counter::picks, 100);
  control.add(abi::Counter::reports, 5);
  EXPECT_EQ(sum_counter(*segment, abi::Counter::picks), 111U);
  EXPECT_EQ(sum_counter(*segment, abi::Counter::reports), 5U);
  EXPECT_EQ(sum_counter(*segment, abi::Counter::client_wakes), 0U);
}

TEST_F(StateSegmentFile, HasAClockThatCountsTicksSinceItWasMade) {
  const auto segment = create();
  TickClock clock(segment->header());
  EXPECT_FALSE(clock.is_virtual());
  const std::uint64_t first = clock.tick();
  EXPECT_GE(first, 2U) << "a tick, and with it a stamp, is never 0";
  EXPECT_GE(clock.tick(), first);
  const std::uint64_t by_hand =
      (base::boot_ns() - segment->header().tick_base_ns) / segment->header().tick_ns;
  EXPECT_GE(by_hand, first);
  EXPECT_LE(first, clock.tick());
  EXPECT_FALSE(clock.set_virtual_tick(1'000'000)) << "real time is not set";
}

TEST_F(StateSegmentFile, HasAClockThatAReplaySetsForwardOnly) {
  StateParameters parameters = small();
  parameters.clock_mode = abi::ClockMode::kVirtual;
  const auto segment = create(parameters);
  TickClock clock(segment->header());
  EXPECT_TRUE(clock.is_virtual());
  EXPECT_GE(clock.tick(), 1U);
  EXPECT_TRUE(clock.set_virtual_tick(500));
  EXPECT_EQ(clock.tick(), 500U);
  EXPECT_EQ(TickClock(segment->header()).tick(), 500U);
  EXPECT_TRUE(clock.set_virtual_tick(500));
  EXPECT_FALSE(clock.set_virtual_tick(499));
  EXPECT_EQ(clock.tick(), 500U);
}

TEST(TickClock, WrapsStampsAt20Bits) {
  EXPECT_EQ(stamp_of(5), 5U);
  EXPECT_EQ(stamp_of((1ULL << 20) + 5), 5U);
  EXPECT_EQ(stamp_of((1ULL << 20) - 1), (1U << 20) - 1);
}

}  // namespace
}  // namespace pickd::state::test
