// ForkGuard: see fork.hpp.
#include "libclient/fork.hpp"

#include <errno.h>
#include <sys/mman.h>

#include "abi/limits.hpp"

namespace pickd::client {

ForkGuard::~ForkGuard() {
  if (page_ != nullptr) ::munmap(page_, abi::kPageBytes);
}

int ForkGuard::arm() {
  void* page =
      ::mmap(nullptr, abi::kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return -errno;
  if (::madvise(page, abi::kPageBytes, MADV_WIPEONFORK) != 0) {
    const int code = -errno;
    ::munmap(page, abi::kPageBytes);
    return code;
  }
  page_ = static_cast<std::uint32_t*>(page);
  *page_ = 1;
  return 0;
}

int keep_from_children(void* address, std::size_t bytes) {
  return ::madvise(address, bytes, MADV_DONTFORK) == 0 ? 0 : -errno;
}

}  // namespace pickd::client
