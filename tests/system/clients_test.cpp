// Clients that come and go: killed, closed, forked, several at once. What they held is given back,
// and the others notice nothing.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

// Opens `count` picks and leaves them so.
int pick_many(const Client& client, int count) {
  const Result result;
  for (int at = 0; at < count; ++at) {
    if (pick(client, Request(prompt_of(600, static_cast<unsigned>(at))), result) != 0) return 1;
  }
  return 0;
}

TEST(SystemClients, ReleasesWhatAKilledClientHeldWhileOthersGoOn) {
  Daemon daemon;
  Forked doomed([&](Forked& self) {
    const Client client(daemon.socket());
    if (pick_many(client, 100) != 0) return 1;
    self.say('r');
    self.hear();
    return 0;
  });
  ASSERT_EQ(doomed.hear(), 'r');
  const Client other(daemon);
  const Result kept;
  ASSERT_EQ(pick(other, Request("kept"), kept), 0);
  ASSERT_EQ(daemon.inflight(), 101U);
  const std::uint32_t channels = daemon.status().channels;

  doomed.kill(SIGKILL);
  const auto killed = std::chrono::steady_clock::now();
  const Result result;
  int others = 0;
  EXPECT_TRUE(eventually([&] {
    if (pick(other, Request("goes on"), result) == 0 &&
        other.report(result.ticket(), PICKD_REPORT_DONE) == 0) {
      ++others;
    }
    return daemon.inflight() == 1;
  }));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - killed;
  std::printf(
      "100 reservations of a killed client were released after %.1f ms, %d picks of another "
      "meanwhile\n",
      took.count(), others);
  EXPECT_EQ(doomed.wait(), -SIGKILL);
  EXPECT_GT(others, 0);
  EXPECT_TRUE(eventually([&] { return daemon.status().channels < channels; }));
  const StatusView status = daemon.status();
  EXPECT_EQ(status.clients, 2U) << "this one that asks, and the other";
  EXPECT_EQ(status.channels, 1U);
  EXPECT_EQ(status.counters.at("clients_died"), 1U);
  EXPECT_EQ(status.counters.at("reservations_released_dead"), 100U);
  for (const auto& [name, endpoint] : daemon.endpoints()) {
    EXPECT_LE(endpoint.inflight_tokens, 1U) << name << ": only the prompt `kept` is open";
  }
  EXPECT_EQ(other.report(kept.ticket(), PICKD_REPORT_DONE), 0);
}

TEST(SystemClients, ReleasesWhatAKilledClientHeldThoughItsChildKeepsTheSocket) {
  Daemon daemon;
  Forked doomed([&](Forked& self) {
    const Client client(daemon.socket());
    if (pick_many(client, 10) != 0) return 1;
    if (::fork() == 0) {
      self.say('c');
      if (self.hear() == '?') self.say('!');
      ::_exit(0);
    }
    ::pause();
    return 0;
  });
  ASSERT_EQ(doomed.hear(), 'c');
  ASSERT_EQ(daemon.inflight(), 10U);
  doomed.kill(SIGKILL);
  EXPECT_EQ(doomed.wait(), -SIGKILL);
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; }));
  EXPECT_TRUE(eventually([&] { return daemon.status().clients == 1; }));
  doomed.say('?');
  EXPECT_EQ(doomed.hear(), '!') << "the child, and its copy of the socket, lived all the time";
}

TEST(SystemClients, CountsNoDeathWhenAClientClosesInOrder) {
  Daemon daemon;
  for (int count = 0; count < 20; ++count) {
    Client client(daemon);
    ASSERT_EQ(pick_many(client, 3), 0);
    client.close();
  }
  EXPECT_TRUE(eventually([&] { return daemon.status().clients == 1; }));
  const StatusView status = daemon.status();
  EXPECT_EQ(status.reservations, 0U);
  EXPECT_EQ(status.channels, 0U);
  EXPECT_EQ(status.counters.at("clients_connected"), 21U);
  EXPECT_EQ(status.counters.at("clients_died"), 0U);
}

