// kill -9 at every step of making, replacing and taking over a state file. Whatever is left, the
// next daemon starts: warm with every block, or empty with a reason; and no client is misled.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>

#include <filesystem>

#include "tests/crash/killed_process.hpp"
#include "tests/crash/store.hpp"
#include "tests/state/temporary_directory.hpp"

namespace pickd::crash {
namespace {

constexpr std::uint64_t kLines = 256;

struct Case {
  const char* name;
  std::uint64_t mib_before;  // 0 = there is no file
  std::uint64_t mib_wanted;
};

class StateFileCrash : public state::test::InADirectory, public testing::WithParamInterface<Case> {
 protected:
  static std::vector<std::uint64_t> blocks() {
    std::vector<std::uint64_t> keys;
    for (std::uint64_t i = 0; i < 20; ++i) keys.push_back(base::Random(i).next());
    return keys;
  }

  prefix::TableParts parts(const state::StateSegment& segment) {
    return {segment.prefix_words(),
            kLines,
            segment.endpoints(),
            kEndpoints + 1,
            &segment.header().global_horizon,
            segment.header().hot_holders};
  }

  // The file of the daemon before, with blocks in it.
  std::unique_ptr<state::StateSegment> make_before() {
    std::filesystem::remove(path());
    if (GetParam().mib_before == 0) return nullptr;
    auto made = state::StateSegment::create(path(), parameters(GetParam().mib_before));
    EXPECT_TRUE(made.ok()) << made.error().text;
    made.value()->endpoints()[1].life.store(abi::LifeWord::make(1, 2, 2).bits);
    prefix::PrefixTable table(parts(*made.value()));
    EXPECT_EQ(table.stamp(blocks(), 1, 5, abi::Tier::kAssumed, 5).inserted, 20U);
    return std::move(made.value());
  }

  std::uint32_t found(const state::StateSegment& segment) {
    const prefix::PrefixTable table(parts(segment));
    auto scratch = std::make_unique<prefix::MatchScratch>();
    const std::uint16_t ids[] = {1};
    const std::uint64_t lives[] = {segment.endpoints()[1].life.load()};
    std::uint32_t length[1];
    table.match_exact(blocks(), 6, ids, lives, length, *scratch);
    return length[0];
  }

  // What a client does with the path: a header that says it is complete must be complete.
  void check_as_a_client(const std::string& where) {
    const base::Fd fd(::open(path().c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) {
      ASSERT_EQ(GetParam().mib_before, 0U) << "the file that was there is gone; " << where;
      return;
    }
    void* memory = ::mmap(nullptr, sizeof(abi::StateHeader), PROT_READ, MAP_SHARED, fd.get(), 0);
    ASSERT_NE(memory, MAP_FAILED);
    const auto& header = *static_cast<const abi::StateHeader*>(memory);
    EXPECT_EQ(header.segment.version.load(),
              abi::segment_version(abi::kLayoutMajor, abi::kLayoutMinor))
        << where;
    EXPECT_EQ(header.segment.total_bytes, std::filesystem::file_size(path())) << where;
    EXPECT_NE(header.prefix_offset, 0U) << where;
    EXPECT_NE(header.segment.daemon_epoch, 0U) << where;
    ::munmap(memory, sizeof(abi::StateHeader));
  }
};

TEST_P(StateFileCrash, LeavesAFileThatIsGoneOnWithOrRefusedWithAReason) {
  const state::StateParameters wanted = parameters(GetParam().mib_wanted);
  const bool same_size = GetParam().mib_before == GetParam().mib_wanted;
  KilledProcess daemon;
  std::uint64_t warm = 0;
  std::uint64_t empty = 0;
  for (std::uint64_t kill_at = 1;; ++kill_at) {
    const auto before = make_before();
    const bool killed = daemon.run(kill_at, [&](Legacy&) {
      std::string how;
      EXPECT_TRUE(state::StateSegment::open_or_create(path(), wanted, &how).ok());
    });
    if (!killed) break;
    check_as_a_client(daemon.where());
    if (before != nullptr) {
      // Who has the old file mapped keeps it whole, and is told only when another is ready.
      EXPECT_EQ(found(*before), 20U) << daemon.where();
      if (before->header().superseded.load() != 0 &&
          std::filesystem::file_size(path()) == before->bytes()) {
        EXPECT_TRUE(files().contains("state.new")) << daemon.where();
      }
    }

    std::string origin;
    auto next = state::StateSegment::open_or_create(path(), wanted, &origin);
    ASSERT_TRUE(next.ok()) << next.error().text << "; " << daemon.where();
    EXPECT_EQ(files(), std::set<std::string>{"state"}) << daemon.where();
    if (origin == "warm") {
      ++warm;
      EXPECT_EQ(found(*next.value()), same_size ? 20U : 0U) << daemon.where();
    } else {
      ++empty;
      ASSERT_EQ(origin.rfind("empty: ", 0), 0U) << origin;
      EXPECT_GT(origin.size(), std::string("empty: ").size());
      EXPECT_FALSE(same_size) << "a restart forgot everything: " << origin << "; "
                              << daemon.where();
      EXPECT_EQ(found(*next.value()), 0U) << daemon.where();
    }
  }
  std::printf("  killed at %llu steps: %llu warm, %llu empty\n",
              static_cast<unsigned long long>(daemon.legacy().steps),
              static_cast<unsigned long long>(warm), static_cast<unsigned long long>(empty));
  EXPECT_GE(daemon.legacy().steps, same_size ? 3U : 9U);
  // A file that was put in place whole is as good as one whose maker lived on.
  EXPECT_GT(warm, 0U);
  EXPECT_EQ(empty > 0, !same_size);
}

INSTANTIATE_TEST_SUITE_P(Files, StateFileCrash,
                         testing::Values(Case{"FirstStart", 0, 2}, Case{"Restart", 2, 2},
                                         Case{"LargerFile", 2, 3}, Case{"SmallerFile", 3, 2}),
                         [](const auto& which) { return which.param.name; });

// Killed between marking the old file and putting the new one in its place: the old one, warm and
// whole, is given up although its daemon wanted the same. Both files are of one size here.
using StateFileReplaced = state::test::InADirectory;

TEST_F(StateFileReplaced, GivesUpAFileThatWasMarkedAsReplaced) {
  const auto create = [this] { return state::StateSegment::create(path(), parameters()); };
  ASSERT_TRUE(create().ok());
  KilledProcess daemon;
  bool marked = false;
  for (std::uint64_t kill_at = 1;; ++kill_at) {
    if (!daemon.run(kill_at, [&](Legacy&) { EXPECT_TRUE(create().ok()); })) break;
    std::string origin;
    ASSERT_TRUE(state::StateSegment::open_or_create(path(), parameters(), &origin).ok());
    const bool between =
        std::string(daemon.legacy().last_step) == "create: the one before is marked";
    EXPECT_EQ(origin, between ? "empty: it was replaced" : "warm") << daemon.where();
    marked |= between;
  }
  EXPECT_TRUE(marked);
}

}  // namespace
}  // namespace pickd::crash
