// The same for a long time: what a store must not do is grow. Load, words in use and memory of the
// process are looked at in turns and must stay where they were after the first. LONG_TESTS=1
// makes it twenty times as long.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/prefix/table_fixture.hpp"

namespace pickd::prefix::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(PICKD_TSAN)
constexpr bool kMemoryIsOurs = false;  // a sanitizer keeps what was freed
#else
constexpr bool kMemoryIsOurs = true;
#endif

bool long_form() { return std::getenv("LONG_TESTS") != nullptr; }

std::uint64_t resident_bytes() {
  unsigned long long size = 0;
  unsigned long long resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  const int fields = std::fscanf(file, "%llu %llu", &size, &resident);
  std::fclose(file);
  return fields == 2 ? resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

// Extremes of the turns that follow the first.
class Flat {
 public:
  void look(TestTable& t) {
    const TestTable::Census census = t.census();
    const std::uint64_t resident = resident_bytes();
    if (turns_++ == 0) {
      first_occupied_ = census.occupied;
      first_resident_ = resident;
      return;
    }
    occupied_max_ = std::max(occupied_max_, census.occupied);
    live_max_ = std::max(live_max_, census.live);
    resident_max_ = std::max(resident_max_, resident);
  }
  void expect(std::uint64_t live_max) const {
    ASSERT_GT(turns_, 3U);
    EXPECT_LE(live_max_, live_max);
    EXPECT_LE(static_cast<double>(occupied_max_), 1.1 * static_cast<double>(first_occupied_) + 64)
        << "words in use grow";
    if (kMemoryIsOurs) {
      EXPECT_LE(resident_max_, first_resident_ + (1 << 20)) << "the process grows";
    }
    std::printf(
        "  %llu turns: at most %llu live words, %llu in use (first %llu), %+lld KiB\n",
        static_cast<unsigned long long>(turns_), static_cast<unsigned long long>(live_max_),
        static_cast<unsigned long long>(occupied_max_),
        static_cast<unsigned long long>(first_occupied_),
        (static_cast<long long>(resident_max_) - static_cast<long long>(first_resident_)) / 1024);
  }

 private:
  std::uint64_t turns_ = 0;
  std::uint64_t first_occupied_ = 0;
  std::uint64_t first_resident_ = 0;
  std::uint64_t occupied_max_ = 0;
  std::uint64_t live_max_ = 0;
  std::uint64_t resident_max_ = 0;
};

TEST(Soak, AnImmortalRootWithAMillionSuffixesStaysAsLargeAsItsCapacity) {
  constexpr std::uint64_t kCapacity = 20'000;
  TestTable t({.lines = 1 << 13, .endpoint_ids = 4, .ttl_ticks = 36'000});
  t.record(1).capacity_blocks.store(kCapacity);
  const auto root = chain(1, 16);
  const std::uint64_t suffixes = long_form() ? 20'000'000 : 1'000'000;
  Flat flat;
  std::vector<std::uint64_t> prompt;
  for (std::uint64_t i = 1; i <= suffixes; ++i) {
    prompt = root;
    std::uint64_t key = root.back();
    for (int block = 0; block < 4; ++block) prompt.push_back(key = mixed(key ^ mixed(1000 + i)));
    t.stamp(prompt, 1);
    if (i % 50 == 0) {
      t.advance_to(t.now + 1);
      t.sweep.slice(t.now, t.sweep.lines_per_tick());
      ASSERT_EQ(t.match_one(prompt, 1), prompt.size());
    }
    if (i % (suffixes / 20) == 0) {
      ASSERT_EQ(t.match_one(root, 1), root.size()) << "the root is used all the time";
      // Counted from when the dead of one pass of the sweep are on top of the living.
      if (i > suffixes / 10) flat.look(t);
    }
  }
  flat.expect(kCapacity);
}

TEST(Soak, AThousandEndpointsThatComeAndGoLeaveNothingBehind) {
  constexpr std::uint64_t kPromptsPerLife = 1000;
  constexpr std::size_t kBlocks = 8;
  TestTable t({.lines = 1 << 13, .endpoint_ids = 32, .ttl_ticks = 36'000});
  // One that stays, so that the table is never simply empty.
  const auto staying = chain(77, 500);
  const std::uint64_t lives = long_form() ? 20'000 : 1000;
  Flat flat;
  for (std::uint64_t life = 0; life < lives; ++life) {
    const auto id = static_cast<std::uint32_t>(2 + life % 30);
    t.reset(id);  // added
    for (std::uint64_t i = 0; i < kPromptsPerLife; ++i) {
      t.stamp(chain(1'000'000 * (life + 1) + i, kBlocks), id);
      if (i % 100 == 99) {
        t.stamp(staying, 1);
        t.advance_to(t.now + 1);
        t.sweep.slice(t.now, t.sweep.lines_per_tick());
      }
    }
    ASSERT_EQ(
        t.match_one(chain(1'000'000 * (life + 1) + 999, kBlocks), static_cast<std::uint16_t>(id)),
        kBlocks);
    t.reset(id);  // removed
    ASSERT_EQ(t.census().by_endpoint[id], 0U) << "at once";
    ASSERT_EQ(t.match_one(staying, 1), staying.size());
    t.sweep_all();
    t.sweep_all();
    // Every id was used once before the first look: what belongs to an id stays with it.
    if (life >= 30 && life % (lives / 20) == 0) {
      flat.look(t);
      ASSERT_EQ(t.census().live, staying.size());
      ASSERT_LE(t.census().occupied, 4U << 13) << "room is back within one maintenance";
    }
  }
  flat.expect(staying.size());
}

}  // namespace
}  // namespace pickd::prefix::test
