// What the demo computes with: streams to tokens, workloads there and back, lines to numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/common/child.hpp"
#include "tools/demo/outcome.hpp"
#include "tools/demo/workload_maker.hpp"
extern "C" {
#include "tools/demo/sse.h"
#include "tools/demo/workload.h"
}

namespace pickd::demo {
namespace {

TEST(Sse, GivesTheSameTokensHoweverTheBytesAreCut) {
  const std::string stream =
      "data: {\"choices\":[{\"text\":\"a\\n\\\"b\\u00e9\\\\\"}]}\r\n\r\n"
      ": comment\n\n"
      "data: {\"choices\": [{\"text\": \"\\\"text\\\":\"}]}\n\n"
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,"
      "\"prompt_tokens_details\":{\"cached_tokens\":5}}}\n\n"
      "data: [DONE]\n\n";
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    sse reader{};
    std::vector<std::string> texts;
    sse_event usage{};
    int done = 0;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      const std::string bytes = stream.substr(at, piece);
      sse_feed(&reader, bytes.data(), bytes.size());
      for (sse_event event; sse_next(&reader, &event) == 1;) {
        if (event.text != nullptr) texts.emplace_back(event.text, event.text_size);
        if (event.has_usage != 0) usage = event;
        done += event.done;
      }
    }
    ASSERT_EQ(texts, (std::vector<std::string>{"a\n\"b\u00e9\\", "\"text\":"})) << piece;
    EXPECT_EQ(usage.prompt_tokens, 7U);
    EXPECT_EQ(usage.cached_tokens, 5U);
    EXPECT_EQ(usage.output_tokens, 2U);
    EXPECT_EQ(done, 1);
    buffer_free(&reader.bytes);
  }
}

TEST(Sse, EscapedTextIsReadBackByAJsonParser) {
  std::string text;
  for (int c = 0; c < 128; ++c) text += static_cast<char>(c);
  buffer json{};
  buffer_text(&json, "\"");
  buffer_json(&json, text.data(), text.size());
  buffer_text(&json, "\"");
  EXPECT_EQ(nlohmann::json::parse(std::string(json.data, json.size)).get<std::string>(), text);
  buffer_free(&json);
}

class WorkloadFile : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = tools::TempDir::make("pickd-test");
    ASSERT_TRUE(made.ok()) << made.error().text;
    directory_.emplace(std::move(*made));
  }

  int read(const std::string& text) {
    const std::string path = directory_->path() + "/workload";
    std::ofstream(path) << text;
    workload_free(&workload_);
    return workload_read(path.c_str(), &workload_);
  }

  void TearDown() override { workload_free(&workload_); }

  std::optional<tools::TempDir> directory_;
  workload workload_{};
};

TEST_F(WorkloadFile, IsReadAsItWasMade) {
  WorkloadOptions options;
  ASSERT_EQ(read(make_workload(options)), 0);
  EXPECT_EQ(workload_.system_count, options.applications);
  const double expected = options.seconds * options.conversations_per_s;
  EXPECT_NEAR(static_cast<double>(workload_.conversation_count), expected, 5 * std::sqrt(expected));
  for (std::size_t i = 0; i < workload_.conversation_count; ++i) {
    const conversation& one = workload_.conversations[i];
    ASSERT_GE(one.turn_count, options.turns_min);
    ASSERT_LE(one.turn_count, options.turns_max);
    EXPECT_EQ(std::string_view(one.system).size() % 4, 0U);
    EXPECT_LT(one.start_ms, options.seconds * 1000);
    for (std::size_t turn = 1; turn < one.turn_count; ++turn) {
      ASSERT_GT(one.turns[turn].at_ms, one.turns[turn - 1].at_ms);
      ASSERT_EQ(std::string_view(one.turns[turn].text).size() % 4, 0U);
    }
  }
}

TEST_F(WorkloadFile, IsTheSameForTheSameSeedOnly) {
  WorkloadOptions options;
  const std::string first = make_workload(options);
  EXPECT_EQ(first, make_workload(options));
  options.seed = 2;
  EXPECT_NE(first, make_workload(options));
}

TEST_F(WorkloadFile, IsRefusedWhenALineMakesNoSense) {
  EXPECT_EQ(read("system abc\nconversation 0 0\nturn 0 1 hello there\n"), 0);
  EXPECT_EQ(read("sistem abc\n"), -1);
  EXPECT_EQ(read("system abc\nconversation 0 1\n"), -1);
  EXPECT_EQ(read("system abc\nturn 0 1 hello\n"), -1);
  EXPECT_EQ(read("system abc\nconversation 0 0\nturn 0 0 hello\n"), -1);
  EXPECT_EQ(read("system abc\nconversation 0 0\nturn 0 hello\n"), -1);
}

TEST(Outcome, AddsUpWhatTheDriverPrints) {
  Outcome outcome;
  EXPECT_TRUE(outcome.add_line("turn engine-0 ok 100 80 3 5000 60 0 1000,3000"));
  EXPECT_TRUE(outcome.add_line("turn engine-1 ok 100 0 1 7000 80 1 -"));
  EXPECT_TRUE(outcome.add_line("turn engine-1 ok 200 120 1 9000 70 0 -"));
  EXPECT_TRUE(outcome.add_line("turn - failed 0 0 0 0 90 0 -"));
  EXPECT_TRUE(outcome.add_line("picks 1000 0.5"));
  EXPECT_EQ(outcome.turns(), 4U);
  EXPECT_EQ(outcome.failed(), 1U);
  EXPECT_EQ(outcome.fallbacks, 1U);
  EXPECT_DOUBLE_EQ(outcome.hit_rate(), 0.5);
  EXPECT_DOUBLE_EQ(outcome.busiest_share(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(outcome.ttft_ms.mean(), 7);
  EXPECT_DOUBLE_EQ(outcome.itl_ms.percentile(1), 3);
  EXPECT_DOUBLE_EQ(outcome.picks_per_s, 2000);
  EXPECT_FALSE(outcome.add_line("something else"));
  EXPECT_FALSE(outcome.add_line("turn engine-0 ok 100 many 3 5000 60 0 -"));
}

TEST(Outcome, WritesEveryNumberThatWasPromised) {
  Outcome outcome;
  outcome.add_line("turn engine-0 ok 100 80 3 5000 60 0 1000,3000");
  outcome.state_bytes = 42;
  const auto json = nlohmann::json::parse(json_of(Outcome(), outcome));
  for (const char* key :
       {"hit_rate", "ttft_mean_ms", "ttft_p50_ms", "ttft_p99_ms", "itl_p99_ms", "busiest_share"}) {
    EXPECT_TRUE(json["round_robin"].contains(key)) << key;
    EXPECT_TRUE(json["pickd"][key].is_number()) << key;
  }
  EXPECT_EQ(json["pickd"]["state_bytes"], 42);
  EXPECT_EQ(json["pickd"]["pick_p99_us"], 60);
}

}  // namespace
}  // namespace pickd::demo
