// The memory limit, read from trees of cgroups made here, and what a state file makes of it.
#include "daemon/state/memory_limit.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "daemon/state/state_segment.hpp"
#include "tests/state/temporary_directory.hpp"

namespace pickd::state::test {
namespace {

constexpr std::uint64_t kMib = 1ULL << 20;

class MemoryLimit : public InADirectory {
 protected:
  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path where = directory_ + "/" + file;
    std::filesystem::create_directories(where.parent_path());
    std::ofstream(where) << text << "\n";
  }
  std::optional<std::uint64_t> limit(const std::string& self) const {
    return memory_limit_bytes(directory_, self);
  }
};

TEST_F(MemoryLimit, IsTheLowestOnTheWayToTheRoot) {
  write("memory.max", "max");
  write("pods/memory.max", std::to_string(64 * kMib));
  write("pods/one/memory.max", std::to_string(128 * kMib));
  EXPECT_EQ(limit("0::/pods/one\n"), 64 * kMib);
  write("pods/one/memory.max", std::to_string(32 * kMib));
  EXPECT_EQ(limit("0::/pods/one\n"), 32 * kMib);
  EXPECT_EQ(limit("0::/pods\n"), 64 * kMib);
}

TEST_F(MemoryLimit, IsNoneWhereNobodySetOne) {
  write("memory.max", "max");
  write("one/memory.max", "max");
  EXPECT_EQ(limit("0::/one\n"), std::nullopt);
  EXPECT_EQ(limit("0::/is/not/there\n"), std::nullopt);
  EXPECT_EQ(limit(""), std::nullopt);
  EXPECT_EQ(limit("nonsense\n:\n::\n0\n"), std::nullopt);
}

TEST_F(MemoryLimit, OfARootThatIsAContainersOwnIsFound) {
  // Within a namespace of cgroups the path is "/", and the limit stands at the mount itself.
  write("memory.max", std::to_string(16 * kMib));
  EXPECT_EQ(limit("0::/\n"), 16 * kMib);
}

TEST_F(MemoryLimit, OfVersion1IsReadFromItsOwnHierarchy) {
  write("memory/docker/one/memory.limit_in_bytes", std::to_string(48 * kMib));
  write("memory/memory.limit_in_bytes", "9223372036854771712");
  const std::string self = "5:cpu,cpuacct:/elsewhere\n4:memory:/docker/one\n0::/\n";
  EXPECT_EQ(limit(self), 48 * kMib);
  EXPECT_EQ(limit("4:memory:/\n"), std::nullopt) << "a huge number means no limit";
}

TEST_F(MemoryLimit, OfAMixedSystemComesFromTheHierarchyThatHasOne) {
  write("memory/one/memory.limit_in_bytes", std::to_string(40 * kMib));
  write("unified/memory.max", "max");
  EXPECT_EQ(limit("4:memory:/one\n0::/unified\n"), 40 * kMib);
}

TEST_F(MemoryLimit, CountsAsUsedWhatCannotBeGivenBack) {
  write("one/memory.stat", "anon 1000\nfile 900000\nkernel 7\nshmem 234\nfile_mapped 5");
  EXPECT_EQ(memory_used_bytes(directory_, "0::/one\n"), 1234U);
  EXPECT_EQ(memory_used_bytes(directory_, "0::/two\n"), std::nullopt);
  EXPECT_EQ(memory_used_bytes(directory_, "4:memory:/one\n"), std::nullopt);
  write("memory/one/memory.stat", "cache 9\nrss 1\nshmem 2\ntotal_rss 4000\ntotal_shmem 500\n");
  EXPECT_EQ(memory_used_bytes(directory_, "4:memory:/one\n0::/\n"), 4500U);
}

TEST_F(MemoryLimit, LowersTheDefaultSizeToAnEighthOfIt) {
  EXPECT_EQ(default_state_bytes(256 * kMib, std::nullopt), 256 * kMib);
  EXPECT_EQ(default_state_bytes(256 * kMib, 4096 * kMib), 256 * kMib);
  EXPECT_EQ(default_state_bytes(256 * kMib, 512 * kMib), 64 * kMib);
}

// What this process's cgroups say is covered, for a child alone, by a tree made here: no cgroup is
// made or changed.
bool cover_cgroups(std::uint64_t limit_bytes) {
  const std::string root = "/sys/fs/cgroup";
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", root.c_str(), "tmpfs", 0, "size=1m") != 0) {
    return false;
  }
  std::filesystem::create_directories(root + "/memory");
  std::ofstream(root + "/memory.max") << limit_bytes;
  std::ofstream(root + "/memory/memory.limit_in_bytes") << limit_bytes;
  return true;
}

TEST_F(MemoryLimit, RefusesAStateFileOfMoreThanHalf) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!cover_cgroups(64 * kMib)) ::_exit(77);
    StateParameters parameters;
    parameters.bytes = 33 * kMib;
    parameters.endpoints_max = 16;
    parameters.reservations_max = 1024;
    const auto refused = StateSegment::create(path(), parameters);
    if (refused.ok() || refused.error().code != -ENOMEM) ::_exit(1);
    for (const char* part : {"state.size_mib", "33 MiB", "memory cgroup", "64 MiB"}) {
      if (refused.error().text.find(part) == std::string::npos) ::_exit(2);
    }
    if (!files().empty()) ::_exit(3);
    parameters.bytes = 31 * kMib;
    ::_exit(StateSegment::create(path(), parameters).ok() ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mount namespace can be made here";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: made, 2: text, 3: a file is left, 4: half of it refused";
}

}  // namespace
}  // namespace pickd::state::test
