// pickctl explain against a real daemon: picks that were kept, dry runs, and who may see what.
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

constexpr unsigned kNobody = 65534;
using Json = nlohmann::json;

Ended explain(const Daemon& daemon, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--socket", daemon.socket(), "explain"});
  return run("pickctl", arguments);
}
Json explain_json(const Daemon& daemon, std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const Ended ended = explain(daemon, arguments);
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  return ended.exit_code == 0 ? Json::parse(ended.output) : Json();
}
std::string text_of(const Result& result) {
  return std::to_string(result.ticket().client) + ":" + std::to_string(result.ticket().sequence);
}
std::string file_with(const Daemon& daemon, const std::string& text) {
  const std::string path = daemon.directory() + "/request.json";
  std::ofstream(path) << text;
  return path;
}

TEST(SystemExplain, ShowsTheLastPickAndOneByItsTicket) {
  Daemon daemon({.rest = "scheduling: {profile: epp-default}\n"});
  const Client client(daemon);
  const Result first;
  const Result second;
  ASSERT_EQ(pick(client, Request(prompt_of(1024)), first), 0);
  ASSERT_EQ(pick(client, Request(prompt_of(1024)), second), 0);

  const Json last = explain_json(daemon, {"--last"});
  EXPECT_EQ(last.at("ticket"), text_of(second));
  EXPECT_EQ(last.at("uid"), ::getuid());
  EXPECT_EQ(last.at("status"), 0);
  EXPECT_EQ(last.at("reason"), "prefix");
  EXPECT_EQ(last.at("prompt_blocks"), 4);
  EXPECT_FALSE(last.at("dry_run"));
  const Json& stage = last.at("stages").at(0);
  EXPECT_EQ(stage.at("candidates").size(), 4U);
  EXPECT_EQ(stage.at("candidates").at(0).at("name"), second.name());
  EXPECT_EQ(stage.at("candidates").at(0).at("place"), 1);
  EXPECT_EQ(stage.at("candidates").at(0).at("columns").at("match blocks"), 4);
  EXPECT_EQ(stage.at("candidates").at(0).at("scores").at("prefix-cache-scorer"), 1);
  EXPECT_TRUE(stage.at("candidates").at(0).at("columns").at("KV use").is_null())
      << "nobody told it";

  const Json one = explain_json(daemon, {"--ticket", text_of(first)});
  EXPECT_EQ(one.at("ticket"), text_of(first));
  EXPECT_EQ(one.at("reason"), "tie");
  EXPECT_EQ(one.at("stages").at(0).at("ties"), 4);

  const Ended text = explain(daemon, {"--last"});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_NE(text.output.find("profile epp-default, 4 candidates"), std::string::npos)
      << text.output;
  EXPECT_NE(text.output.find("scorer       prefix-cache-scorer x 3"), std::string::npos)
      << text.output;
}

TEST(SystemExplain, RunsARequestDryAndLeavesNothingBehind) {
  Daemon daemon({.endpoints = 500});
  const Client client(daemon);
  const Result result;
  const std::string prompt(2048, 'p');  // text, for JSON
  ASSERT_EQ(pick(client, Request(prompt), result), 0);
  // Stamped after the answer.
  ASSERT_TRUE(eventually([&] { return daemon.counter("stamped_blocks") == 8; }));
  const StatusView before = daemon.status();
  const Json request = {{"prompt", prompt}, {"session_id", "s"}, {"priority", 3}};
  const std::string path = file_with(daemon, request.dump());
  for (int turn = 0; turn < 3; ++turn) {
    const Json said = explain_json(daemon, {"--request", path});
    EXPECT_TRUE(said.at("dry_run"));
    EXPECT_EQ(said.at("status"), 0);
    EXPECT_EQ(said.at("priority"), 3);
    EXPECT_EQ(said.at("session"), "s");
    EXPECT_EQ(said.at("prompt_blocks"), 8);
    const Json& candidates = said.at("stages").at(0).at("candidates");
    ASSERT_EQ(candidates.size(), 500U) << "more than one page";
    std::map<std::string, Json> by_name;
    for (const Json& candidate : candidates) by_name[candidate.at("name")] = candidate;
    EXPECT_EQ(by_name.size(), 500U);
    // What the real pick stamped is there for the dry one, and a dry one stamps nothing.
    for (const auto& [name, candidate] : by_name)
      EXPECT_EQ(candidate.at("columns").at("match blocks"), name == result.name() ? 8 : 0) << name;
  }
  const StatusView after = daemon.status();
  EXPECT_EQ(after.reservations, before.reservations);
  EXPECT_EQ(after.counters.at("picks"), before.counters.at("picks"));
  EXPECT_EQ(after.counters.at("stamped_blocks"), before.counters.at("stamped_blocks"));
  EXPECT_EQ(daemon.inflight(), 1U);
}

