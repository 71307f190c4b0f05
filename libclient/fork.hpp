// ForkGuard: tells a forked child apart from the process that opened a client.
//
// Rings have one producer and one consumer, so a child must never touch them. One private page is
// marked MADV_WIPEONFORK: the child finds zeros there. That costs a pick one load, where getpid()
// is a system call; and it works for raw clone() too, where pthread_atfork() handlers do not run.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pickd::client {

class ForkGuard {
 public:
  ForkGuard() = default;
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard();

  // 0 or a negative errno.
  int arm();
  bool in_child() const { return *static_cast<const volatile std::uint32_t*>(page_) == 0; }

 private:
  std::uint32_t* page_ = nullptr;
};

// Keeps a mapping of shared memory out of children. 0 or a negative errno.
int keep_from_children(void* address, std::size_t bytes);

}  // namespace pickd::client
