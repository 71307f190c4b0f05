// Which state files are gone on with. Each doubt by itself, with its reason; and that none of them
// costs the daemon its life.
#include "daemon/state/reuse.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "daemon/base/clock.hpp"
#include "daemon/base/random.hpp"
#include "daemon/state/state_segment.hpp"
#include "tests/state/temporary_directory.hpp"

namespace pickd::state::test {
namespace {

StateParameters small() {
  StateParameters parameters;
  parameters.bytes = 4ULL << 20;
  parameters.endpoints_max = 16;
  parameters.reservations_max = 1024;
  return parameters;
}

class Reuse : public InADirectory {
 protected:
  std::unique_ptr<StateSegment> make(const StateParameters& parameters = small()) {
    auto made = StateSegment::create(path(), parameters);
    EXPECT_TRUE(made.ok()) << made.error().text;
    return std::move(made.value());
  }
  std::unique_ptr<StateSegment> open(std::string* origin,
                                     const StateParameters& parameters = small()) {
    auto opened = StateSegment::open_or_create(path(), parameters, origin);
    EXPECT_TRUE(opened.ok()) << opened.error().text;
    return opened ? std::move(opened.value()) : nullptr;
  }
  std::string origin(const StateParameters& parameters = small()) {
    std::string how;
    open(&how, parameters);
    return how;
  }
};

TEST_F(Reuse, GoesOnWithEveryWordAndTheSameSecret) {
  std::uint8_t secret[abi::kHashSecretBytes];
  std::uint64_t epoch = 0;
  {
    const auto first = make();
    first->prefix_words()[12345].store(77);
    first->endpoints()[3].life.store(88);
    std::memcpy(secret, first->header().hash_secret, sizeof secret);
    epoch = first->header().segment.daemon_epoch;
  }
  std::string how;
  const auto second = open(&how);
  EXPECT_EQ(how, "warm");
  EXPECT_TRUE(second->warm());
  EXPECT_EQ(second->prefix_words()[12345].load(), 77U);
  EXPECT_EQ(second->endpoints()[3].life.load(), 88U);
  EXPECT_EQ(0, std::memcmp(secret, second->header().hash_secret, sizeof secret));
  EXPECT_NE(second->header().segment.daemon_epoch, epoch) << "clients see that another one writes";
}

TEST_F(Reuse, TakesWhatTheConfigurationMayChangeFromTheConfiguration) {
  make();
  StateParameters wanted = small();
  wanted.ttl_ticks = 777;
  wanted.blocks_min = 4;
  wanted.keys_max = 64;
  std::string how;
  const auto segment = open(&how, wanted);
  EXPECT_EQ(how, "warm");
  EXPECT_EQ(segment->header().ttl_ticks, 777U);
  EXPECT_EQ(segment->header().blocks_min, 4U);
  EXPECT_EQ(segment->header().keys_max, 64U);
}

struct Want {
  const char* name;
  const char* reason;
  void (*change)(StateParameters& parameters);
};
class ReuseWithAnotherConfiguration : public Reuse, public testing::WithParamInterface<Want> {};

TEST_P(ReuseWithAnotherConfiguration, BeginsEmptyAndSaysWhatDiffers) {
  make();
  StateParameters wanted = small();
  GetParam().change(wanted);
  const std::string how = origin(wanted);
  EXPECT_EQ(how.rfind("empty: ", 0), 0U) << how;
  EXPECT_NE(how.find(GetParam().reason), std::string::npos) << how;
  if (wanted.clock_mode == abi::ClockMode::kBoot) {
    EXPECT_EQ(origin(wanted), "warm") << "from then on it fits";
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ReuseWithAnotherConfiguration,
    testing::Values(Want{"Size", "5 MiB are wanted", [](auto& p) { p.bytes = 5ULL << 20; }},
                    Want{"Block", "block size", [](auto& p) { p.block_tokens = 32; }},
                    Want{"HotOff", "features", [](auto& p) { p.hot_holders = 0; }},
                    Want{"Hot", "threshold of hot blocks", [](auto& p) { p.hot_holders = 12; }},
                    Want{"Endpoints", "number of endpoints", [](auto& p) { p.endpoints_max = 8; }},
                    Want{"Reservations", "number of reservations",
                         [](auto& p) { p.reservations_max = 2048; }},
                    Want{"Clock", "clock is virtual",
                         [](auto& p) { p.clock_mode = abi::ClockMode::kVirtual; }}),
    [](const auto& test) { return test.param.name; });

struct Damage {
  const char* name;
  const char* reason;
  void (*make)(abi::StateHeader& header);
};
class ReuseOfADamagedHeader : public Reuse, public testing::WithParamInterface<Damage> {};

TEST_P(ReuseOfADamagedHeader, IsRefusedWithItsReason) {
  GetParam().make(make()->header());
  const std::string how = origin();
  EXPECT_NE(how.find(GetParam().reason), std::string::npos) << how;
  EXPECT_EQ(origin(), "warm");
}

constexpr std::uint64_t kHourNs = 3600ULL * 1'000'000'000;
INSTANTIATE_TEST_SUITE_P(
    All, ReuseOfADamagedHeader,
    testing::Values(
        Damage{"Secret", "no hash secret",
               [](auto& h) { std::memset(h.hash_secret, 0, sizeof h.hash_secret); }},
        Damage{"SecretsBit", "fixed when it was made is damaged",
               [](auto& h) { h.hash_secret[17] ^= 4; }},
        Damage{"TickBasesBit", "fixed when it was made is damaged",
               [](auto& h) { h.tick_base_ns -= std::uint64_t{1} << 20; }},
        Damage{"HalfWritten", "another version", [](auto& h) { h.segment.version.store(0); }},
        Damage{"Offset", "parts lie elsewhere", [](auto& h) { h.prefix_offset += 4096; }},
        Damage{"Lines", "parts lie elsewhere", [](auto& h) { h.prefix_lines *= 2; }},
        Damage{"TickBase", "clock is another",
               [](auto& h) { h.tick_base_ns = base::boot_ns() + kHourNs; }},
        Damage{"Heartbeat", "away too long", [](auto& h) { h.heartbeat_ns.store(1); }},
        Damage{"FutureHeartbeat", "away too long",
               [](auto& h) { h.heartbeat_ns.store(base::boot_ns() + kHourNs); }},
        Damage{"Superseded", "it was replaced", [](auto& h) { h.superseded.store(1); }},
        Damage{"HighWater", "endpoint table is damaged",
               [](auto& h) { h.endpoint_high_water.store(1'000'000); }},
        Damage{"NoHighWater", "endpoint table is damaged",
               [](auto& h) { h.endpoint_high_water.store(0); }}),
    [](const auto& test) { return test.param.name; });

TEST_F(Reuse, GoesOnOrRefusesWithAReasonWhateverWordsOfTheHeaderAreFlipped) {
  std::uint64_t warm = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto made = make();
    auto* header = reinterpret_cast<std::uint8_t*>(&made->header());
    base::Random random(seed);
    for (std::uint32_t flips = 1 + random.below(3); flips != 0; --flips) {
      header[random.below(sizeof(abi::StateHeader))] ^=
          static_cast<std::uint8_t>(1U << random.below(8));
    }
    std::string how;
    const auto segment = open(&how);
    ASSERT_NE(segment, nullptr);
    // Accepted: what decides where memory is touched is as it would be made now.
    ASSERT_EQ(segment->header().prefix_lines, segment->layout().prefix_lines);
    ASSERT_EQ(segment->header().endpoint_ids, segment->layout().endpoint_ids);
    ASSERT_LE(segment->header().endpoint_high_water.load(), segment->layout().endpoint_ids);
    ASSERT_TRUE(how == "warm" || how.size() > std::strlen("empty: ")) << how;
    warm += how == "warm";
  }
  EXPECT_GT(warm, 0U) << "flips of what may change must not cost the store";
  EXPECT_LT(warm, 300U);
}

TEST_F(Reuse, RefusesAFileOfAnotherOwner) {
  make();
  if (::chown(path().c_str(), 12345, 12345) != 0) {
    GTEST_SKIP() << "a file cannot be given away here: " << std::strerror(errno);
  }
  EXPECT_EQ(origin(), "empty: the file belongs to uid 12345");
  struct stat file {};
  ASSERT_EQ(::stat(path().c_str(), &file), 0);
  EXPECT_EQ(file.st_uid, ::geteuid());
}

TEST_F(Reuse, RefusesAFileThatOthersMayUse) {
  for (const mode_t mode : {0640, 0604, 0666, 0400, 0700}) {
    make();
    ASSERT_EQ(::chmod(path().c_str(), mode), 0);
    const std::string how = origin();
    // Without privileges a file that is not ours to write cannot even be opened.
    EXPECT_EQ(how.rfind("empty: ", 0), 0U) << how << ", mode " << mode;
    struct stat file {};
    ASSERT_EQ(::stat(path().c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 07777, 0600U);
  }
}

TEST_F(Reuse, RefusesWhatIsNoRegularFileWithoutWaitingForIt) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(origin(), "empty: what is there is no regular file");
}

TEST_F(Reuse, RefusesFilesOfOtherSizesBeforeTheyAreMapped) {
  for (const off_t size : {off_t{0}, off_t{1}, off_t{4096}, off_t{(4 << 20) - 1}, off_t{8 << 20}}) {
    make();
    ASSERT_EQ(::truncate(path().c_str(), size), 0);
    EXPECT_NE(origin().find("4 MiB are wanted"), std::string::npos) << size;
  }
}

class OnATmpfs : public Reuse {
 protected:
  bool mount(const std::string& size) {
    mounted_ = ::mount("tmpfs", directory_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
    return mounted_;
  }
  ~OnATmpfs() override {
    if (mounted_) ::umount(directory_.c_str());
  }
  bool mounted_ = false;
};

TEST_F(OnATmpfs, RefusesAFileWithHolesThatCannotBeFilled) {
  if (!mount("3m")) GTEST_SKIP() << "a tmpfs cannot be mounted here: " << std::strerror(errno);
  const int fd = ::open(path().c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::ftruncate(fd, 4 << 20), 0);
  ::close(fd);
  std::string why;
  EXPECT_FALSE(open_for_reuse(path(), 4 << 20, &why).valid());
  EXPECT_EQ(why, "the file has holes and its file system is full");
  std::string how;
  const auto refused = StateSegment::open_or_create(path(), small(), &how);
  ASSERT_FALSE(refused.ok()) << "a file that is mapped with holes ends in SIGBUS";
  EXPECT_EQ(refused.error().code, -ENOSPC);
}

TEST_F(OnATmpfs, LeavesTheFileThatIsThereWhenANewOneHasNoRoom) {
  if (!mount("7m")) GTEST_SKIP() << "a tmpfs cannot be mounted here: " << std::strerror(errno);
  const auto first = make();
  ASSERT_NE(first, nullptr);
  first->prefix_words()[5].store(55);
  StateParameters wanted = small();
  wanted.block_tokens = 32;
  std::string how;
  const auto refused = StateSegment::open_or_create(path(), wanted, &how);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, -ENOSPC);
  EXPECT_NE(refused.error().text.find("4 MiB wanted"), std::string::npos) << refused.error().text;
  EXPECT_EQ(files(), std::set<std::string>{"state"});
  EXPECT_EQ(first->header().superseded.load(), 0U) << "clients must not look for another one";
  std::string again;
  const auto warm = open(&again);
  EXPECT_EQ(again, "warm");
  EXPECT_EQ(warm->prefix_words()[5].load(), 55U);
}

TEST_F(OnATmpfs, GoesOnWithAFileThatFillsItsFileSystem) {
  if (!mount("4m")) GTEST_SKIP() << "a tmpfs cannot be mounted here: " << std::strerror(errno);
  ASSERT_NE(make(), nullptr);
  EXPECT_EQ(origin(), "warm") << "a restart needs no room for a second file";
}

}  // namespace
}  // namespace pickd::state::test
