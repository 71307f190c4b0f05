// What a writer of the crash tests does, as data, and what may and must be held after any part of
// it. Knows operations and full ticks; nothing of words, lines or files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "daemon/base/random.hpp"

namespace pickd::crash {

inline constexpr std::uint32_t kEndpoints = 14;
inline constexpr std::uint32_t kEventsFrom = 12;  // these hold what events say, the others picks
inline constexpr std::uint64_t kFirstTick = 1000;
inline constexpr std::uint64_t kTtlTicks = 5000;
inline constexpr std::uint32_t kCapped = 1;  // this one has a capacity
inline constexpr std::uint64_t kCapacity = 24;

inline bool confirmed(std::uint32_t endpoint) { return endpoint >= kEventsFrom; }

struct Operation {
  enum class Kind { kStamp, kRemove, kReset, kTime, kSweep } kind;
  std::uint32_t endpoint = 0;
  std::size_t prompt = 0;
  std::uint64_t ticks = 0;  // kTime: that pass
};

struct Script {
  std::vector<std::vector<std::uint64_t>> prompts;
  std::vector<Operation> operations;

  explicit Script(std::uint64_t seed) {
    base::Random random(seed);
    const auto mixed = [](std::uint64_t value) { return base::Random(value).next(); };
    for (std::uint64_t i = 0; i < 14; ++i) {
      std::vector<std::uint64_t> keys;
      std::uint64_t key = mixed((seed << 32) + 1000 + random.below(2));
      const std::uint32_t length = 2 + random.below(7);
      for (std::uint32_t at = 0; at < length; ++at) {
        keys.push_back(key = mixed(key ^ mixed(random.below(8) == 0 ? 1 : 0)));
      }
      // A last block of its own: taking it out leaves no hole in another prompt.
      keys.push_back(mixed(key ^ mixed(100 + i)));
      prompts.push_back(std::move(keys));
    }
    using Kind = Operation::Kind;
    const auto any_prompt = [&] {
      return random.below(static_cast<std::uint32_t>(prompts.size()));
    };
    const auto any_endpoint = [&] { return 1 + random.below(kEndpoints); };
    // Every endpoint once, so that the shared blocks are hot.
    for (std::uint32_t id = 1; id <= kEndpoints; ++id) {
      operations.push_back({Kind::kStamp, id, any_prompt(), 0});
      // The newest tick is never cut, so no tick may be more than the table holds.
      if (id % 4 == 0) operations.push_back({Kind::kTime, 0, 0, 1});
    }
    for (int i = 0; i < 50; ++i) {
      const std::uint32_t dice = random.below(100);
      if (dice < 55) {
        operations.push_back(
            {Kind::kStamp, random.below(3) == 0 ? kCapped : any_endpoint(), any_prompt(), 0});
      } else if (dice < 62) {
        Operation removal = operations[random.below(static_cast<std::uint32_t>(operations.size()))];
        if (removal.kind != Kind::kStamp) continue;
        removal.kind = Kind::kRemove;
        operations.push_back(removal);
      } else if (dice < 68) {
        operations.push_back({Kind::kReset, any_endpoint(), 0, 0});
      } else if (dice < 88) {
        operations.push_back({Kind::kTime, 0, 0, 1 + random.below(3)});
      } else {
        operations.push_back({Kind::kSweep, 0, 0, 0});
      }
    }
    // Time enough that picks' blocks die and events' blocks are brought forward over half the wrap.
    for (int i = 0; i < 2; ++i) {
      operations.push_back({Kind::kTime, 0, 0, 300'000});
      operations.push_back({Kind::kSweep, 0, 0, 0});
    }
    for (std::uint32_t id = 1; id <= kEndpoints; ++id) {
      operations.push_back({Kind::kStamp, id, any_prompt(), 0});
      if (id % 5 == 0) operations.push_back({Kind::kTime, 0, 0, 1});
    }
  }
};

// What each endpoint was told, by key: the newest tick of its present generation.
class Told {
 public:
  std::uint64_t tick = kFirstTick;

  void apply(const Script& script, const Operation& operation) {
    switch (operation.kind) {
      case Operation::Kind::kStamp:
        for (const std::uint64_t key : script.prompts[operation.prompt]) {
          ticks_[{key, operation.endpoint}] = std::max(tick, floors_[operation.endpoint]);
        }
        break;
      case Operation::Kind::kRemove:
        ticks_.erase({script.prompts[operation.prompt].back(), operation.endpoint});
        break;
      case Operation::Kind::kReset:
        std::erase_if(ticks_,
                      [&](const auto& held) { return held.first.second == operation.endpoint; });
        floors_[operation.endpoint] = std::max(tick, floors_[operation.endpoint]) + 1;
        break;
      case Operation::Kind::kTime: tick += operation.ticks; break;
      case Operation::Kind::kSweep: break;
    }
  }
  // 0 = not told.
  std::uint64_t told(std::uint64_t key, std::uint32_t endpoint) const {
    const auto at = ticks_.find({key, endpoint});
    return at == ticks_.end() ? 0 : at->second;
  }

 private:
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> ticks_;
  std::map<std::uint32_t, std::uint64_t> floors_;
};

}  // namespace pickd::crash
