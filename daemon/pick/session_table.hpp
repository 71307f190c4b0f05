// Sessions: which endpoint served a session last. A fixed table of single words, shared by all
// workers; when a line is full the oldest session of it is forgotten.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

namespace pickd::pick {

class SessionTable {
 public:
  // `secret` seeds the hash of session ids, so that nobody can aim at another's line.
  explicit SessionTable(std::uint64_t secret, std::uint32_t lines = 8192);

  // The endpoint id that served the session within `ttl_ticks`, in a generation whose low byte is
  // `generation_of(id)`'s; 0: nobody.
  template <typename GenerationOf>
  std::uint32_t find(std::string_view session, std::uint64_t tick, std::uint64_t ttl_ticks,
                     GenerationOf generation_of) const {
    const Found found = look(session, tick, ttl_ticks);
    if (found.endpoint == 0) return 0;
    return (generation_of(found.endpoint) & 0xFF) == found.generation ? found.endpoint : 0;
  }

  void remember(std::string_view session, std::uint32_t endpoint, std::uint32_t generation,
                std::uint64_t tick);

 private:
  struct Found {
    std::uint32_t endpoint = 0;
    std::uint32_t generation = 0;
  };
  static constexpr std::uint32_t kWordsPerLine = 8;

  Found look(std::string_view session, std::uint64_t tick, std::uint64_t ttl_ticks) const;
  std::uint64_t hash(std::string_view session) const;

  std::uint64_t secret_;
  std::uint32_t lines_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
};

}  // namespace pickd::pick
