// Picks end to end: prompts of every awkward length, models, subsets, limits, prefixes.
#include "tests/system/support.hpp"

#include <cerrno>
#include <cmath>
#include <limits>
#include <set>

namespace pickd::systests {
namespace {

constexpr std::size_t kBlockBytes = 256;  // 64 tokens of 4 bytes
constexpr std::uint32_t kKeysMax = 2048;

// What a first and a second pick of the same prompt say; the first is ended in between.
struct Twice {
  std::string first;
  std::string second;
  std::uint32_t first_match = 0;
  std::uint32_t second_match = 0;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t flags = 0;
};

Twice pick_twice(const Client& client, const Request& request) {
  Twice twice;
  Result result;
  EXPECT_EQ(pick(client, request, result), 0) << client.last_error();
  twice.first = result.name();
  twice.first_match = result.match_tokens();
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  EXPECT_EQ(pick(client, request, result), 0) << client.last_error();
  twice.second = result.name();
  twice.second_match = result.match_tokens();
  twice.prompt_tokens = pickd_result_prompt_tokens(result.get());
  twice.flags = pickd_result_flags(result.get());
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  return twice;
}

TEST(SystemPick, TakesAPromptOfNoBytesByLoadAlone) {
  Daemon daemon;
  const Client client(daemon);
  Request request;
  Result result;
  std::set<std::string> used;
  for (int count = 0; count < 4; ++count) {
    ASSERT_EQ(pick(client, request.text(""), result), 0);
    EXPECT_EQ(result.match_tokens(), 0U);
    EXPECT_EQ(pickd_result_prompt_tokens(result.get()), 0U);
    used.insert(result.name());
  }
  EXPECT_EQ(used.size(), 4U) << "four open requests belong on four endpoints";
  EXPECT_EQ(daemon.counter("stamped_blocks"), 0U);
}

TEST(SystemPick, SendsTheSamePromptToTheSameEndpointAndSaysThatAllOfItMatches) {
  // By prefix first: to the cost, a block more or less on an idle engine is nothing.
  Daemon daemon({.arguments = {"--profile", "prefix-load"}});
  const Client client(daemon);
  unsigned seed = 0;
  for (const std::size_t bytes : {std::size_t{1}, kBlockBytes - 1, kBlockBytes, kBlockBytes + 1,
                                  10 * kBlockBytes, 40'000 + std::size_t{3}}) {
    const Twice twice = pick_twice(client, Request(prompt_of(bytes, ++seed)));
    EXPECT_EQ(twice.first_match, 0U) << bytes;
    EXPECT_EQ(twice.first, twice.second) << bytes;
    EXPECT_EQ(twice.prompt_tokens, (bytes + 3) / 4) << bytes;
    EXPECT_EQ(twice.second_match, twice.prompt_tokens) << bytes;
    EXPECT_EQ(twice.flags & PICKD_RESULT_CUT, 0U) << bytes;
  }
}

TEST(SystemPick, CutsAPromptOf64MiBAtTheKeyLimitAndSaysSo) {
  Daemon daemon;
  const Client client(daemon);
  const Request request(prompt_of(std::size_t{64} << 20));
  const Twice twice = pick_twice(client, request);
  EXPECT_EQ(twice.first, twice.second);
  EXPECT_EQ(twice.prompt_tokens, 16U << 20);
  EXPECT_EQ(twice.second_match, kKeysMax * 64);
  EXPECT_NE(twice.flags & PICKD_RESULT_CUT, 0U);
  EXPECT_EQ(daemon.counter("picks_cut"), 2U);
  EXPECT_EQ(daemon.inflight(), 0U);
}

TEST(SystemPick, TellsAPromptOfExactlyTheKeyLimitFromOneBlockMore) {
  Daemon daemon;
  const Client client(daemon);
  EXPECT_EQ(pick_twice(client, Request(prompt_of(kKeysMax * kBlockBytes))).flags, 0U);
  EXPECT_EQ(pick_twice(client, Request(prompt_of(kKeysMax * kBlockBytes + 1))).flags,
            PICKD_RESULT_CUT);
  EXPECT_EQ(daemon.counter("picks_cut"), 2U);
}

TEST(SystemPick, TreatsNulBytesAsAnyOtherByte) {
  Daemon daemon;
  const Client client(daemon);
  const std::string zeros(3 * kBlockBytes, '\0');
  const std::string model("m\0odel", 6);
  const std::string session("\0\0s", 3);
  Request request(zeros);
  request.raw.model = {model.data(), model.size()};
  request.raw.session_id = {session.data(), session.size()};
  const Twice twice = pick_twice(client, request);
  EXPECT_EQ(twice.second_match, zeros.size() / 4);

  // A prefix of a string of zeros is another string; "m" is another model than "m\0odel".
  Result result;
  Request shorter(zeros.substr(1));
  shorter.raw.model = request.raw.model;
  ASSERT_EQ(pick(client, shorter, result), 0);
  EXPECT_EQ(result.match_tokens(), 2 * 64U) << "two whole blocks of zeros are shared";
  Request other(zeros);
  other.raw.model = {model.data(), 1};
  ASSERT_EQ(pick(client, other, result), 0);
  EXPECT_EQ(result.match_tokens(), 0U);
}

TEST(SystemPick, RefusesAModelNobodyServes) {
  Daemon daemon({.rest = "endpoints:\n  - {name: a, address: \"10.1.0.1:1\", models: [llama]}",
                 .endpoints = 0});
  const Client client(daemon);
  Request request("hello");
  Result result;
  request.raw.model = pickd_string("gpt");
  EXPECT_EQ(pick(client, request, result), -ENOENT);
  EXPECT_EQ(pickd_result_status(result.get()), -ENOENT);
  EXPECT_EQ(result.count(), 0U);
  request.raw.model = pickd_string("llama");
  EXPECT_EQ(pick(client, request, result), 0);
  request.raw.model = {nullptr, 0};
  EXPECT_EQ(pick(client, request, result), 0) << "no model: any endpoint";
  EXPECT_EQ(daemon.counter("picks_unknown_model"), 1U);
  EXPECT_EQ(daemon.counter("picks_refused"), 1U);
}

TEST(SystemPick, SaysThatThereIsNoEndpointAtAll) {
  Daemon daemon({.endpoints = 0});
  const Client client(daemon);
  Request request("hello");
  Result result;
  EXPECT_EQ(pick(client, request, result), -EHOSTUNREACH);
  request.raw.model = pickd_string("llama");
  EXPECT_EQ(pick(client, request, result), -EHOSTUNREACH) << "unknown model is not the trouble";
  EXPECT_EQ(daemon.counter("picks_no_endpoint"), 2U);
}

TEST(SystemPick, HeedsASubsetOfNamesAndAddresses) {
  Daemon daemon;
  const Client client(daemon);
  Request request(prompt_of(1000));
  Result result;
  for (int count = 0; count < 20; ++count) {
    ASSERT_EQ(pick(client, request.subset({"e2", "10.0.0.3:8000", "nobody"}), result), 0);
    EXPECT_EQ(result.count(), 2U);
    EXPECT_TRUE(result.name() == "e2" || result.name() == "e3") << result.name();
  }
  ASSERT_EQ(pick(client, request.subset({"10.0.0.1:8000"}), result), 0);
  EXPECT_EQ(result.name(), "e1");
  EXPECT_STREQ(pickd_result_address(result.get(), 0), "10.0.0.1:8000");
  EXPECT_EQ(pickd_result_reason(result.get()), PICKD_REASON_ONLY);

  EXPECT_EQ(pick(client, request.subset({}), result), -EHOSTUNREACH) << "empty hint: nobody";
  EXPECT_EQ(pick(client, request.subset({"nobody", ""}), result), -EHOSTUNREACH);
  EXPECT_EQ(pick(client, request.subset(std::vector<std::string>(512, "e0")), result), 0);
  EXPECT_EQ(pick(client, request.subset(std::vector<std::string>(513, "e0")), result), -E2BIG);
}

TEST(SystemPick, ListsAsManyEndpointsAsAskedFor) {
  Daemon daemon({.endpoints = 12});
  const Client client(daemon);
  Request request("hello");
  Result result;
  for (std::uint32_t wanted = 1; wanted <= 8; ++wanted) {
    request.raw.endpoints_max = wanted;
    ASSERT_EQ(pick(client, request, result), 0);
    ASSERT_EQ(result.count(), wanted);
    std::set<std::string> names;
    for (std::size_t at = 0; at < wanted; ++at) names.insert(result.name(at));
    EXPECT_EQ(names.size(), wanted) << "each once";
  }
  request.raw.endpoints_max = 0;
  ASSERT_EQ(pick(client, request, result), 0);
  EXPECT_EQ(result.count(), 8U);
  request.raw.endpoints_max = 9;
  EXPECT_EQ(pick(client, request, result), -EINVAL);
}

TEST(SystemPick, RefusesTextAndTokensTogetherAndStringsOverTheirLimits) {
  Daemon daemon;
  const Client client(daemon);
  Result result;
  const std::uint32_t tokens[] = {1, 2, 3};
  Request both("hello");
  both.raw.token_ids = tokens;
  both.raw.token_count = 3;
  EXPECT_EQ(pick(client, both, result), -EINVAL);

  const std::string longest(255, 'x');
  const std::string longer(256, 'x');
  for (pickd_slice pickd_request::*field :
       {&pickd_request::model, &pickd_request::adapter, &pickd_request::session_id,
        &pickd_request::fairness_id, &pickd_request::request_id}) {
    Request request("hello");
    request.raw.*field = {longest.data(), longest.size()};
    EXPECT_EQ(pick(client, request, result), 0);
    request.raw.*field = {longer.data(), longer.size()};
    EXPECT_EQ(pick(client, request, result), -E2BIG);
  }
  Request salted("hello");
  const std::string salt(1 << 20, 's');
  salted.raw.salt = {salt.data(), salt.size()};
  EXPECT_EQ(pick(client, salted, result), 0) << "a salt may have any length";
  EXPECT_EQ(daemon.counter("submissions_malformed"), 0U) << "the library refused, not the daemon";
}

TEST(SystemPick, TakesManyAttributes) {
  Daemon daemon;
  const Client client(daemon);
  Result result;
  const std::string text(255, 'k');
  const std::vector<pickd_attribute> pairs(
      33, {{text.data(), text.size()}, {text.data(), text.size()}});
  Request request("hello");
  request.raw.attributes = pairs.data();
  request.raw.attribute_count = 32;
  EXPECT_EQ(pick(client, request, result), 0) << client.last_error();
  request.raw.attribute_count = 33;
  EXPECT_EQ(pick(client, request, result), -E2BIG);
}

TEST(SystemPick, CountsSloValuesThatAreNoTimeAndPicksOn) {
  // Field case 91: a huge SLO must be none, never the most urgent.
  Daemon daemon;
  const Client client(daemon);
  Result result;
  const double day_ms = 24.0 * 3600 * 1000;
  const std::vector<double> nonsense = {9223372036854775807.0,
                                        9.3e12,
                                        -1.0,
                                        std::nan(""),
                                        std::numeric_limits<double>::infinity(),
                                        -std::numeric_limits<double>::infinity(),
                                        1e308,
                                        -1e-30,
                                        day_ms * 1.001};
  for (const double value : nonsense) {
    Request request("hello");
    request.raw.slo_ttft_ms = value;
    request.raw.slo_itl_ms = value;
    EXPECT_EQ(pick(client, request, result), 0) << value;
  }
  EXPECT_EQ(daemon.counter("slo_ignored"), 2 * nonsense.size());
  for (const double value : {0.0, 0.001, 200.0, 1e3, day_ms}) {
    Request request("hello");
    request.raw.slo_ttft_ms = value;
    EXPECT_EQ(pick(client, request, result), 0) << value;
  }
  EXPECT_EQ(daemon.counter("slo_ignored"), 2 * nonsense.size());
}

TEST(SystemPick, PredictsNothingWithLatencyOff) {
  Settings settings;
  settings.rest = "latency: {enabled: false}";
  for (const bool enabled : {true, false}) {
    Daemon daemon(enabled ? Settings{} : settings);
    const Client client(daemon);
    Result result;
    ASSERT_EQ(pick(client, Request("hello"), result), 0);
    EXPECT_EQ(std::isnan(pickd_result_ttft_ms(result.get())), !enabled);
    EXPECT_EQ(std::isnan(pickd_result_itl_ms(result.get())), !enabled);
    EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_FIRST_TOKEN), 0);
    EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
    EXPECT_EQ(daemon.inflight(), 0U);
    EXPECT_EQ(daemon.log().find("profile epp-default") != std::string::npos, !enabled);
  }
}

TEST(SystemPick, TakesPrioritiesOf16Bits) {
  Daemon daemon;
  const Client client(daemon);
  Result result;
  Request request("hello");
  for (const std::int32_t priority : {-32768, -1, 0, 1, 32767}) {
    request.raw.priority = priority;
    EXPECT_EQ(pick(client, request, result), 0) << priority;
  }
  for (const std::int32_t priority : {-32769, 32768}) {
    request.raw.priority = priority;
    EXPECT_EQ(pick(client, request, result), -EINVAL) << priority;
  }
}

TEST(SystemPick, ShowsEveryEndpointThatHoldsAPrefix) {
  Daemon daemon;
  const Client client(daemon);
  Result result;
  Request request(prompt_of(4 * kBlockBytes));
  for (const char* holder : {"e0", "e2", "e3"}) {
    ASSERT_EQ(pick(client, request.subset({holder}), result), 0);
    ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  }
  request.raw.flags = PICKD_REQUEST_DRY_RUN;
  ASSERT_EQ(pick(client, request, result), 0);
  ASSERT_EQ(result.count(), 4U);
  std::map<std::string, std::uint32_t> matches;
  for (std::size_t at = 0; at < 4; ++at) matches[result.name(at)] = result.match_tokens(at);
  EXPECT_EQ(matches, (std::map<std::string, std::uint32_t>{
                         {"e0", 256}, {"e1", 0}, {"e2", 256}, {"e3", 256}}));
  EXPECT_EQ(result.name(3), "e1");
  EXPECT_EQ(daemon.inflight(), 0U) << "a dry run reserves nothing";
}

TEST(SystemPick, CutsBlocksAsTheStateSays) {
  Daemon daemon({.state = {"block_tokens: 16"}});
  const Client client(daemon);
  std::uint32_t block_tokens = 0;
  ASSERT_EQ(pickd_daemon_info(client.get(), &block_tokens, nullptr, nullptr), 0);
  EXPECT_EQ(block_tokens, 16U);
  const std::string prompt = prompt_of(1024);
  Result result;
  ASSERT_EQ(pick(client, Request(prompt), result), 0);
  ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  // The first 5 blocks of 64 bytes are the same, the rest is not.
  ASSERT_EQ(pick(client, Request(prompt.substr(0, 350) + prompt_of(674, 1)), result), 0);
  EXPECT_EQ(result.match_tokens(), 5 * 16U);

  const std::vector<std::uint32_t> tokens(160, 7);
  Request request;
  request.raw.token_ids = tokens.data();
  request.raw.token_count = tokens.size();
  ASSERT_EQ(pick(client, request, result), 0);
  EXPECT_EQ(result.match_tokens(), 0U) << "tokens and text share nothing";
  const std::string winner = result.name();
  request.raw.token_count = 100;
  ASSERT_EQ(pick(client, request.subset({winner}), result), 0);
  EXPECT_EQ(result.match_tokens(), 96U) << "six whole blocks; the tail differs";
}

}  // namespace
}  // namespace pickd::systests
