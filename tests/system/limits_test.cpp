// Limits on what one user may take, and that they hold for that user alone.
#include <sys/stat.h>
#include <unistd.h>

#include <grp.h>
#include <cerrno>
#include <csignal>

#include "tests/system/raw_control.hpp"

namespace pickd::systests {
namespace {

constexpr uid_t kNobody = 65534;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool become_nobody() {
  return ::setgroups(0, nullptr) == 0 && ::setgid(kNobody) == 0 && ::setuid(kNobody) == 0;
}

// A pick of `blocks` prefix blocks that nothing is reserved for.
int look(const Client& client, std::size_t blocks, unsigned seed, const Result& result) {
  Request request(prompt_of(blocks * 256, seed));
  return pick(client, request, result);
}

TEST(SystemLimits, LetsAUserSendSoManyMessagesASecondOnAllItsChannels) {
  Daemon daemon({.listen = {"messages_per_s: 20"}});
  const Client one(daemon);
  const Client other(daemon);
  const Result result;
  std::vector<pickd_ticket> tickets;
  const auto start = std::chrono::steady_clock::now();
  int refused = 0;
  for (int at = 0; at < 200; ++at) {
    const Client& client = at % 2 == 0 ? one : other;
    const int status = pick(client, Request("hello"), result);
    if (status == 0) tickets.push_back(result.ticket());
    if (status == -EAGAIN) ++refused;
    ASSERT_TRUE(status == 0 || status == -EAGAIN) << status;
  }
  // A second's worth at once, then the rate; one more that overdraws.
  EXPECT_GE(tickets.size(), 20U);
  EXPECT_LE(static_cast<double>(tickets.size()), 20 * (1 + seconds_since(start) + 0.1) + 1);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(daemon.counter("picks_limited"), static_cast<std::uint64_t>(refused));
  EXPECT_EQ(daemon.inflight(), tickets.size()) << "what was refused holds nothing";
  for (const pickd_ticket ticket : tickets) {
    EXPECT_EQ(one.report(ticket, PICKD_REPORT_DONE), 0) << "a report is never refused";
  }
  EXPECT_EQ(daemon.inflight(), 0U);
  EXPECT_TRUE(eventually([&] { return pick(other, Request("hello"), result) == 0; }))
      << "who waits is served again";
}

TEST(SystemLimits, SaysInAQueueTooThatAUserIsOverItsLimit) {
  Daemon daemon({.listen = {"messages_per_s: 2"}});
  const Client client(daemon);
  pickd_queue* queue = nullptr;
  ASSERT_EQ(pickd_queue_open(client.get(), 64, &queue), 0);
  const Request request("hello");
  for (std::uint64_t at = 0; at < 64; ++at) {
    ASSERT_EQ(pickd_queue_submit(queue, &request.raw, at, nullptr), 0) << "the ring has room";
  }
  int refused = 0;
  const Result result;
  for (std::uint64_t at = 0; at < 64; ++at) {
    std::uint64_t data = 0;
    ASSERT_TRUE(eventually([&] { return pickd_queue_poll(queue, result.get(), &data) == 1; }));
    EXPECT_EQ(data, at);
    if (pickd_result_status(result.get()) == -EAGAIN) ++refused;
  }
  EXPECT_GT(refused, 0);
  EXPECT_NE(std::string(pickd_strerror(-EAGAIN)).find("limit"), std::string::npos);
  pickd_queue_close(queue);
}

TEST(SystemLimits, AUserThatAsksWithoutEndWaitsAndNobodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
  Daemon daemon({.listen = {"mode: \"0666\""}});
  ASSERT_EQ(::chmod(daemon.directory().c_str(), 0755), 0);
  Forked flood([&](Forked& self) {
    if (!become_nobody()) return 1;
    std::vector<std::unique_ptr<RawControl>> connections;
    for (int at = 0; at < 32; ++at) {
      connections.push_back(std::make_unique<RawControl>(daemon));
      if (!connections.back()->hello()) return 2;
    }
    self.say('o');
    // Asks for ever, and reads so that its answers find room.
    for (;;) {
      for (const auto& connection : connections) {
        if (!connection->ask([](flatbuffers::FlatBufferBuilder& builder) {
              return fb::CreateAskStatus(builder);
            }))
          return 3;
      }
    }
  });
  ASSERT_EQ(flood.hear(), 'o');
  EXPECT_TRUE(eventually([&] {
    EXPECT_GE(daemon.status().clients, 33U) << "others are answered all the while";
    return daemon.log().find("they wait") != std::string::npos;
  }));
  const Client client(daemon);
  const Result result;
  EXPECT_EQ(pick(client, Request("hello"), result), 0);
  flood.kill(SIGKILL);
  flood.wait();
  EXPECT_TRUE(eventually([&] { return daemon.status().clients == 2; })) << "its end is noticed";
}

TEST(SystemLimits, LeavesOthersTheirPrefixesWhenAUserBringsNewOnesWithoutEnd) {
  if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
  Daemon daemon({.listen = {"mode: \"0666\""}});
  ASSERT_EQ(::chmod(daemon.directory().c_str(), 0755), 0);
  Forked flood([&](Forked& self) {
    if (!become_nobody()) return 1;
    const Client client(daemon);
    self.say('o');
    if (self.hear() != 'g') return 2;
    const Result result;
    // Four engines of the default capacity hold 31,250 blocks.
    for (unsigned seed = 0; seed < 100; ++seed) {
      if (look(client, 2000, 1000 + seed, result) != 0) return 3;
      if (client.report(result.ticket(), PICKD_REPORT_CANCELLED) != 0) return 4;
    }
    return 0;
  });
  ASSERT_EQ(flood.hear(), 'o');
  const Client client(daemon);
  const Result result;
  constexpr unsigned kPrompts = 20;
  for (unsigned seed = 0; seed < kPrompts; ++seed) {
    ASSERT_EQ(look(client, 8, seed, result), 0);
    ASSERT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  }
  flood.say('g');
  EXPECT_EQ(flood.wait(), 0) << "it is answered, every time";
  EXPECT_GT(daemon.counter("prefix_left_out"), 100'000U);
  unsigned known = 0;
  for (unsigned seed = 0; seed < kPrompts; ++seed) {
    Request again(prompt_of(8 * 256, seed));
    again.raw.flags |= PICKD_REQUEST_DRY_RUN;
    ASSERT_EQ(pick(client, again, result), 0);
    bool held = false;
    for (std::size_t at = 0; at < result.count(); ++at) held |= result.match_tokens(at) == 8 * 64;
    known += held ? 1 : 0;
  }
  // What came before the limit held may all have gone to one endpoint.
  EXPECT_GE(known, kPrompts / 2);
}

TEST(SystemLimits, KeepsAUserFromFlushingTheTable) {
  Daemon daemon({.listen = {"blocks_per_s: 1000"}});
  const Client client(daemon);
  const Result result;
  const auto start = std::chrono::steady_clock::now();
  int taken = 0;
  for (unsigned seed = 0; seed < 300; ++seed) taken += look(client, 500, seed, result) == 0 ? 1 : 0;
  const double allowed = 1000 * (1 + seconds_since(start) + 0.1) + 500;
  EXPECT_GE(taken, 2);
  EXPECT_LE(taken * 500, allowed);
  EXPECT_LE(static_cast<double>(daemon.counter("stamped_blocks")), allowed);
  EXPECT_EQ(daemon.counter("picks_limited"), static_cast<std::uint64_t>(300 - taken));
  // Without blocks there is nothing to count.
  EXPECT_EQ(pick(client, Request(), result), 0);
}

TEST(SystemLimits, GivesAPickOfMoreThanASecondsWorthItsTurn) {
  Daemon daemon({.listen = {"blocks_per_s: 100"}});
  const Client client(daemon);
  const Result result;
  EXPECT_EQ(look(client, 2000, 1, result), 0) << "overdrawn, and waited for afterwards";
  EXPECT_EQ(look(client, 2000, 2, result), -EAGAIN);
}

TEST(SystemLimits, LeavesOtherUsersTheirOwnAllowance) {
  if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
  Daemon daemon({.listen = {"mode: \"0666\"", "blocks_per_s: 1000"}});
  ASSERT_EQ(::chmod(daemon.directory().c_str(), 0755), 0);
  Forked greedy([&](Forked& self) {
    if (!become_nobody()) return 1;
    const Client own(daemon.socket());
    const Result result;
    unsigned seed = 0;
    while (look(own, 1000, ++seed, result) == 0) {
    }
    self.say('f');
    self.hear();
    return 0;
  });
  ASSERT_EQ(greedy.hear(), 'f');
  const Client client(daemon);
  const Result result;
  EXPECT_EQ(look(client, 500, 1, result), 0);
  greedy.say('e');
  EXPECT_EQ(greedy.wait(), 0);
}

TEST(SystemLimits, RefusesMorePicksInFlightThanAUserMayHave) {
  Daemon daemon({.rest = "reservations: {per_uid_max: 10}"});
  const Client client(daemon);
  const Result result;
  std::vector<pickd_ticket> tickets;
  for (int at = 0; at < 10; ++at) {
    ASSERT_EQ(pick(client, Request("hello"), result), 0);
    tickets.push_back(result.ticket());
  }
  EXPECT_EQ(pick(client, Request("hello"), result), -EAGAIN);
  Request dry("hello");
  dry.raw.flags = PICKD_REQUEST_DRY_RUN;
  EXPECT_EQ(pick(client, dry, result), 0) << "it reserves nothing";
  EXPECT_EQ(client.report(tickets[3], PICKD_REPORT_DONE), 0);
  EXPECT_EQ(pick(client, Request("hello"), result), 0) << "one was given back";
  EXPECT_EQ(pick(client, Request("hello"), result), -EAGAIN);
  EXPECT_EQ(daemon.counter("picks_limited"), 2U);
  EXPECT_EQ(daemon.inflight(), 10U);
}

TEST(SystemLimits, CountsWhatAUserHoldsAgainAfterARestart) {
  Daemon daemon({.rest = "reservations: {per_uid_max: 3}"});
  const Result result;
  Forked keeper([&](Forked& self) {
    const Client own(daemon.socket());
    for (int at = 0; at < 3; ++at) {
      if (pick(own, Request("hello"), result) != 0) return 1;
    }
    self.say('p');
    self.hear();
    return 0;
  });
  ASSERT_EQ(keeper.hear(), 'p');
  daemon.signal(SIGKILL);
  daemon.reap();
  daemon.start();
  ASSERT_EQ(daemon.inflight(), 3U) << "a warm restart";
  const Client client(daemon);
  EXPECT_EQ(pick(client, Request("hello"), result), -EAGAIN);
  keeper.say('e');
  keeper.wait();
}

TEST(SystemLimits, LeavesOtherUsersSlotsForTheirReservations) {
  if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
  Daemon daemon({.listen = {"mode: \"0666\""}, .rest = "reservations: {max: 64}"});
  ASSERT_EQ(::chmod(daemon.directory().c_str(), 0755), 0);
  Forked greedy([&](Forked& self) {
    if (!become_nobody()) return 1;
    const Client own(daemon.socket());
    const Result result;
    for (int at = 0; at < 100; ++at) {
      if (pick(own, Request("hello"), result) != 0) return 2;
    }
    self.say('f');
    self.hear();
    return 0;
  });
  ASSERT_EQ(greedy.hear(), 'f');
  EXPECT_EQ(daemon.inflight(), 48U) << "three quarters";
  const Client client(daemon);
  const Result result;
  for (int at = 0; at < 16; ++at) {
    ASSERT_EQ(pick(client, Request("hello"), result), 0);
    EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_FIRST_TOKEN), 0) << "it is reserved";
  }
  EXPECT_EQ(daemon.counter("reservations_full"), 52U);
  greedy.say('e');
  EXPECT_EQ(greedy.wait(), 0);
}

TEST(SystemLimits, RefusesMoreClientsOfAUserThanItMayHave) {
  // Nobody administers this one, so the share of a user is three quarters of four.
  for (const char* limit : {"clients_per_uid_max: 3", "admin_uids: []"}) {
    Daemon daemon({.listen = {"clients_max: 4", limit}});
    daemon.status();  // the first
    RawControl second(daemon);
    ASSERT_TRUE(second.hello().has_value());
    RawControl third(daemon);
    ASSERT_TRUE(third.hello().has_value());
    RawControl fourth(daemon);
    const auto refused = fourth.receive();
    ASSERT_TRUE(refused.has_value());
    EXPECT_EQ(refused->code(), -EMFILE);
    EXPECT_NE(refused->words().find("listen.clients_per_uid_max"), std::string::npos)
        << refused->words();
    EXPECT_EQ(daemon.counter("control_refused"), 1U);
  }
}

TEST(SystemLimits, RefusesChannelsOfMoreMemoryThanAUserMayHave) {
  const auto large = [](flatbuffers::FlatBufferBuilder& builder) {
    return fb::CreateOpenChannel(builder, 1 << 30, 1 << 30);  // cut to 4 MiB each
  };
  const auto small = [](flatbuffers::FlatBufferBuilder& builder) {
    return fb::CreateOpenChannel(builder);
  };
  // Nobody administers this one, so the share of a user is three quarters of 28.
  for (const char* limit : {"channels_mib_per_uid_max: 21", "admin_uids: []"}) {
    Daemon daemon({.listen = {"channels_mib_max: 28", limit}});
    RawControl one(daemon);
    RawControl other(daemon);
    ASSERT_TRUE(one.hello().has_value());
    ASSERT_TRUE(other.hello().has_value());
    std::uint32_t first = 0;
    for (RawControl* raw : {&one, &other}) {
      const auto opened = raw->ask(large);
      ASSERT_NE(opened->as<fb::ChannelOpened>(), nullptr) << opened->words();
      if (first == 0) first = opened->as<fb::ChannelOpened>()->channel();
    }
    for (RawControl* raw : {&one, &other}) {
      const auto refused = raw->ask(large);
      EXPECT_EQ(refused->code(), -EMFILE);
      EXPECT_NE(refused->words().find("listen.channels_mib_per_uid_max"), std::string::npos)
          << refused->words();
    }
    EXPECT_NE(other.ask(small)->as<fb::ChannelOpened>(), nullptr) << "there is room for this one";
    EXPECT_EQ(daemon.counter("control_refused"), 2U);
    EXPECT_EQ(one.ask([first](flatbuffers::FlatBufferBuilder& builder) {
                   return fb::CreateCloseChannel(builder, first);
                 })
                  ->code(),
              0);
    EXPECT_TRUE(eventually([&] { return other.ask(large)->as<fb::ChannelOpened>() != nullptr; }))
        << "what was closed is given back";
  }
}

TEST(SystemLimits, RefusesChannelsOfMoreMemoryThanThereIsForAll) {
  Daemon daemon({.listen = {"channels_mib_max: 12", "channels_mib_per_uid_max: 100"}});
  RawControl raw(daemon);
  ASSERT_TRUE(raw.hello().has_value());
  const auto large = [](flatbuffers::FlatBufferBuilder& builder) {
    return fb::CreateOpenChannel(builder, 1 << 30, 1 << 30);
  };
  ASSERT_NE(raw.ask(large)->as<fb::ChannelOpened>(), nullptr);
  const auto refused = raw.ask(large);
  EXPECT_EQ(refused->code(), -EMFILE);
  EXPECT_NE(refused->words().find("listen.channels_mib_max"), std::string::npos)
      << refused->words();
}

TEST(SystemLimits, RefusesMoreChannelsOfAUserThanItMayHave) {
  const auto open = [](flatbuffers::FlatBufferBuilder& builder) {
    return fb::CreateOpenChannel(builder);
  };
  for (const char* limit : {"channels_per_uid_max: 6", "admin_uids: []"}) {
    Daemon daemon({.listen = {"channels_max: 8", limit}});
    RawControl one(daemon);
    RawControl other(daemon);
    ASSERT_TRUE(one.hello().has_value());
    ASSERT_TRUE(other.hello().has_value());
    for (int at = 0; at < 6; ++at) {
      ASSERT_NE((at % 2 == 0 ? one : other).ask(open)->as<fb::ChannelOpened>(), nullptr) << at;
    }
    for (RawControl* raw : {&one, &other}) {
      const auto refused = raw->ask(open);
      EXPECT_EQ(refused->code(), -EMFILE);
      EXPECT_NE(refused->words().find("listen.channels_per_uid_max"), std::string::npos)
          << refused->words();
    }
  }
}

}  // namespace
}  // namespace pickd::systests
