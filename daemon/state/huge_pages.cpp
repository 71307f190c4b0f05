#include "daemon/state/huge_pages.hpp"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "abi/limits.hpp"

namespace pickd::state {

std::uint64_t page_bytes_at(const std::string& directory) {
  struct statfs system {};
  if (::statfs(directory.c_str(), &system) != 0 || system.f_type != HUGETLBFS_MAGIC) {
    return abi::kPageBytes;
  }
  return static_cast<std::uint64_t>(system.f_bsize);
}

void advise_huge_pages(void* address, std::uint64_t bytes) {
  static_cast<void>(::madvise(address, bytes, MADV_HUGEPAGE));
}

}  // namespace pickd::state
