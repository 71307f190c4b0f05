// Where the parts of a state segment lie, and what is said when they do not fit.
#include "daemon/state/state_layout.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace pickd::state {
namespace {

struct Part {
  std::uint64_t offset;
  std::uint64_t bytes;
};

std::vector<Part> parts_of(const StateLayout& layout) {
  return {{0, sizeof(abi::StateHeader)},
          {layout.workers_offset, sizeof(abi::WorkerWord) * abi::kWorkersMax},
          {layout.counters_offset, 8ULL * abi::kThreadsCountedMax * abi::kCountersMax},
          {layout.endpoints_offset, sizeof(abi::EndpointRecord) * layout.endpoint_ids},
          {layout.reservations_offset, sizeof(abi::Reservation) * layout.reservation_slots},
          {layout.routing_offset, 2 * layout.routing_bytes},
          {layout.prefix_offset, layout.prefix_lines * abi::kCacheLineBytes}};
}

void expect_sound(const StateParameters& parameters) {
  const auto made = lay_out(parameters);
  ASSERT_TRUE(made.ok()) << made.error().text;
  const StateLayout& layout = made.value();
  std::uint64_t end = 0;
  for (const Part& part : parts_of(layout)) {
    EXPECT_EQ(part.offset % abi::kPageBytes, 0U) << "on a page border";
    EXPECT_GE(part.offset, end) << "behind the one before";
    end = part.offset + part.bytes;
  }
  EXPECT_LE(end, layout.total_bytes);
  EXPECT_LT(layout.total_bytes - end, abi::kPageBytes) << "nothing is wasted";
  EXPECT_EQ(layout.total_bytes % abi::kPageBytes, 0U);
  EXPECT_LE(layout.total_bytes, parameters.bytes);
  EXPECT_EQ(layout.prefix_lines % 2, 0U);
  EXPECT_GE(layout.prefix_lines * abi::kCacheLineBytes, 1ULL << 20);
  EXPECT_EQ(layout.endpoint_ids, parameters.endpoints_max + 1);
  EXPECT_TRUE(std::has_single_bit(layout.reservation_slots));
  EXPECT_GE(layout.reservation_slots, parameters.reservations_max);
}

TEST(StateLayout, LaysThePartsBehindEachOtherOnPageBorders) {
  expect_sound({});
  StateParameters small;
  small.bytes = 16ULL << 20;
  small.endpoints_max = 8;
  small.reservations_max = 1000;
  expect_sound(small);
  small.bytes += 12'345;  // no whole pages
  expect_sound(small);
  StateParameters large;
  large.bytes = 8ULL << 30;
  expect_sound(large);
}

TEST(StateLayout, RoundsReservationsUpToAPowerOfTwo) {
  StateParameters parameters;
  parameters.reservations_max = 1025;
  EXPECT_EQ(lay_out(parameters).value().reservation_slots, 2048U);
  parameters.reservations_max = 1024;
  EXPECT_EQ(lay_out(parameters).value().reservation_slots, 1024U);
}

TEST(StateLayout, GivesAllThatIsLeftToThePrefixTable) {
  StateParameters parameters;
  const auto small = lay_out(parameters).value().prefix_lines;
  parameters.bytes += 64ULL << 20;
  EXPECT_EQ(lay_out(parameters).value().prefix_lines, small + (64ULL << 20) / 64);
}

TEST(StateLayout, NamesASizeThatWorksWhenItIsTooSmall) {
  for (const std::uint32_t endpoints : {1U, 100U, 4095U}) {
    for (const std::uint32_t reservations : {1U, 1000U, 65'536U, 1'000'000U}) {
      StateParameters parameters;
      parameters.bytes = 1ULL << 20;
      parameters.endpoints_max = endpoints;
      parameters.reservations_max = reservations;
      const auto refused = lay_out(parameters);
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.error().code, -EINVAL);
      const std::string& text = refused.error().text;
      EXPECT_NE(text.find("state.size_mib"), std::string::npos) << text;
      const std::string before = "use at least ";
      const std::size_t at = text.find(before);
      ASSERT_NE(at, std::string::npos) << text;
      const std::uint64_t mib = std::stoull(text.substr(at + before.size()));
      parameters.bytes = mib << 20;
      EXPECT_TRUE(lay_out(parameters).ok()) << text;
      parameters.bytes = (mib - 1) << 20;
      EXPECT_FALSE(lay_out(parameters).ok()) << "and none that is larger than needed";
    }
  }
}

TEST(StateLayout, RefusesNoBytesAtAll) {
  StateParameters parameters;
  parameters.bytes = 0;
  EXPECT_FALSE(lay_out(parameters).ok());
}

}  // namespace
}  // namespace pickd::state
