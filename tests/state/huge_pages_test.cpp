// A state file on a hugetlbfs: a whole number of its pages, and it works like any other.
#include <sys/mount.h>
#include <sys/stat.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "daemon/state/huge_pages.hpp"
#include "daemon/state/state_segment.hpp"

namespace pickd::state {
namespace {

TEST(HugePages, AreOrdinaryPagesOnAnOrdinaryFileSystem) {
  EXPECT_EQ(page_bytes_at("/tmp"), abi::kPageBytes);
  EXPECT_EQ(page_bytes_at("/no/such/directory"), abi::kPageBytes);
}

TEST(HugePages, RoundTheFileDownToWholePages) {
  StateParameters parameters;
  parameters.bytes = 65ULL << 20;
  parameters.page_bytes = 2ULL << 20;
  const auto layout = lay_out(parameters);
  ASSERT_TRUE(layout.ok()) << layout.error().text;
  EXPECT_EQ(layout.value().total_bytes, 64ULL << 20);
}

// Reserves huge pages and mounts a file system of them for one test.
class HugeFileSystem {
 public:
  HugeFileSystem() {
    std::ifstream before(kCount);
    before >> count_before_;
    std::ofstream(kCount) << count_before_ + kPages;
    int count = 0;
    std::ifstream now(kCount);
    now >> count;
    std::filesystem::create_directories(path_);
    mounted_ = count >= kPages && ::mount("none", path_.c_str(), "hugetlbfs", 0, nullptr) == 0;
  }
  ~HugeFileSystem() {
    if (mounted_) ::umount(path_.c_str());
    std::filesystem::remove_all(path_);
    std::ofstream(kCount) << count_before_;
  }
  bool mounted() const { return mounted_; }
  const std::string& path() const { return path_; }

 private:
  static constexpr const char* kCount = "/proc/sys/vm/nr_hugepages";
  static constexpr int kPages = 16;
  std::string path_ = "/tmp/pickd-huge-" + std::to_string(::getpid());
  int count_before_ = 0;
  bool mounted_ = false;
};

TEST(HugePages, CarryAStateFileThatIsGoneOnWith) {
  const HugeFileSystem system;
  if (!system.mounted()) GTEST_SKIP() << "no huge pages to be had: needs root and 32 MiB of them";
  StateParameters parameters;
  parameters.bytes = 31ULL << 20;  // rounds down to 15 pages of 2 MiB
  parameters.endpoints_max = 15;
  parameters.reservations_max = 64;
  std::string origin;
  std::uint64_t instance = 0;
  {
    auto made = StateSegment::open_or_create(system.path() + "/state", parameters, &origin);
    ASSERT_TRUE(made.ok()) << made.error().text;
    EXPECT_EQ((*made)->page_bytes(), 2ULL << 20);
    EXPECT_EQ((*made)->bytes(), 30ULL << 20);
    (*made)->prefix_words()[0].store(1);
    instance = (*made)->header().instance_id;
  }
  auto again = StateSegment::open_or_create(system.path() + "/state", parameters, &origin);
  ASSERT_TRUE(again.ok()) << again.error().text;
  EXPECT_EQ(origin, "warm");
  EXPECT_EQ((*again)->header().instance_id, instance);
  EXPECT_EQ((*again)->prefix_words()[0].load(), 1U);
}

}  // namespace
}  // namespace pickd::state
