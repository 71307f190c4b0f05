// pickctl against a real daemon: text and JSON of each command, and its exit codes.
#include <algorithm>
#include <csignal>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

TEST(SystemPickctl, ShowsTheDaemonInTextAndAsJson) {
  Daemon daemon;
  const Client client(daemon);
  const Result result;
  ASSERT_EQ(pick(client, Request(prompt_of(1024)), result), 0);
  const Ended text = run("pickctl", {"--socket", daemon.socket(), "status"});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_NE(text.output.find("pid " + std::to_string(daemon.pid())), std::string::npos)
      << text.output;
  EXPECT_NE(text.output.find("pickd_picks_total"), std::string::npos) << text.output;

  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--socket", daemon.socket(), "--json", "status"},
        {"status", "--json", "--socket", daemon.socket()}}) {
    const Ended json = run("pickctl", arguments);
    ASSERT_EQ(json.exit_code, 0) << json.errors;
    const auto status = nlohmann::json::parse(json.output);
    EXPECT_EQ(status.at("pid"), daemon.pid());
    EXPECT_EQ(status.at("version"), pickd_version());
    EXPECT_EQ(status.at("endpoints"), 4);
    EXPECT_EQ(status.at("endpoints_ready"), 4);
    EXPECT_EQ(status.at("reservations"), 1);
    EXPECT_EQ(status.at("counters").at("pickd_picks_total"), 1);
    EXPECT_EQ(status.at("counters").at("pickd_prompt_blocks_total"), 4);
  }
}

