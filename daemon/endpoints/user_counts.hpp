// UserCounts: how many reservations each user (uid) holds, for the limit on them.
//
// A small open-addressed table of words [ uid : 32 ][ count : 32 ]; a word whose count is 0 is free
// for anybody, so nothing is ever cleaned up. A user's count is the sum over the words with its
// uid. Users that find no word are not counted: the table has room for far more than a node has.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace pickd::endpoints {

class UserCounts {
 public:
  void add(std::uint32_t uid) {
    for (const bool own : {true, false}) {
      for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
        Word& word = at(uid, probe);
        std::uint64_t seen = word.load(std::memory_order_relaxed);
        // Relaxed throughout: a word publishes nothing but itself. Partner: sub() and other add()s.
        while (own ? held_by(seen, uid) : count_of(seen) == 0) {
          const std::uint64_t next = own ? seen + 1 : (std::uint64_t{uid} << 32) | 1;
          if (word.compare_exchange_weak(seen, next, std::memory_order_relaxed)) return;
        }
      }
    }
  }

  void sub(std::uint32_t uid) {
    for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
      Word& word = at(uid, probe);
      std::uint64_t seen = word.load(std::memory_order_relaxed);
      while (held_by(seen, uid)) {
        if (word.compare_exchange_weak(seen, seen - 1, std::memory_order_relaxed)) return;
      }
    }
  }

  std::uint32_t count(std::uint32_t uid) const {
    std::uint32_t sum = 0;
    for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
      const std::uint64_t seen = at(uid, probe).load(std::memory_order_relaxed);
      if (held_by(seen, uid)) sum += count_of(seen);
    }
    return sum;
  }

 private:
  using Word = std::atomic<std::uint64_t>;
  static constexpr std::uint32_t kWords = 1024;
  static constexpr std::uint32_t kProbes = 8;

  static constexpr std::uint32_t count_of(std::uint64_t word) {
    return static_cast<std::uint32_t>(word);
  }
  static constexpr bool held_by(std::uint64_t word, std::uint32_t uid) {
    return count_of(word) != 0 && static_cast<std::uint32_t>(word >> 32) == uid;
  }
  static constexpr std::uint32_t place(std::uint32_t uid, std::uint32_t probe) {
    return (((uid * 0x9E3779B1U) >> 22) + probe) % kWords;
  }
  Word& at(std::uint32_t uid, std::uint32_t probe) { return words_[place(uid, probe)]; }
  const Word& at(std::uint32_t uid, std::uint32_t probe) const { return words_[place(uid, probe)]; }

  std::array<Word, kWords> words_{};
};

}  // namespace pickd::endpoints
