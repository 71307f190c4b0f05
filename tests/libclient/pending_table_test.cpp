// The table of outstanding picks against a map that does the same.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "libclient/pending_table.hpp"

namespace pickd::client {
namespace {

std::vector<std::uint64_t> listed(const PendingTable& table) {
  std::vector<std::uint64_t> sequences;
  for (const Pending* entry = table.oldest(); entry != nullptr; entry = entry->after) {
    sequences.push_back(entry->sequence);
  }
  return sequences;
}

TEST(PendingTable, FindsWhatIsThereAndNothingElse) {
  constexpr std::uint32_t kDepth = 37;
  PendingTable table;
  ASSERT_EQ(table.make(kDepth), 0);
  std::map<std::uint64_t, std::uint64_t> expected;  // ordered: sequences rise
  std::mt19937 random(1);
  std::uint64_t sequence = 0;
  for (int step = 0; step < 50'000; ++step) {
    if (random() % 2 == 0) {
      sequence += 1 + random() % 9;
      Pending* added = table.add(sequence);
      ASSERT_EQ(added == nullptr, expected.size() == kDepth);
      if (added == nullptr) continue;
      EXPECT_EQ(added->state, PendingState::kLive);
      added->user_data = random();
      expected[sequence] = added->user_data;
    } else if (!expected.empty()) {
      auto at = expected.begin();
      std::advance(at, random() % expected.size());
      Pending* found = table.find(at->first);
      ASSERT_NE(found, nullptr);
      ASSERT_EQ(found->user_data, at->second);
      table.remove(found);
      EXPECT_EQ(table.find(at->first), nullptr);
      expected.erase(at);
    }
    ASSERT_EQ(table.full(), expected.size() == kDepth);
    if (step % 1000 == 0) {
      std::vector<std::uint64_t> sequences;
      for (const auto& entry : expected) sequences.push_back(entry.first);
      ASSERT_EQ(listed(table), sequences);
    }
  }
  EXPECT_EQ(table.find(sequence + 1), nullptr);
}

TEST(PendingTable, OfDepthOneHoldsOne) {
  PendingTable table;
  ASSERT_EQ(table.make(1), 0);
  ASSERT_NE(table.add(5), nullptr);
  EXPECT_EQ(table.add(6), nullptr);
  table.remove(table.find(5));
  EXPECT_EQ(table.oldest(), nullptr);
  EXPECT_NE(table.add(6), nullptr);
}

}  // namespace
}  // namespace pickd::client
