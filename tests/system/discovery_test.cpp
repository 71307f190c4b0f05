// Discovery in the real daemon: sets that change under picks, and names that two sources have.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "tests/net/dns_server.hpp"
#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

using nettests::DnsServer;

// A file with endpoints of these names, each with an address of its own.
std::string file_of(const std::vector<std::string>& names) {
  std::string out = names.empty() ? "endpoints: []\n" : "endpoints:\n";
  for (const std::string& name : names)
    out += "  - {name: " + name + ", address: \"" + name + ".example:8000\"}\n";
  return out;
}

class SystemDiscovery : public ::testing::Test {
 protected:
  SystemDiscovery() {
    auto made = tools::TempDir::make("pickd-discovery");
    if (!made) throw std::runtime_error(made.error().text);
    directory_ = std::make_unique<tools::TempDir>(std::move(*made));
  }
  std::string path() const { return directory_->path() + "/endpoints.yaml"; }
  void replace(const std::string& text) const {
    std::ofstream(path() + ".new") << text;
    std::filesystem::rename(path() + ".new", path());
  }
  std::string from_file(const std::string& more = "") const {
    return "pools:\n  - name: found\n    discovery: {file: " + path() + "}\n" + more;
  }

  std::unique_ptr<tools::TempDir> directory_;
};

std::set<std::string> names_of(Daemon& daemon) {
  std::set<std::string> names;
  for (const auto& [name, view] : daemon.endpoints()) names.insert(name);
  return names;
}
using Names = std::set<std::string>;

TEST_F(SystemDiscovery, ReplacesAFilesEndpointsUnderPicksWithoutAFailedOne) {
  replace(file_of({"a", "b"}));
  Daemon daemon({.rest = from_file(), .endpoints = 0});
  ASSERT_TRUE(eventually([&] { return names_of(daemon) == Names{"a", "b"}; }));
  std::atomic<bool> stop{false};
  std::atomic<int> picks{0};
  std::atomic<int> failures{0};
  std::thread picker([&] {
    const Client client(daemon.socket());
    const Result result;
    while (!stop) {
      if (pick(client, Request("hello"), result) != 0) ++failures;
      client.report(result.ticket(), PICKD_REPORT_DONE);
      ++picks;
    }
  });
  for (int round = 0; round < 10; ++round) {
    const bool even = round % 2 == 0;
    replace(even ? file_of({"b", "c"}) : file_of({"a", "b"}));
    EXPECT_TRUE(eventually([&] {
      return names_of(daemon) == (even ? Names{"b", "c"} : Names{"a", "b"});
    }));
    const int from = picks;
    EXPECT_TRUE(eventually([&] { return picks > from + 10; }));
  }
  stop = true;
  picker.join();
  EXPECT_EQ(failures, 0) << "of " << picks;
}

TEST_F(SystemDiscovery, LeavesAnEndpointOfTheOperatorsFileAlone) {
  replace(file_of({"e0", "new"}));
  Daemon daemon({.rest = from_file(), .endpoints = 2});
  ASSERT_TRUE(eventually([&] { return names_of(daemon) == Names{"e0", "e1", "new"}; }));
  EXPECT_EQ(daemon.endpoints().at("e0").address, "10.0.0.0:8000") << "the operator's word holds";
  EXPECT_TRUE(eventually([&] {
    return daemon.log().find("endpoint \"e0\": file has one of this name, which stays") !=
           std::string::npos;
  }));
  EXPECT_EQ(daemon.counter("discovery_left_out"), 1U);
}

TEST_F(SystemDiscovery, KeepsItsSetWhenTheFileIsBrokenAndSaysSoOnce) {
  replace(file_of({"a"}));
  Daemon daemon({.rest = from_file(), .endpoints = 0});
  ASSERT_TRUE(eventually([&] { return names_of(daemon) == Names{"a"}; }));
  replace("endpoints:\n  - {name: b, adress: \"h:1\"}\n");
  ASSERT_TRUE(eventually([&] { return daemon.counter("discovery_troubles") == 1; }));
  EXPECT_EQ(names_of(daemon), Names{"a"});
  EXPECT_NE(daemon.log().find("endpoints.yaml:2: endpoints[0].adress: unknown key"),
            std::string::npos);
  replace(file_of({"c"}));
  EXPECT_TRUE(eventually([&] { return names_of(daemon) == Names{"c"}; }));
}