TEST(SystemClients, CountsNoDeathWhenAProcessClosesAndEndsAtOnce) {
  Daemon daemon;
  for (int count = 0; count < 20; ++count) {
    Forked closes([&](Forked&) {
      const Client client(daemon.socket());
      return pick_many(client, 1);
    });
    EXPECT_EQ(closes.wait(), 0);
  }
  EXPECT_TRUE(eventually([&] { return daemon.status().clients == 1; }));
  EXPECT_EQ(daemon.counter("clients_died"), 0U);
  Forked just_ends([&](Forked&) {
    pickd_client* client = nullptr;
    pickd_options options = PICKD_OPTIONS_INIT;
    const std::string socket = daemon.socket();
    options.socket_path = socket.c_str();
    return -pickd_open(&options, &client);
  });
  EXPECT_EQ(just_ends.wait(), 0);
  EXPECT_TRUE(eventually([&] { return daemon.counter("clients_died") == 1; }));
}

TEST(SystemClients, ReleasesAtACloseThoughAChildKeepsTheSocket) {
  Daemon daemon;
  Forked closes([&](Forked& self) {
    Client client(daemon.socket());
    if (pick_many(client, 10) != 0) return 1;
    const pid_t child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
    self.say('o');
    self.hear();
    client.close();
    self.say('c');
    self.hear();
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return 0;
  });
  ASSERT_EQ(closes.hear(), 'o');
  EXPECT_EQ(daemon.inflight(), 10U);
  closes.say('1');
  ASSERT_EQ(closes.hear(), 'c');
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; }));
  closes.say('2');
  EXPECT_EQ(closes.wait(), 0);
  EXPECT_EQ(daemon.counter("clients_died"), 0U);
}

TEST(SystemClients, RefusesCallsInAForkedChildAndLeavesTheParentAlone) {
  Daemon daemon;
  Client client(daemon);
  const Result result;
  ASSERT_EQ(pick(client, Request("hello"), result), 0);
  pickd_queue* queue = nullptr;
  ASSERT_EQ(pickd_queue_open(client.get(), 16, &queue), 0);
  const Request queued("queued");
  ASSERT_EQ(pickd_queue_submit(queue, &queued.raw, 7, nullptr), 0);

  Forked child([&](Forked&) {
    const Result own;
    const Request request("hello");
    std::uint64_t data = 0;
    if (pick(client, request, own) != -EOWNERDEAD) return 1;
    if (pickd_result_status(own.get()) != -EOWNERDEAD) return 2;
    if (client.report(result.ticket(), PICKD_REPORT_DONE) != -EOWNERDEAD) return 3;
    if (client.add("new", "h:1") != -EOWNERDEAD) return 4;
    if (pickd_endpoint_remove(client.get(), "e0") != -EOWNERDEAD) return 5;
    if (pickd_daemon_info(client.get(), nullptr, nullptr, nullptr) != -EOWNERDEAD) return 6;
    if (pickd_queue_submit(queue, &request.raw, 1, nullptr) != -EOWNERDEAD) return 7;
    if (pickd_queue_poll(queue, own.get(), &data) != -EOWNERDEAD) return 8;
    if (pickd_queue_cancel(queue, result.ticket()) != -EOWNERDEAD) return 9;
    pickd_queue* other = nullptr;
    if (pickd_queue_open(client.get(), 16, &other) != -EOWNERDEAD) return 10;
    pickd_queue_close(queue);
    client.close();
    // A client of its own works.
    const Client fresh(daemon.socket());
    return pick(fresh, request, own);
  });
  EXPECT_EQ(child.wait(), 0);

  std::uint64_t data = 0;
  EXPECT_TRUE(eventually([&] { return pickd_queue_poll(queue, result.get(), &data) == 1; }));
  EXPECT_EQ(data, 7U);
  EXPECT_EQ(pickd_result_status(result.get()), 0);
  EXPECT_EQ(pick(client, Request("after"), result), 0);
  EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 2; })) << "the parent's two";
  EXPECT_EQ(daemon.endpoints().size(), 4U);
  pickd_queue_close(queue);
}

TEST(SystemClients, SharesOneIndexBetweenProcesses) {
  // Field case 100: what one gateway learned, all know.
  Daemon daemon;
  const Client mine(daemon);
  const auto run_prompts = [](const Client& client, unsigned seed, std::uint32_t expected_match,
                              std::map<unsigned, std::string>& placed) {
    const Result result;
    for (unsigned at = 0; at < 20; ++at) {
      if (pick(client, Request(prompt_of(2048, seed + at)), result) != 0) return 1;
      if (result.match_tokens() != expected_match) return 2;
      placed[at] = result.name();
      if (client.report(result.ticket(), PICKD_REPORT_DONE) != 0) return 3;
    }
    return 0;
  };
  std::map<unsigned, std::string> here;
  ASSERT_EQ(run_prompts(mine, 100, 0, here), 0);
  Forked other([&](Forked& self) {
    const Client client(daemon.socket());
    std::map<unsigned, std::string> there;
    if (const int code = run_prompts(client, 100, 512, there); code != 0) return code;
    if (there != here) return 4;
    if (const int code = run_prompts(client, 500, 0, there); code != 0) return 10 + code;
    self.say('r');
    self.hear();
    return 0;
  });
  ASSERT_EQ(other.hear(), 'r');
  EXPECT_EQ(run_prompts(mine, 500, 512, here), 0) << "the other way round, too";
  other.say('x');
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(daemon.inflight(), 0U);
}