TEST(SystemExplain, SaysWhatIsWrongWithARequestFile) {
  Daemon daemon;
  const std::pair<const char*, const char*> wrong[] = {
      {"{", "no JSON"},
      {"[]", "a request is a JSON object"},
      {"{\"prompts\": \"x\"}", "unknown key `prompts`; known: model, adapter"},
      {"{\"model\": 7}", "model: "},
      {"{\"token_ids\": [4294967296]}", "token_ids: 4294967296: a whole number, 0 to 4294967295"},
      {"{\"token_ids\": [-1]}", "token_ids: -1: a whole number, 0 to 4294967295"},
      {"{\"token_ids\": [1, 2.7]}", "token_ids: 2.7: a whole number"},
      {"{\"token_ids\": [true]}", "token_ids: true: a whole number"},
      {"{\"token_ids\": 7}", "token_ids: must be a list of numbers"},
      {"{\"prompt_tokens\": 4294967296}", "prompt_tokens: 4294967296: a whole number, 0 to"},
      {"{\"expected_output_tokens\": 1.5}", "expected_output_tokens: 1.5: a whole number, 0 to"},
      {"{\"priority\": 4294967296}", "priority: 4294967296: a whole number, -2147483648 to"},
      {"{\"prompt\": \"x\", \"token_ids\": [1]}", "both text and token ids"},
      {"{\"priority\": 70000}", "priority 70000: -32768 to 32767"},
  };
  for (const auto& [text, words] : wrong) {
    const Ended ended = explain(daemon, {"--request", file_with(daemon, text)});
    EXPECT_EQ(ended.exit_code, 1) << text;
    EXPECT_NE(ended.errors.find(words), std::string::npos) << text << "\n" << ended.errors;
  }
  EXPECT_EQ(explain(daemon, {"--request", "/nowhere"}).exit_code, 1);
  EXPECT_EQ(explain(daemon, {"--ticket", "12"}).exit_code, 1);
  EXPECT_EQ(explain(daemon, {"--ticket", "1:2"}).exit_code, 1) << "it was never given out";
  EXPECT_EQ(explain(daemon, {}).exit_code, 2);
  EXPECT_EQ(explain(daemon, {"--last", "--ticket", "1:2"}).exit_code, 2);
}

TEST(SystemExplain, KeepsNothingWhereNothingIsToBeKept) {
  Daemon daemon({.rest = "explain: {picks_per_s: 0}\n"});
  const Client client(daemon);
  const Result result;
  ASSERT_EQ(pick(client, Request(prompt_of(1024)), result), 0);
  const Ended ended = explain(daemon, {"--last"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.errors.find("explain.picks_per_s"), std::string::npos) << ended.errors;
  EXPECT_EQ(explain_json(daemon, {"--request", file_with(daemon, "{}")}).at("status"), 0);
}

TEST(SystemExplain, TellsAnInfiniteNumberFromAnUnknownOne) {
  Daemon daemon({.rest = "scheduling:\n"
                         "  plugins:\n"
                         "  - {type: external-scorer, parameters: {path: " PICKD_BINARY_DIR
                         "/lib/odd.so, config: infinite}}\n"});
  const Json said = explain_json(daemon, {"--request", file_with(daemon, "{}")});
  std::size_t infinite = 0;
  for (const Json& candidate : said.at("stages").at(0).at("candidates"))
    infinite += candidate.at("scores").at("external-scorer") == "inf";
  EXPECT_EQ(infinite, 1U) << said;
}

TEST(SystemExplain, ExplainsRefusedPicks) {
  Daemon daemon({.endpoints = 1});
  const Client client(daemon);
  ASSERT_EQ(pickd_endpoint_drain(client.get(), "e0", 1), 0);
  const Result result;
  ASSERT_EQ(pick(client, Request(prompt_of(1024)), result), -EHOSTUNREACH);
  const Json last = explain_json(daemon, {"--last"});
  EXPECT_EQ(last.at("status"), -EHOSTUNREACH);
  EXPECT_EQ(last.at("refused"), "no endpoint is ready, or none in the subset");
  EXPECT_EQ(last.at("left_out").at(0).at("why"), "draining");
}

TEST(SystemExplain, ShowsAUserItsOwnPicksOnlyAndAdminsAll) {
  if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
  Daemon daemon({.listen = {"mode: \"0666\""}});
  ASSERT_EQ(::chmod(daemon.directory().c_str(), 0755), 0);
  const Client root(daemon);
  const Result roots;
  ASSERT_EQ(pick(root, Request(prompt_of(1024)), roots), 0);
  const std::string roots_ticket = text_of(roots);
  Forked other([&](Forked&) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) return 1;
    if (explain(daemon, {"--last"}).exit_code != 1) return 2;  // there is none of this user
    if (explain(daemon, {"--ticket", roots_ticket}).exit_code != 1) return 3;
    const Client own(daemon.socket());
    const Result result;
    if (own.get() == nullptr || pick(own, Request(prompt_of(512)), result) != 0) return 4;
    if (explain_json(daemon, {"--last"}).at("ticket") != text_of(result)) return 5;
    return explain(daemon, {"--ticket", text_of(result)}).exit_code == 0 ? 0 : 6;
  });
  EXPECT_EQ(other.wait(), 0);
  const Json last = explain_json(daemon, {"--last"});
  EXPECT_EQ(last.at("uid"), kNobody) << "the newest of all users";
  EXPECT_EQ(explain_json(daemon, {"--ticket", roots_ticket}).at("uid"), 0);
}

}  // namespace
}  // namespace pickd::systests
