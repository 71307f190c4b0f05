// A recording as a trace: order, numbers for keys, lengths of answers that nobody told.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "abi/recording.hpp"
#include "abi/state_layout.hpp"
#include "tools/ctl/trace_writer.hpp"

namespace pickd::ctl {
namespace {

using Entry = std::vector<std::uint64_t>;

Entry pick_of(std::uint64_t sequence, std::uint64_t at_ms, std::uint32_t tokens,
              const std::vector<std::uint64_t>& keys, std::uint32_t expected = 0) {
  abi::RecordingPick pick{};
  pick.head = {static_cast<std::uint32_t>(sizeof pick / 8 + keys.size()), abi::RecordingKind::kPick,
               at_ms * 1'000'000, 7, sequence};
  pick.prompt_tokens = tokens;
  pick.expected_output_tokens = expected;
  pick.match_tokens = tokens / 2;
  pick.keys = static_cast<std::uint32_t>(keys.size());
  Entry entry(sizeof pick / 8);
  std::memcpy(entry.data(), &pick, sizeof pick);
  entry.insert(entry.end(), keys.begin(), keys.end());
  return entry;
}

Entry end_of(std::uint64_t sequence, std::uint32_t output_tokens) {
  abi::RecordingEnd end{};
  end.head = {sizeof end / 8, abi::RecordingKind::kEnd, 0, 7, sequence};
  end.output_tokens = output_tokens;
  end.done = 1;
  Entry entry(sizeof end / 8);
  std::memcpy(entry.data(), &end, sizeof end);
  return entry;
}

class TraceWriterTest : public testing::Test {
 protected:
  TraceWriter writer{[this](const std::string& line) { lines.push_back(line); }};
  std::vector<std::string> lines;

  nlohmann::json line(std::size_t at) const { return nlohmann::json::parse(lines.at(at)); }
};

TEST_F(TraceWriterTest, TellsWhatShareOfHitsItsNumbersCanShow) {
  writer.add(pick_of(1, 0, 400, {11}));
  writer.add(pick_of(2, 0, 400, {12}));
  EXPECT_EQ(writer.hit_share(), 0.5);
  EXPECT_EQ(writer.shown_hit_share(), 0) << "what they share is less than a number stands for";
  writer.add(pick_of(3, 0, 800, {21, 22}));
  writer.add(pick_of(4, 0, 800, {21, 23}));
  EXPECT_EQ(writer.shown_hit_share(), 512. / 2400);
}

TEST_F(TraceWriterTest, WritesPicksInTheirOrderWhenTheirEndsCome) {
  writer.add(pick_of(1, 1000, 1024, {11, 12}));
  writer.add(pick_of(2, 1500, 1100, {11, 12}));
  writer.add(end_of(2, 30));
  EXPECT_TRUE(lines.empty()) << "the first has not ended";
  writer.add(end_of(1, 20));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(line(0),
            nlohmann::json::parse(
                R"({"timestamp":0,"input_length":1024,"output_length":20,"hash_ids":[0,1]})"));
  EXPECT_EQ(line(1).at("timestamp"), 500);
  EXPECT_EQ(line(1).at("output_length"), 30);
  // 1,100 tokens are three blocks; the third has no whole block, and is like no other.
  EXPECT_EQ(line(1).at("hash_ids"), nlohmann::json({0, 1, 2}));
  EXPECT_DOUBLE_EQ(writer.hit_share(), (512.0 + 550) / 2124);
}

TEST_F(TraceWriterTest, GuessesOutputsThatNobodyToldAndCountsThem) {
  writer.add(pick_of(1, 0, 512, {1}));
  writer.add(pick_of(2, 0, 512, {2}));
  writer.add(pick_of(3, 0, 512, {3}, 99));
  writer.add(pick_of(4, 0, 512, {4}));
  writer.add(end_of(1, 10));
  writer.add(end_of(2, 30));
  writer.add(end_of(4, abi::kUnknown32));
  writer.finish();
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(line(2).at("output_length"), 99) << "as it was expected";
  EXPECT_EQ(line(3).at("output_length"), 20) << "the mean of the others";
  EXPECT_EQ(writer.guessed(), 2U);
  EXPECT_EQ(writer.written(), 4U);
}

TEST_F(TraceWriterTest, PassesOverEndsOfBeforeAndKindsItDoesNotKnow) {
  Entry strange = end_of(1, 5);
  strange[0] = strange.size() | std::uint64_t{77} << 32;
  writer.add(end_of(9, 5));
  writer.add(strange);
  writer.finish();
  EXPECT_TRUE(lines.empty());
}

TEST_F(TraceWriterTest, RefusesEntriesThatAreCut) {
  Entry cut = pick_of(1, 0, 512, {1, 2, 3});
  cut.pop_back();
  EXPECT_THROW(writer.add(cut), std::runtime_error);
  EXPECT_THROW(writer.add(Entry{0, 0, 0, 0}), std::runtime_error);
  EXPECT_THROW(writer.add(Entry{5}), std::runtime_error);
  Entry more_keys = pick_of(1, 0, 512, {1});
  more_keys[5] += std::uint64_t{8} << 32;
  EXPECT_THROW(writer.add(more_keys), std::runtime_error);
}

}  // namespace
}  // namespace pickd::ctl
