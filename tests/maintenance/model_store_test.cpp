// ModelStore: what one daemon wrote is what the next one reads, and nothing else is.
#include "daemon/maintenance/model_store.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

namespace pickd::maintenance {
namespace {

constexpr std::uint32_t kClasses = 4;
constexpr std::uint32_t kEndpointIds = 8;
constexpr std::uint64_t kKey = 0xC1A55;

// The part of the state segment, which outlives each ModelStore.
class Segment {
 public:
  ModelStore open() {
    return ModelStore({records_.get(), endpoints_.get(), kClasses, kEndpointIds});
  }
  abi::ModelRecord& record(std::uint32_t at) { return records_[at]; }
  abi::Word& endpoint(std::uint32_t id) { return endpoints_[id]; }

 private:
  std::unique_ptr<abi::ModelRecord[]> records_{new abi::ModelRecord[2 * kClasses]()};
  std::unique_ptr<abi::Word[]> endpoints_{new abi::Word[kEndpointIds]()};
};

latency::ClassMemory memory_with(double output_sum) {
  latency::ClassMemory memory{};
  memory.output_sum = output_sum;
  memory.itl_given_accuracy.numbers[10] = 1.5;  // the last of the row
  return memory;
}

TEST(ModelStore, HoldsNothingInANewSegment) {
  Segment segment;
  ModelStore store = segment.open();
  EXPECT_FALSE(store.take(kKey));
  EXPECT_FALSE(store.endpoint(1, 1));
}

TEST(ModelStore, GivesTheNewestOfAClassOnceAndByItsKey) {
  Segment segment;
  {
    ModelStore store = segment.open();
    for (double sum = 1; sum <= 5; ++sum) store.write(2, kKey, memory_with(sum));
  }
  ModelStore next = segment.open();
  EXPECT_FALSE(next.take(kKey + 1)) << "another class";
  const auto taken = next.take(kKey);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->output_sum, 5);
  EXPECT_EQ(taken->itl_given_accuracy.numbers[10], 1.5);
  EXPECT_FALSE(next.take(kKey));
}

// Classes are numbered in the order in which they join: after a restart the number may be another.
TEST(ModelStore, FindsAClassThatHadAnotherNumber) {
  Segment segment;
  segment.open().write(3, kKey, memory_with(7));
  {
    ModelStore second = segment.open();
    second.write(0, kKey, memory_with(8));
  }
  EXPECT_EQ(segment.open().take(kKey)->output_sum, 8) << "the newer of both numbers";
}

TEST(ModelStore, TakesTheOneBeforeWhereTheNewestWasBeingWritten) {
  for (std::uint32_t half = 0; half < 2; ++half) {
    Segment segment;
    {
      ModelStore store = segment.open();
      store.write(0, kKey, memory_with(1));
      store.write(0, kKey, memory_with(2));
    }
    // The two halves hold 1 and 2, in one order or the other; one is torn.
    segment.record(half).words[5].store(segment.record(half).words[5].load() ^ 1);
    const auto taken = segment.open().take(kKey);
    ASSERT_TRUE(taken);
    EXPECT_TRUE(taken->output_sum == 1 || taken->output_sum == 2);
    segment.record(1 - half).check.store(0);
    EXPECT_FALSE(segment.open().take(kKey)) << "both are torn";
  }
}

TEST(ModelStore, GoesOnCountingAfterARestart) {
  Segment segment;
  segment.open().write(0, kKey, memory_with(1));
  segment.open().write(0, kKey, memory_with(2));
  segment.open().write(0, kKey, memory_with(3));
  EXPECT_EQ(segment.open().take(kKey)->output_sum, 3);
}

TEST(ModelStore, KeepsAnEndpointForItsGenerationAlone) {
  Segment segment;
  segment.open().write_endpoint(5, 77,
                                {.log_ratio = -.6931, .evidence_s = 42.5, .queued_share = .25});
  ModelStore next = segment.open();
  const auto known = next.endpoint(5, 77);
  ASSERT_TRUE(known);
  EXPECT_NEAR(known->log_ratio, -.6931, 1e-3);
  EXPECT_NEAR(known->evidence_s, 42.5, .1);
  EXPECT_NEAR(known->queued_share, .25, 1e-3);
  EXPECT_FALSE(next.endpoint(5, 78));
  EXPECT_FALSE(next.endpoint(4, 77));
}

TEST(ModelStore, BoundsWhatDoesNotFitAWord) {
  Segment segment;
  ModelStore store = segment.open();
  store.write_endpoint(1, 1, {.log_ratio = 1e9, .evidence_s = 1e9, .queued_share = 9});
  store.write_endpoint(2, 1, {.log_ratio = -1e9, .evidence_s = -5, .queued_share = -1});
  store.write_endpoint(3, 1, {.log_ratio = NAN, .evidence_s = NAN, .queued_share = INFINITY});
  EXPECT_NEAR(store.endpoint(1, 1)->log_ratio, 4, .01);
  EXPECT_EQ(store.endpoint(1, 1)->queued_share, 1);
  EXPECT_NEAR(store.endpoint(2, 1)->log_ratio, -4, .01);
  EXPECT_EQ(store.endpoint(2, 1)->evidence_s, 0);
  EXPECT_EQ(store.endpoint(3, 1)->log_ratio, 0);
}

TEST(ModelStore, WritesNothingBeyondItsTables) {
  Segment segment;
  ModelStore store = segment.open();
  store.write(kClasses, kKey, memory_with(1));
  store.write_endpoint(kEndpointIds, 1, {.log_ratio = 1, .evidence_s = 1});
  EXPECT_FALSE(segment.open().take(kKey));
  EXPECT_FALSE(store.endpoint(kEndpointIds, 1));
}

}  // namespace
}  // namespace pickd::maintenance
