// What the store benchmark asks of every structure that it measures: pickd's own and the
// references.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace pickd::bench {

// One prompt in both forms: chained block keys, and (for character trees) the text they stand for.
struct StorePrompt {
  std::span<const std::uint64_t> keys;
  std::string_view text;  // empty unless wants_text()
};

struct StoreEviction {
  std::uint64_t entries = 0;  // (block, endpoint) pairs given back
};

class StoreSubject {
 public:
  virtual ~StoreSubject() = default;

  virtual bool wants_text() const { return false; }

  // Leading blocks that each endpoint holds; one result for each endpoint. `thread`: who asks,
  // 0-based.
  virtual void match(const StorePrompt& prompt, std::uint64_t tick, std::span<std::uint32_t> blocks,
                     std::uint32_t thread) = 0;
  virtual void insert(const StorePrompt& prompt, std::uint32_t endpoint, std::uint64_t tick) = 0;

  // Once a tick while a TTL is kept: forgets what is older and gives its memory back, at its own
  // pace.
  virtual StoreEviction maintain(std::uint64_t tick, std::uint64_t ttl_ticks) = 0;
  // Forgets everything older than `tick` at once and gives all of it back.
  virtual StoreEviction evict_before(std::uint64_t tick) = 0;

  virtual std::uint64_t entries() = 0;  // (block, endpoint) pairs held
  virtual std::uint64_t bytes() = 0;    // memory in use for them
  virtual double load() { return 0; }
  virtual std::uint64_t replaced() { return 0; }
  virtual void sweep(std::uint64_t) {}  // one pass of background work at full speed, if it has any
};

std::unique_ptr<StoreSubject> make_pickd_store(std::uint32_t endpoints, std::uint64_t bytes,
                                               std::uint32_t threads);
std::unique_ptr<StoreSubject> make_locked_lru(std::uint32_t endpoints);
std::unique_ptr<StoreSubject> make_char_radix(std::uint32_t endpoints, std::uint32_t block_bytes);
// `with_ttl`: entries will be evicted by age, so it keeps timers.
std::unique_ptr<StoreSubject> make_hash_radix(std::uint32_t endpoints, bool with_ttl);

// Bytes that malloc has handed out: the memory of a reference is the difference around its filling.
std::uint64_t heap_bytes();

}  // namespace pickd::bench