TEST(SystemClients, AccountsExactlyForThreadsThatShareAClient) {
  constexpr int kThreads = 16;
  constexpr std::uint64_t kPicks = 2000;
  Daemon daemon({.endpoints = 8});
  Client client(daemon);
  struct Sums {
    std::uint64_t blocks = 0;
    std::uint64_t match_blocks = 0;
    int failures = 0;
  };
  std::vector<Sums> sums(kThreads);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      Sums& own = sums[static_cast<std::size_t>(thread)];
      const Result result;
      Request request;
      for (std::uint64_t at = 0; at < kPicks; ++at) {
        const std::size_t blocks = 1 + at % 5;
        request.text(prompt_of(blocks * 256, static_cast<unsigned>(at % 50)));
        if (pick(client, request, result) != 0) {
          ++own.failures;
          continue;
        }
        own.blocks += blocks;
        own.match_blocks += result.match_tokens() / 64;
        pickd_report_info done = PICKD_REPORT_INIT;
        done.ticket = result.ticket();
        done.kind = PICKD_REPORT_DONE;
        done.output_tokens = 3;
        if (pickd_report(client.get(), &done, kGenerousUs) != 0) ++own.failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Sums all;
  for (const Sums& own : sums) {
    all.blocks += own.blocks;
    all.match_blocks += own.match_blocks;
    all.failures += own.failures;
  }
  EXPECT_EQ(all.failures, 0);
  const StatusView status = daemon.status();
  EXPECT_EQ(status.counters.at("picks"), kThreads * kPicks);
  EXPECT_EQ(status.counters.at("requests_done"), kThreads * kPicks);
  EXPECT_EQ(status.counters.at("reports"), kThreads * kPicks);
  EXPECT_EQ(status.counters.at("output_tokens"), kThreads * kPicks * 3);
  EXPECT_EQ(status.counters.at("prompt_blocks"), all.blocks);
  EXPECT_EQ(status.counters.at("match_blocks"), all.match_blocks);
  for (const char* name :
       {"picks_refused", "picks_cancelled", "reports_unknown", "submissions_malformed",
        "channels_broken", "completions_dropped", "reservations_full", "plugin_failures"}) {
    EXPECT_EQ(status.counters.at(name), 0U) << name;
  }
  EXPECT_EQ(status.reservations, 0U);
  EXPECT_LE(status.channels, 16U);
  for (const auto& [name, endpoint] : daemon.endpoints()) {
    EXPECT_EQ(endpoint.inflight_requests, 0U) << name;
    EXPECT_EQ(endpoint.inflight_tokens, 0U) << name;
  }
}

// How many of eight threads that share the client had all of their picks and reports served.
int threads_of_8_that_pick(const Client& client) {
  std::vector<std::thread> threads;
  std::atomic<int> done{0};
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      const Result result;
      for (int at = 0; at < 50; ++at) {
        if (pick(client, Request("hello"), result) != 0) return;
        if (client.report(result.ticket(), PICKD_REPORT_DONE) != 0) return;
      }
      ++done;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return done.load();
}

TEST(SystemClients, WaitsForAChannelWhenThereAreFewerThanThreads) {
  Daemon daemon;
  const Client client(daemon, 2);
  EXPECT_EQ(threads_of_8_that_pick(client), 8);
  EXPECT_LE(daemon.status().channels, 2U);
}

TEST(SystemClients, MakesDoWithTheChannelsThatTheDaemonGrants) {
  Daemon daemon({.listen = {"channels_per_client_max: 2"}});
  const Client client(daemon, 8);
  EXPECT_EQ(threads_of_8_that_pick(client), 8) << client.last_error();
  EXPECT_LE(daemon.status().channels, 2U);
}

}  // namespace
}  // namespace pickd::systests