TEST(SystemPickctl, ShowsTheEndpointsInTextAndAsJson) {
  Daemon daemon({.endpoints = 150});
  const Client client(daemon);
  pickd_endpoint told = PICKD_ENDPOINT_INIT;
  told.name = "e7";
  told.address = "10.0.0.7:8000";
  told.waiting = 3;
  told.running = 0;
  told.kv_use_ppm = 250'000;
  ASSERT_EQ(pickd_endpoint_update(client.get(), &told), 0);
  ASSERT_EQ(pickd_endpoint_drain(client.get(), "e8", 1), 0);

  const Ended text = run("pickctl", {"--socket", daemon.socket(), "endpoints"});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_EQ(std::count(text.output.begin(), text.output.end(), '\n'), 151) << "a line each";
  EXPECT_NE(text.output.find("10.0.0.149:8000"), std::string::npos);
  EXPECT_NE(text.output.find("25.0%"), std::string::npos);

  const Ended json = run("pickctl", {"--socket", daemon.socket(), "--json", "endpoints"});
  ASSERT_EQ(json.exit_code, 0) << json.errors;
  const auto endpoints = nlohmann::json::parse(json.output).at("endpoints");
  ASSERT_EQ(endpoints.size(), 150U);
  EXPECT_EQ(endpoints[7].at("name"), "e7");
  EXPECT_EQ(endpoints[7].at("waiting"), 3);
  EXPECT_EQ(endpoints[7].at("running"), 0);
  EXPECT_EQ(endpoints[7].at("kv_use_ppm"), 250'000);
  EXPECT_EQ(endpoints[7].at("state"), "ready");
  EXPECT_EQ(endpoints[8].at("state"), "draining");
  EXPECT_TRUE(endpoints[8].at("waiting").is_null()) << "unknown is neither 0 nor a number";
  EXPECT_EQ(endpoints[8].at("source"), "file");
}

TEST(SystemPickctl, SaysWhyAnEndpointIsNotReadyAndHowOldItsLoadIs) {
  Daemon daemon({.endpoints = 3});
  const Client client(daemon);
  pickd_endpoint told = PICKD_ENDPOINT_INIT;
  told.name = "e1";
  told.address = "10.0.0.1:8000";
  told.waiting = 3;
  ASSERT_EQ(pickd_endpoint_update(client.get(), &told), 0);
  ASSERT_EQ(pickd_endpoint_drain(client.get(), "e2", 1), 0);

  const Ended text = run("pickctl", {"--socket", daemon.socket(), "endpoints"});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_NE(text.output.find("WHY NOT READY"), std::string::npos) << text.output;
  EXPECT_NE(text.output.find("it drains"), std::string::npos) << text.output;

  const Ended json = run("pickctl", {"--socket", daemon.socket(), "--json", "endpoints"});
  ASSERT_EQ(json.exit_code, 0) << json.errors;
  const auto endpoints = nlohmann::json::parse(json.output).at("endpoints");
  EXPECT_TRUE(endpoints[0].at("load_age_ms").is_null()) << "nobody told a load";
  EXPECT_EQ(endpoints[0].at("why_not_ready"), "");
  EXPECT_TRUE(endpoints[1].at("load_age_ms").is_number());
  EXPECT_NE(endpoints[2].at("why_not_ready"), "");
  for (const auto& endpoint : endpoints) {
    EXPECT_EQ(endpoint.at("scrape_failures"), 0);
    EXPECT_EQ(endpoint.at("engine"), "");
    EXPECT_TRUE(endpoint.at("rank").is_null());
  }
}

TEST(SystemPickctl, ShowsTheEndpointsAgainAndAgain) {
  Daemon daemon({.endpoints = 2});
  const std::vector<std::string> common = {"--socket",   daemon.socket(), "endpoints", "--watch",
                                           "--interval", "0.05",          "--times",   "3"};
  const Ended text = run("pickctl", common);
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_EQ(std::count(text.output.begin(), text.output.end(), '\n'), 3 * 3 + 2)
      << "three tables with empty lines between:\n"
      << text.output;
  std::vector<std::string> with_json = common;
  with_json.emplace_back("--json");
  std::istringstream lines(run("pickctl", with_json).output);
  std::string line;
  int objects = 0;
  for (; std::getline(lines, line); ++objects)
    EXPECT_EQ(nlohmann::json::parse(line).at("endpoints").size(), 2U);
  EXPECT_EQ(objects, 3);
}

TEST(SystemPickctl, GoesOnWatchingWhenTheDaemonRestarts) {
  Daemon daemon({.endpoints = 2});
  tools::Child::Options piped;
  piped.error_file = daemon.directory() + "/watch-errors";
  auto watching = tools::Child::start({PICKD_BINARY_DIR "/bin/pickctl", "--socket", daemon.socket(),
                                       "--json", "endpoints", "--watch", "--interval", "0.05"},
                                      piped);
  ASSERT_TRUE(watching.ok()) << watching.error().text;
  ASSERT_TRUE(watching->wait_for_line("{", kGenerous).ok());
  daemon.stop();
  ASSERT_TRUE(tools::wait_for_text(*watching, piped.error_file, "trying again", kGenerous).ok());
  daemon.start();
  // What it wrote before the stop may still wait in the pipe: the new daemon's client is the proof.
  EXPECT_TRUE(eventually([&] { return daemon.status().clients == 2; }));
  EXPECT_TRUE(watching->running());
}

TEST(SystemPickctl, ShowsTheStoreInTextAndAsJson) {
  Settings settings;
  settings.state = {"capacity_tokens: 16384"};
  settings.endpoints = 1;
  Daemon daemon(settings);
  const Client client(daemon);
  const Result result;
  const auto store = [&] {
    const Ended json = run("pickctl", {"--socket", daemon.socket(), "--json", "store"});
    EXPECT_EQ(json.exit_code, 0) << json.errors;
    return nlohmann::json::parse(json.output);
  };
  const auto empty = store();
  EXPECT_EQ(empty.at("live_words"), 0);
  EXPECT_EQ(empty.at("replaced_words"), 0);
  EXPECT_EQ(empty.at("state_bytes"), 32 << 20);
  EXPECT_EQ(empty.at("block_tokens"), 64);
  EXPECT_EQ(empty.at("endpoints").at(0).at("capacity_blocks"), 256);

  // Prompts of 16 blocks that share nothing, until there is more than its capacity. They must not
  // come all in one tick: what is newest is never cut.
  nlohmann::json full;
  int prompts = 0;
  ASSERT_TRUE(eventually([&] {
    EXPECT_EQ(pick(client, Request(std::to_string(++prompts) + prompt_of(4000)), result), 0);
    full = store();
    const auto& endpoint = full.at("endpoints").at(0);
    return endpoint.at("horizon_rule") == "capacity" && endpoint.at("live_blocks") <= 256;
  })) << full.dump(2);
  const auto& endpoint = full.at("endpoints").at(0);
  EXPECT_EQ(endpoint.at("name"), "e0");
  EXPECT_GT(endpoint.at("live_blocks"), 0);
  EXPECT_GT(full.at("live_words"), 0);
  EXPECT_GT(full.at("load"), 0.0);
  EXPECT_LT(full.at("load"), 0.01);
  const Ended text = run("pickctl", {"--socket", daemon.socket(), "store"});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  for (const char* word : {"began", "size", "live", "dead", "hot blocks", "oldest", "replaced",
                           "global cut", "e0", "256", "capacity"}) {
    EXPECT_NE(text.output.find(word), std::string::npos) << word << " in\n" << text.output;
  }

  // A restart keeps what it had, and says that the horizon is not of its own making.
  daemon.signal(SIGKILL);
  daemon.reap();
  daemon.start();
  const auto warm = store();
  EXPECT_EQ(warm.at("started"), "warm");
  ASSERT_TRUE(eventually([&] { return store().at("endpoints").at(0).at("live_blocks") > 0; }));
}

TEST(SystemPickctl, ExitsWith1WhenNobodyListens) {
  for (const char* command : {"status", "endpoints"}) {
    const Ended nobody = run("pickctl", {"--socket", "/tmp/pickd-nobody-listens-here", command});
    EXPECT_EQ(nobody.exit_code, 1);
    EXPECT_EQ(nobody.output, "");
    EXPECT_NE(nobody.errors.find("/tmp/pickd-nobody-listens-here"), std::string::npos)
        << nobody.errors;
  }
}

TEST(SystemPickctl, ExitsWith2ForBadArguments) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                    {"nonsense"},
                                                    {"status", "--nonsense"},
                                                    {"--socket"},
                                                    {"endpoints", "--interval", "1"},
                                                    {"endpoints", "--watch", "--interval", "0"},
                                                    {"status", "--watch"}}) {
    const Ended bad = run("pickctl", arguments);
    EXPECT_EQ(bad.exit_code, 2);
    EXPECT_EQ(bad.output, "");
    EXPECT_NE(bad.errors, "");
  }
  EXPECT_EQ(run("pickctl", {"--help"}).exit_code, 0);
}

TEST(SystemPickctl, IsNoDeathOfAClient) {
  Daemon daemon;
  for (int count = 0; count < 5; ++count) {
    EXPECT_EQ(run("pickctl", {"--socket", daemon.socket(), "status"}).exit_code, 0);
  }
  EXPECT_TRUE(eventually([&] { return daemon.status().clients == 1; }));
  EXPECT_EQ(daemon.counter("clients_died"), 0U);
  EXPECT_EQ(daemon.counter("clients_connected"), 6U);
}

}  // namespace
}  // namespace pickd::systests
