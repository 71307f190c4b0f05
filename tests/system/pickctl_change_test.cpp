// pickctl against a real daemon: what changes it, what compares it with a file, what looks for
// faults, and completion.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

using Words = std::vector<std::string>;

Ended ctl(Daemon& daemon, Words words) {
  words.insert(words.begin(), {"--socket", daemon.socket()});
  return run("pickctl", words);
}

nlohmann::json json_of(const Ended& ended) {
  return nlohmann::json::parse(ended.output, nullptr, false);
}

std::string state_of(Daemon& daemon, const std::string& name) {
  const auto json = json_of(ctl(daemon, {"endpoints", "--json"}));
  for (const auto& endpoint : json.at("endpoints")) {
    if (endpoint.at("name") == name) return endpoint.at("state");
  }
  return "gone";
}

TEST(SystemPickctlChange, DrainsAndUndrainsByNameAndByPool) {
  Daemon daemon;
  EXPECT_EQ(ctl(daemon, {"drain", "e0", "e1"}).output, "draining e0\ndraining e1\n");
  EXPECT_EQ(state_of(daemon, "e0"), "draining");
  EXPECT_EQ(state_of(daemon, "e2"), "ready");
  EXPECT_EQ(ctl(daemon, {"undrain", "--pool", "default"}).exit_code, 0);
  EXPECT_EQ(state_of(daemon, "e0"), "ready");

  const Ended unknown = ctl(daemon, {"drain", "e9"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.errors.find("e9"), std::string::npos) << unknown.errors;
  const Ended pool = ctl(daemon, {"drain", "--pool", "gpu"});
  EXPECT_EQ(pool.exit_code, 1);
  EXPECT_NE(pool.errors.find("no endpoint is in pool \"gpu\""), std::string::npos) << pool.errors;
  EXPECT_EQ(ctl(daemon, {"drain"}).exit_code, 2) << "whom?";
}

TEST(SystemPickctlChange, DrainWaitsUntilNothingIsInFlight) {
  Daemon daemon({.endpoints = 1});
  const Client client(daemon);
  const Result result;
  ASSERT_EQ(pick(client, Request(prompt_of(1024)), result), 0);

  const Ended given_up = ctl(daemon, {"drain", "e0", "--wait", "--timeout", "0.05"});
  EXPECT_EQ(given_up.exit_code, 1);
  EXPECT_NE(given_up.errors.find("still 1 requests in flight"), std::string::npos)
      << given_up.errors;

  Ended waited;
  std::thread waiter([&] { waited = ctl(daemon, {"drain", "e0", "--wait", "--json"}); });
  ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  waiter.join();
  EXPECT_EQ(waited.exit_code, 0) << waited.errors;
  EXPECT_EQ(json_of(waited).at("drained"), nlohmann::json({"e0"}));
  EXPECT_EQ(daemon.inflight(), 0U);
}

TEST(SystemPickctlChange, AddsUpdatesAndRemovesAnEndpoint) {
  Daemon daemon({.endpoints = 1});
  const Words add = {
      "add", "new",    "10.0.0.9:8000", "--pool",  "p2",     "--model",           "m", "--model",
      "m2",  "--role", "decode",        "--label", "zone=a", "--capacity-blocks", "77"};
  EXPECT_EQ(ctl(daemon, add).output, "added new\n");
  const auto seen = json_of(ctl(daemon, {"endpoints", "--json"})).at("endpoints").at(1);
  EXPECT_EQ(seen.at("address"), "10.0.0.9:8000");
  EXPECT_EQ(seen.at("pool"), "p2");
  EXPECT_EQ(seen.at("role"), "decode");
  EXPECT_EQ(seen.at("models"), nlohmann::json({"m", "m2"}));
  EXPECT_EQ(seen.at("capacity_blocks"), 77);
  EXPECT_EQ(ctl(daemon, {"endpoints", "--names"}).output, "e0\nnew\n");

  EXPECT_EQ(ctl(daemon, add).exit_code, 1) << "it is there already";
  EXPECT_EQ(ctl(daemon, {"add", "new", "10.0.0.10:8000", "--update"}).output, "updated new\n");
  EXPECT_EQ(ctl(daemon, {"add", "x", "10.0.0.9:1", "--label", "zone"}).exit_code, 2);
  EXPECT_EQ(ctl(daemon, {"add", "x", "10.0.0.9:1", "--capacity-blocks", "-1"}).exit_code, 2);
  const Ended nowhere = ctl(daemon, {"add", "x", "10.0.0.9"});
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_NE(nowhere.errors.find("needs a port"), std::string::npos) << nowhere.errors;
  EXPECT_EQ(ctl(daemon, {"remove", "new"}).output, "removed new\n");
  EXPECT_EQ(state_of(daemon, "new"), "gone");
}

// Who may name an endpoint must not have the shell of whoever completes its name.
TEST(SystemPickctlChange, CompletesNamesInBashWithoutRunningThem) {
  if (::access("/bin/bash", X_OK) != 0) GTEST_SKIP() << "there is no /bin/bash";
  Daemon daemon({.endpoints = 1});
  const std::string trap = daemon.directory() + "/trap";
  const std::string name = "$(touch${IFS}" + trap + ")`touch${IFS}" + trap + "`;* x";
  ASSERT_EQ(ctl(daemon, {"add", name, "10.0.0.9:1"}).exit_code, 0);
  std::ofstream(daemon.directory() + "/completion") << ctl(daemon, {"completion", "bash"}).output;
  const auto complete = [&](const std::string& typed) {
    // What is offered is read as a command line, as it would be once it was taken.
    const std::string script = daemon.directory() + "/script";
    std::ofstream(script) << "PATH=" PICKD_BINARY_DIR "/bin:$PATH PICKD_SOCKET=" << daemon.socket()
                          << "; export PATH PICKD_SOCKET; . " << daemon.directory()
                          << "/completion; COMP_LINE='pickctl drain " << typed
                          << "'; COMP_POINT=${#COMP_LINE}; _pickctl; "
                             "eval \"all=(${COMPREPLY[*]})\"\n"
                             "printf '%s\\n' \"${all[@]}\"\n";
    std::string output;
    FILE* shell = ::popen(("/bin/bash " + script).c_str(), "r");
    char bytes[4096];
    while (shell != nullptr && std::fgets(bytes, sizeof bytes, shell) != nullptr) output += bytes;
    EXPECT_EQ(shell == nullptr ? -1 : ::pclose(shell), 0);
    return output;
  };
  EXPECT_EQ(complete("e"), "e0\n");
  EXPECT_EQ(complete("\\$\\("), name + "\n");
  EXPECT_EQ(complete(""), "e0\n" + name + "\n");
  EXPECT_FALSE(std::filesystem::exists(trap));
}

TEST(SystemPickctlChange, IsRefusedToWhoIsNoAdmin) {
  if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
  Daemon daemon({.listen = {"admin_uids: [12345]", "mode: 0666"}});
  for (const Words& words : {Words{"drain", "e0"}, Words{"config", "show"}}) {
    const Ended ended = ctl(daemon, words);
    EXPECT_EQ(ended.exit_code, 1);
    EXPECT_NE(ended.errors.find("listen.admin_uids"), std::string::npos) << ended.errors;
  }
}

// ---- config -------------------------------------------------------------------------------------

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(SystemPickctlConfig, ShowsWhatIsInForceSoThatItLoadsAgain) {
  Daemon daemon({.endpoints = 600});  // more than a message holds
  const Ended shown = ctl(daemon, {"config", "show"});
  ASSERT_EQ(shown.exit_code, 0) << shown.errors;
  EXPECT_NE(shown.output.find("size_mib"), std::string::npos);
  EXPECT_NE(shown.output.find("name: \"e599\""), std::string::npos);
  const std::string copy = daemon.directory() + "/copy.yaml";
  std::ofstream(copy) << shown.output;
  EXPECT_EQ(run("pickd", {"--check-config", copy}).exit_code, 0);
  EXPECT_EQ(ctl(daemon, {"config", "diff", copy}).exit_code, 0);
}

TEST(SystemPickctlConfig, ComparesAFileWithWhatIsInForce) {
  Daemon daemon({.state = {"ttl: 10min"}});
  const Ended same = ctl(daemon, {"config", "diff"});
  EXPECT_EQ(same.exit_code, 0) << same.output << same.errors;
  EXPECT_NE(same.output.find("the daemon runs with this"), std::string::npos) << same.output;

  std::string text = read_file(daemon.config());
  const std::size_t ttl = text.find("ttl: 10min");
  ASSERT_NE(ttl, std::string::npos);
  text.replace(ttl, 10, "ttl: 20min");
  const std::string other = daemon.directory() + "/other.yaml";
  std::ofstream(other) << text << "scheduling: {profile: round-robin}\n";
  const Ended differs = ctl(daemon, {"config", "diff", other});
  EXPECT_EQ(differs.exit_code, 3) << differs.errors;
  EXPECT_NE(differs.output.find("state.ttl: 10min -> 20min  (needs a restart)"), std::string::npos)
      << differs.output;
  EXPECT_NE(differs.output.find("round-robin"), std::string::npos) << differs.output;
  EXPECT_NE(differs.output.find("(taken by a reload)"), std::string::npos) << differs.output;

  const auto json = json_of(ctl(daemon, {"config", "diff", other, "--json"}));
  ASSERT_EQ(json.at("differences").size(), 2U) << json;
  EXPECT_EQ(json.at("differences").at(0).at("key"), "state.ttl");
  EXPECT_EQ(json.at("differences").at(0).at("taken_by"), "restart");

  std::ofstream(other) << "state: {ttl: yesterday}\n";
  const Ended bad = ctl(daemon, {"config", "diff", other});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_NE(bad.errors.find("other.yaml:1"), std::string::npos) << bad.errors;
}

TEST(SystemPickctlConfig, ShowsEndpointsThatOnlyTheFileHas) {
  Daemon daemon({.endpoints = 2});
  std::string text = read_file(daemon.config());
  const std::size_t first = text.find("e1");
  ASSERT_NE(first, std::string::npos);
  text.replace(first, 2, "e7");
  const std::string other = daemon.directory() + "/other.yaml";
  std::ofstream(other) << text;
  const Ended differs = ctl(daemon, {"config", "diff", other});
  EXPECT_EQ(differs.exit_code, 3) << differs.errors;
  EXPECT_NE(differs.output.find("-   - name: \"e1\""), std::string::npos) << differs.output;
  EXPECT_NE(differs.output.find("+   - name: \"e7\""), std::string::npos) << differs.output;
}

// ---- top, doctor, completion --------------------------------------------------------------------

TEST(SystemPickctlTop, ShowsRatesInTextAndAsJson) {
  Daemon daemon;
  const Client client(daemon);
  const Result result;
  ASSERT_EQ(pick(client, Request(prompt_of(1024)), result), 0);
  const Ended text = ctl(daemon, {"top", "--times", "2", "--interval", "0.05"});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_NE(text.output.find("in flight 1"), std::string::npos) << text.output;
  const Ended json = ctl(daemon, {"top", "--times", "1", "--interval", "0.05", "--json"});
  EXPECT_EQ(json_of(json).at("reservations"), 1);
  EXPECT_EQ(json_of(json).at("endpoints").size(), 4U);
}

TEST(SystemPickctlDoctor, FindsWhatIsWrongAndExitsWithThree) {
  Daemon healthy;
  const Ended well = ctl(healthy, {"doctor"});
  EXPECT_EQ(well.exit_code, 0) << well.output;
  EXPECT_NE(well.output.find("ok       clock"), std::string::npos) << well.output;

  Daemon empty({.endpoints = 0, .arguments = {"--virtual-clock"}});
  const Ended ill = ctl(empty, {"doctor", "--json"});
  EXPECT_EQ(ill.exit_code, 3) << ill.errors;
  const auto findings = json_of(ill).at("findings");
  ASSERT_EQ(findings.size(), 2U) << findings;
  EXPECT_EQ(findings.at(0).at("severity"), "fault");
  EXPECT_EQ(findings.at(0).at("check"), "endpoints ready");
  EXPECT_EQ(findings.at(1).at("check"), "clock");

  const Ended gone = run("pickctl", {"--socket", healthy.directory() + "/no.sock", "doctor"});
  EXPECT_EQ(gone.exit_code, 1);
}

TEST(SystemPickctlCompletion, CompletesCommandsOptionsAndNamesInBash) {
  Daemon daemon({.endpoints = 2});
  const std::string script = daemon.directory() + "/completion.bash";
  const Ended made = run("pickctl", {"completion", "bash"});
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  // `pickctl` in the script is this build's, of this daemon.
  std::ofstream(script) << made.output << "pickctl() { '" << PICKD_BINARY_DIR
                        << "/bin/pickctl' --socket '" << daemon.socket()
                        << "' \"$@\"; }\n"
                           "try() { COMP_LINE=\"pickctl $*\"; COMP_POINT=${#COMP_LINE}; "
                           "_pickctl; echo \"${COMPREPLY[*]}\"; }\n"
                           "try dr\ntry config \"\"\ntry drain --wa\ntry drain \"\"\n"
                           "try --json endpoints --na\n";
  std::string said;
  std::FILE* bash = ::popen(("bash '" + script + "' 2>&1").c_str(), "r");
  ASSERT_NE(bash, nullptr);
  char line[4096];
  while (std::fgets(line, sizeof line, bash) != nullptr) said += line;
  ASSERT_EQ(::pclose(bash), 0) << said;
  EXPECT_EQ(said, "drain\nshow diff\n--wait\ne0 e1\n--names\n");
  for (const char* shell : {"zsh", "fish"}) {
    const Ended other = run("pickctl", {"completion", shell});
    EXPECT_EQ(other.exit_code, 0);
    EXPECT_NE(other.output.find("undrain"), std::string::npos) << shell;
  }
  EXPECT_EQ(run("pickctl", {"completion", "csh"}).exit_code, 2);
}

}  // namespace
}  // namespace pickd::systests
