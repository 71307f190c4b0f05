#include "tools/bench/ring_probe.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "abi/fence.hpp"
#include "abi/limits.hpp"
#include "daemon/base/clock.hpp"

namespace pickd::bench {

namespace {

constexpr std::size_t kSlotBytes = 64 * 1024;
constexpr std::size_t kAnswerBytesMax = 4096;

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  ::syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

}  // namespace

// One slot each way is a ring of one: the probe has one record outstanding. Hot words stand alone.
struct RingProbe::Shared {
  alignas(abi::kLinePairBytes) std::atomic<std::uint64_t> submitted;
  alignas(abi::kLinePairBytes) std::atomic<std::uint64_t> completed;
  alignas(
      abi::kLinePairBytes) std::atomic<std::uint32_t> awake;  // 0: the echo sleeps, 2: it shall end
  std::atomic<std::uint32_t> bytes;
  std::atomic<std::uint32_t> answer_bytes;
  alignas(abi::kLinePairBytes) std::byte submission[kSlotBytes];
  alignas(abi::kLinePairBytes) std::byte completion[kAnswerBytesMax];
};

RingProbe::RingProbe() {
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("ring probe: no memory");
  shared_ = new (memory) Shared{};
  const pid_t parent = ::getpid();
  echo_ = ::fork();
  if (echo_ < 0) throw std::runtime_error("ring probe: cannot fork");
  if (echo_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent) echo(shared_);
    ::_exit(0);
  }
}

RingProbe::~RingProbe() {
  shared_->awake.store(2, std::memory_order_release);
  futex(shared_->awake, FUTEX_WAKE, 1);
  ::waitpid(echo_, nullptr, 0);
  ::munmap(shared_, sizeof(Shared));
}

void RingProbe::echo(Shared* shared) {
  std::vector<std::byte> copy(kSlotBytes);
  std::uint64_t seen = 0;
  while (true) {
    const std::uint32_t awake = shared->awake.load(std::memory_order_acquire);
    if (awake == 2) return;
    if (awake == 0) {
      futex(shared->awake, FUTEX_WAIT, 0);
      continue;
    }
    const std::uint64_t submitted = shared->submitted.load(std::memory_order_acquire);
    if (submitted == seen) {
      abi::spin_pause();
      continue;
    }
    seen = submitted;
    // As the daemon does: a private copy, then an answer.
    const std::size_t bytes = shared->bytes.load(std::memory_order_relaxed);
    std::memcpy(copy.data(), shared->submission, bytes);
    std::memcpy(shared->completion, copy.data(),
                shared->answer_bytes.load(std::memory_order_relaxed));
    shared->completed.store(seen, std::memory_order_release);
  }
}

void RingProbe::run(std::size_t bytes, std::size_t answer_bytes, std::size_t count,
                    tools::Samples& samples) {
  bytes = std::clamp(bytes, sizeof(std::uint64_t), kSlotBytes);
  answer_bytes = std::clamp(answer_bytes, sizeof(std::uint64_t), kAnswerBytesMax);
  shared_->answer_bytes.store(static_cast<std::uint32_t>(answer_bytes), std::memory_order_relaxed);
  shared_->bytes.store(static_cast<std::uint32_t>(bytes), std::memory_order_relaxed);
  shared_->awake.store(1, std::memory_order_release);
  futex(shared_->awake, FUTEX_WAKE, 1);
  std::vector<std::byte> record(bytes, std::byte{1});
  std::byte answer[kAnswerBytesMax];
  constexpr std::size_t kWarmUp = 100;
  for (std::size_t at = 0; at < count + kWarmUp; ++at) {
    record[0] = static_cast<std::byte>(at);
    const std::uint64_t from_ns = base::monotonic_ns();
    std::memcpy(shared_->submission, record.data(), bytes);
    const std::uint64_t turn = shared_->submitted.load(std::memory_order_relaxed) + 1;
    shared_->submitted.store(turn, std::memory_order_release);
    while (shared_->completed.load(std::memory_order_acquire) != turn) abi::spin_pause();
    std::memcpy(answer, shared_->completion, answer_bytes);
    const std::uint64_t to_ns = base::monotonic_ns();
    if (at >= kWarmUp) samples.add(static_cast<double>(to_ns - from_ns));
  }
  shared_->awake.store(0, std::memory_order_release);
}

}  // namespace pickd::bench