TEST_F(SystemDiscovery, GoesOnWithWhatItKnewAfterARestartAndForgetsADiscoveryThatIsGone) {
  replace(file_of({"a", "b"}));
  Daemon daemon({.rest = from_file(), .endpoints = 0});
  ASSERT_TRUE(eventually([&] { return names_of(daemon) == Names{"a", "b"}; }));
  const auto before = daemon.endpoints();
  daemon.stop();
  daemon.start();
  EXPECT_EQ(daemon.endpoints(), before) << "the same ids and generations: prefixes stay";
  daemon.stop();
  std::ifstream in(daemon.config());
  std::string config((std::istreambuf_iterator<char>(in)), {});
  in.close();
  config.resize(config.find("pools:"));
  std::ofstream(daemon.config()) << config;
  daemon.start();
  EXPECT_EQ(names_of(daemon), Names{});
}

TEST_F(SystemDiscovery, ExpandsRanksOfStaticAndOfFoundEndpoints) {
  replace(file_of({"f"}));
  Daemon daemon({.rest = "pools:\n  - name: found\n    ranks: {ports: [8000, 8001]}\n"
                         "    endpoints: [{name: s, address: \"10.0.0.1:1\"}]\n"
                         "    discovery: {file: " +
                         path() + "}\n",
                 .endpoints = 0});
  ASSERT_TRUE(eventually([&] {
    return names_of(daemon) == Names{"s", "s-rank-1", "f", "f-rank-1"};
  }));
  EXPECT_EQ(daemon.endpoints().at("s-rank-1").address, "10.0.0.1:8001");
}

TEST_F(SystemDiscovery, FindsEndpointsByDns) {
  DnsServer dns;
  dns.set("vllm.example", nettests::kTypeA,
          {.records = {DnsServer::a("10.0.0.1", 0), DnsServer::a("10.0.0.2", 0)}});
  Daemon daemon({.rest = "pools:\n  - name: found\n    discovery:\n      dns: {name: vllm.example, "
                         "port: 8000, servers: [\"" +
                         dns.address() + "\"], ttl_min: 100ms}\n",
                 .endpoints = 0});
  ASSERT_TRUE(eventually([&] {
    return names_of(daemon) == Names{"10.0.0.1:8000", "10.0.0.2:8000"};
  }));
  dns.set("vllm.example", nettests::kTypeA, {.rcode = nettests::kServfail});
  ASSERT_TRUE(eventually([&] { return daemon.counter("discovery_troubles") == 1; }));
  EXPECT_EQ(names_of(daemon).size(), 2U);
  dns.set("vllm.example", nettests::kTypeA, {.records = {DnsServer::a("10.0.0.3", 0)}});
  EXPECT_TRUE(eventually([&] { return names_of(daemon) == Names{"10.0.0.3:8000"}; }));
}

TEST_F(SystemDiscovery, RefusesToStartWithASourceThatCannotBe) {
  const auto ended = [&](const std::string& discovery) {
    std::ofstream(path()) << "listen: {socket: " << directory_->path()
                          << "/s}\nstate: {path: " << directory_->path()
                          << "/state, size_mib: 16}\npools:\n  - name: p\n    "
                          << "discovery: " << discovery << "\n";
    return run("pickd", {"--config", path()});
  };
  const Ended dns = ended("{dns: {name: n, port: 1, servers: [nonsense]}}");
  EXPECT_EQ(dns.exit_code, 1);
  EXPECT_NE(dns.errors.find("such as 10.96.0.10:53"), std::string::npos) << dns.errors;
}

}  // namespace
}  // namespace pickd::systests
