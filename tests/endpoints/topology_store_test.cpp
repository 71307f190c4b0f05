// TopologyStore: readers keep the picture they took while newer ones replace it.
#include "daemon/endpoints/topology_store.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace pickd::endpoints {
namespace {

// A picture whose parts all say `number`.
std::unique_ptr<const Topology> picture(std::uint32_t number) {
  std::vector<TopologyEndpoint> entries(3);
  for (std::uint16_t at = 0; at < 3; ++at) {
    entries[at].id = static_cast<std::uint16_t>(at + 1);
    entries[at].generation = number;
    entries[at].name = "e" + std::to_string(at) + "-" + std::to_string(number);
    entries[at].address = entries[at].name;
  }
  return std::make_unique<const Topology>(std::move(entries));
}

bool is_whole(const Topology& topology) {
  if (topology.endpoints().size() != 3) return false;
  const std::uint32_t number = topology.endpoints()[0].generation;
  for (const auto& entry : topology.endpoints()) {
    const TopologyEndpoint* found =
        topology.find_name("e" + std::to_string(entry.id - 1) + "-" + std::to_string(number));
    if (found != &entry || entry.generation != number) return false;
  }
  return true;
}

TEST(TopologyStore, StartsWithAnEmptyPicture) {
  TopologyStore store;
  EXPECT_TRUE(store.acquire(0).endpoints().empty());
  store.release(0);
}

TEST(TopologyStore, KeepsAnAcquiredPictureThroughAnyNumberOfNewOnes) {
  TopologyStore store;
  store.publish(picture(1));
  const Topology& held = store.acquire(3);
  for (std::uint32_t number = 2; number < 100; ++number) store.publish(picture(number));
  EXPECT_EQ(held.endpoints()[0].generation, 1U);
  EXPECT_TRUE(is_whole(held));
  store.release(3);
  EXPECT_EQ(store.acquire(3).endpoints()[0].generation, 99U);
  store.release(3);
}

TEST(TopologyStore, LetsEachReaderHoldAPictureOfItsOwn) {
  TopologyStore store;
  store.publish(picture(1));
  const Topology& first = store.acquire(0);
  store.publish(picture(2));
  const Topology& second = store.acquire(1);
  store.publish(picture(3));
  EXPECT_EQ(first.endpoints()[0].generation, 1U);
  EXPECT_EQ(second.endpoints()[0].generation, 2U);
  EXPECT_EQ(store.current().endpoints()[0].generation, 3U);
  store.release(0);
  store.release(1);
}

TEST(TopologyStore, GivesReadersWholePicturesThatNeverGoBackWhileItIsReplaced) {
  TopologyStore store;
  store.publish(picture(1));
  constexpr std::uint32_t kReaders = 3;
  constexpr std::uint32_t kPictures = 3000;
  std::atomic<std::uint64_t> faults{0};
  std::vector<std::thread> readers;
  for (std::uint32_t slot = 0; slot < kReaders; ++slot) {
    readers.emplace_back([&, slot] {
      std::uint32_t newest = 0;
      while (newest < kPictures) {
        const Topology& seen = store.acquire(slot);
        const std::uint32_t number = seen.endpoints()[0].generation;
        if (number < newest || !is_whole(seen)) faults.fetch_add(1);
        newest = number;
        store.release(slot);
      }
    });
  }
  for (std::uint32_t number = 2; number <= kPictures; ++number) store.publish(picture(number));
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(faults.load(), 0U);
}

}  // namespace
}  // namespace pickd::endpoints
