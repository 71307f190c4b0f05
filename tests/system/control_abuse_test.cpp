// Clients that break the control protocol: each is answered or dropped, nothing leaks, and the
// others are served meanwhile.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <random>

#include "tests/system/raw_control.hpp"
#include "tests/workers/client_side.hpp"

namespace pickd::systests {
namespace {

const auto kAskStatus = [](flatbuffers::FlatBufferBuilder& builder) {
  return fb::CreateAskStatus(builder);
};
const auto kOpenChannel = [](flatbuffers::FlatBufferBuilder& builder) {
  return fb::CreateOpenChannel(builder);
};

// A daemon with a good client that is asked to work after every abuse.
class SystemControlAbuse : public testing::Test {
 protected:
  void expect_unharmed() {
    const Result result;
    EXPECT_EQ(pick(client_, Request("hello"), result), 0);
    EXPECT_EQ(client_.report(result.ticket(), PICKD_REPORT_DONE), 0);
    EXPECT_TRUE(eventually([&] { return daemon_.status().clients == 2; })) << "it, and who asks";
    EXPECT_TRUE(eventually([&] { return daemon_.descriptors() == descriptors_; }))
        << daemon_.descriptors() << " descriptors, there were " << descriptors_;
  }
  void SetUp() override {
    const Result result;
    ASSERT_EQ(pick(client_, Request("hello"), result), 0);
    daemon_.status();
    descriptors_ = daemon_.descriptors();
  }

  Daemon daemon_{Settings{.listen = {"channels_per_client_max: 3", "clients_max: 4"}}};
  Client client_{daemon_};
  std::size_t descriptors_ = 0;
};

TEST_F(SystemControlAbuse, DropsWhoSendsGarbage) {
  std::mt19937 random(1);
  for (const std::size_t size : {1UL, 3UL, 4UL, 11UL, 12UL, 13UL, 100UL, 4096UL, 65536UL}) {
    std::vector<std::uint8_t> bytes(size);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    RawControl raw(daemon_);
    EXPECT_TRUE(raw.send(bytes.data(), bytes.size()));
    EXPECT_TRUE(raw.hung_up()) << size;
    // With the right identifier, so that only the verifier stands between.
    if (size < 12) continue;
    std::memcpy(bytes.data() + 4, "PKCT", 4);
    RawControl known(daemon_);
    EXPECT_TRUE(known.send(bytes.data(), bytes.size()));
    EXPECT_TRUE(known.hung_up()) << size;
    expect_unharmed();
  }
  EXPECT_EQ(daemon_.counter("control_malformed"), 14U);
}

TEST_F(SystemControlAbuse, SurvivesEveryByteOfAGoodMessageBeingWrong) {
  flatbuffers::FlatBufferBuilder builder;
  const auto name = builder.CreateString("e9");
  const auto address = builder.CreateString("h:1");
  fb::EndpointBuilder endpoint(builder);
  endpoint.add_name(name);
  endpoint.add_address(address);
  const auto change = fb::CreateChangeEndpoint(builder, fb::EndpointOp::Remove, endpoint.Finish());
  fb::FinishMessageBuffer(builder,
                          fb::CreateMessage(builder, 2, fb::Body::ChangeEndpoint, change.Union()));
  const std::vector<std::uint8_t> good(builder.GetBufferPointer(),
                                       builder.GetBufferPointer() + builder.GetSize());
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      std::vector<std::uint8_t> bad = good;
      bad[at] ^= static_cast<std::uint8_t>(flip);
      RawControl raw(daemon_);
      ASSERT_TRUE(raw.hello().has_value());
      ASSERT_TRUE(raw.send(bad.data(), bad.size()));
      // Goodbye is answered by a hang-up, a body of no meaning by an outcome: both will do.
      raw.receive();
    }
  }
  expect_unharmed();
}

// A client that breaks its channel, and would like the log to say something else.
void break_a_channel(Daemon& daemon, const std::string& name) {
  RawControl raw(daemon);
  const auto welcome = raw.ask([&name](flatbuffers::FlatBufferBuilder& builder) {
    const auto text = builder.CreateString(name);
    return fb::CreateHello(builder, abi::kLayoutMajor, abi::kLayoutMinor, 4711, text, 2048, 0);
  });
  ASSERT_NE(welcome->as<fb::Welcome>(), nullptr);
  ASSERT_NE(raw.ask(kOpenChannel)->as<fb::ChannelOpened>(), nullptr);
  workers::test::ClientSide side(raw.descriptors().at(0).get());
  side.publish(3);  // no place where a record may end
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(raw.descriptors().at(1).get(), &one, sizeof one), ssize_t{sizeof one});
  EXPECT_TRUE(raw.hung_up());
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

TEST_F(SystemControlAbuse, PutsNoLineOfAClientsNameIntoTheLog) {
  break_a_channel(daemon_, "gateway\n2026-01-01T00:00:00.000 error forged\x1B[2J\"");
  EXPECT_TRUE(eventually([&] { return daemon_.log().find("ring protocol") != std::string::npos; }));
  const std::string log = daemon_.log();
  EXPECT_NE(log.find("\"gateway?2026-01-01T00:00:00.000 error forged?[2J?\" pid"),
            std::string::npos)
      << log;
  expect_unharmed();
}

TEST_F(SystemControlAbuse, FillsNoLogWithBrokenChannels) {
  constexpr std::uint64_t kMany = 60;
  const auto from = std::chrono::steady_clock::now();
  for (std::uint64_t at = 0; at < kMany; ++at) break_a_channel(daemon_, "gateway");
  EXPECT_TRUE(eventually([&] { return daemon_.counter("channels_broken") == kMany; }));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - from;
  const std::size_t lines = count_of(daemon_.log(), "it broke the ring protocol");
  EXPECT_GE(lines, 1U);
  EXPECT_LE(static_cast<double>(lines), 5 + 1 + took.count() / 10);
  expect_unharmed();
}

TEST_F(SystemControlAbuse, WantsAHelloFirst) {
  for (const auto& ask : {std::optional<Reply>(RawControl(daemon_).ask(kAskStatus)),
                          std::optional<Reply>(RawControl(daemon_).ask(kOpenChannel))}) {
    ASSERT_TRUE(ask.has_value());
    EXPECT_EQ(ask->code(), -EPROTO);
    EXPECT_NE(ask->words().find("Hello"), std::string::npos) << ask->words();
  }
  RawControl raw(daemon_);
  EXPECT_EQ(raw.ask(kOpenChannel)->code(), -EPROTO);
  ASSERT_NE(raw.hello()->as<fb::Welcome>(), nullptr) << "it may still say it";
  EXPECT_NE(raw.ask(kAskStatus)->as<fb::StatusAnswer>(), nullptr);
}

TEST(SystemControlSilence, EndsAConnectionThatNeverSaysHelloAndNoOther) {
  Daemon daemon({.listen = {"hello_within: 100ms"}});
  RawControl greeted(daemon);
  ASSERT_TRUE(greeted.hello().has_value());
  RawControl silent(daemon);
  EXPECT_TRUE(silent.hung_up());
  EXPECT_NE(greeted.ask(kAskStatus)->as<fb::StatusAnswer>(), nullptr) << "it said hello in time";
  EXPECT_EQ(daemon.counter("clients_died"), 0U) << "nobody had come to life";
}

TEST_F(SystemControlAbuse, RefusesAnotherLayoutAndNamesBoth) {
  RawControl raw(daemon_);
  const auto reply = raw.hello(abi::kLayoutMajor + 41);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->code(), -EPROTONOSUPPORT);
  EXPECT_NE(reply->words().find(std::to_string(abi::kLayoutMajor + 41) + "."), std::string::npos)
      << reply->words();
  EXPECT_NE(reply->words().find(std::to_string(abi::kLayoutMajor) + "."), std::string::npos);
  EXPECT_EQ(raw.ask(kAskStatus)->code(), -EPROTO) << "refused is not greeted";
}

TEST_F(SystemControlAbuse, ClosesDescriptorsThatNobodyAskedFor) {
  const base::Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (const std::size_t count : {1UL, 4UL, 32UL, 33UL, 253UL}) {
    RawControl raw(daemon_);
    ASSERT_TRUE(raw.hello().has_value());
    if (raw.say(2, kAskStatus, std::vector<int>(count, null.get()))) {
      EXPECT_TRUE(raw.hung_up()) << count;
    } else {
      EXPECT_EQ(errno, EPERM) << "the kernel refuses them";
    }
    raw.close();
    expect_unharmed();
  }
}

// A socket whose last close takes as long as was asked for: it has bytes that nobody reads.
struct Lingering {
  Lingering() {
    const base::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* name = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener.get(), name, sizeof address), 0);
    EXPECT_EQ(::getsockname(listener.get(), name, &size), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    socket = base::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), name, sizeof address), 0);
    peer = base::Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const linger year{1, 365 * 24 * 3600};
    EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &year, sizeof year), 0);
    const std::vector<char> bytes(1 << 16);
    while (::send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
  }
  // Its own close must not linger.
  ~Lingering() {
    const linger none{};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  }
  base::Fd socket;
  base::Fd peer;
};

TEST(SystemControlAbuseByDescriptors, IsNotHeldUpByThoseThatTakeLongToClose) {
  Daemon daemon;
  for (int turn = 0; turn < 20; ++turn) {
    Lingering lingering;
    RawControl raw(daemon);
    const bool passed = raw.say(1, kAskStatus, std::vector<int>(1, lingering.socket.get()));
    if (!passed) {
      EXPECT_EQ(errno, EPERM) << "the kernel refuses them";
    }
    if (passed) lingering.socket.reset();  // the daemon's close is the last one
    raw.close();
    const Client client(daemon);
    const Result result;
    EXPECT_EQ(pick(client, Request("hello"), result), 0);
    EXPECT_EQ(client.report(result.ticket(), PICKD_REPORT_DONE), 0);
  }
}

TEST_F(SystemControlAbuse, DropsWhoSendsAPacketOverTheLimit) {
  RawControl raw(daemon_);
  ASSERT_TRUE(raw.hello().has_value());
  const std::vector<std::uint8_t> bytes(100 * 1024, 'x');
  EXPECT_TRUE(raw.send(bytes.data(), bytes.size()));
  EXPECT_TRUE(raw.hung_up());
  // A good message with 100 KiB of name is too long all the same.
  RawControl named(daemon_);
  EXPECT_TRUE(named.say(1, [](flatbuffers::FlatBufferBuilder& builder) {
    const auto name = builder.CreateString(std::string(100 * 1024, 'n'));
    return fb::CreateHello(builder, abi::kLayoutMajor, abi::kLayoutMinor, 1, name, 2048, 0);
  }));
  EXPECT_TRUE(named.hung_up());
  expect_unharmed();
}

TEST_F(SystemControlAbuse, TakesOneHelloAClient) {
  RawControl raw(daemon_);
  ASSERT_NE(raw.hello()->as<fb::Welcome>(), nullptr);
  EXPECT_EQ(raw.hello()->code(), -EPROTO);
  EXPECT_NE(raw.ask(kAskStatus)->as<fb::StatusAnswer>(), nullptr) << "the first one holds";
}

TEST_F(SystemControlAbuse, KnowsNoMessagesThatOnlyTheDaemonSends) {
  RawControl raw(daemon_);
  ASSERT_TRUE(raw.hello().has_value());
  EXPECT_EQ(raw.ask([](flatbuffers::FlatBufferBuilder& builder) {
                 return fb::CreateChannelOpened(builder, 1, 0);
               })
                ->code(),
            -EPROTO);
  EXPECT_EQ(raw.ask([](flatbuffers::FlatBufferBuilder& builder) {
                 return fb::CreateCloseChannel(builder, 1);
               })
                ->code(),
            -ENOENT)
      << "channel 1 is the good client's";
  const Result result;
  EXPECT_EQ(pick(client_, Request("hello"), result), 0);
}

TEST_F(SystemControlAbuse, GrantsAsManyChannelsAsAreAllowed) {
  RawControl raw(daemon_);
  ASSERT_TRUE(raw.hello().has_value());
  std::uint32_t last = 0;
  for (int count = 0; count < 3; ++count) {
    const auto reply = raw.ask(kOpenChannel);
    ASSERT_NE(reply->as<fb::ChannelOpened>(), nullptr) << reply->words();
    last = reply->as<fb::ChannelOpened>()->channel();
  }
  const auto refused = raw.ask(kOpenChannel);
  EXPECT_EQ(refused->code(), -EMFILE);
  EXPECT_NE(refused->words().find("listen.channels_per_client_max"), std::string::npos);
  EXPECT_EQ(raw.ask([last](flatbuffers::FlatBufferBuilder& builder) {
                 return fb::CreateCloseChannel(builder, last);
               })
                ->code(),
            0);
  EXPECT_NE(raw.ask(kOpenChannel)->as<fb::ChannelOpened>(), nullptr) << "one was given back";
}

TEST_F(SystemControlAbuse, RefusesRingsOfAbsurdSizes) {
  RawControl raw(daemon_);
  ASSERT_TRUE(raw.hello().has_value());
  for (const std::uint32_t bytes : {0U, 1U, 127U, 0x7FFFFFFFU, 0x80000001U, 0xFFFFFFFFU}) {
    const auto reply = raw.ask([bytes](flatbuffers::FlatBufferBuilder& builder) {
      return fb::CreateOpenChannel(builder, bytes, bytes);
    });
    ASSERT_NE(reply->as<fb::ChannelOpened>(), nullptr) << "clamped, not obeyed: " << reply->words();
    const std::uint32_t channel = reply->as<fb::ChannelOpened>()->channel();
    EXPECT_EQ(raw.ask([channel](flatbuffers::FlatBufferBuilder& builder) {
                   return fb::CreateCloseChannel(builder, channel);
                 })
                  ->code(),
              0);
  }
}

TEST_F(SystemControlAbuse, RefusesMoreClientsThanAreAllowed) {
  // The good one and the one that asks are two of four.
  RawControl third(daemon_);
  ASSERT_TRUE(third.hello().has_value());
  RawControl fourth(daemon_);
  ASSERT_TRUE(fourth.hello().has_value());
  RawControl fifth(daemon_);
  const auto refused = fifth.receive();
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->code(), -EMFILE);
  EXPECT_NE(refused->words().find("listen.clients_max"), std::string::npos) << refused->words();
  EXPECT_TRUE(fifth.hung_up());

  pickd_options options = PICKD_OPTIONS_INIT;
  const std::string socket = daemon_.socket();
  options.socket_path = socket.c_str();
  pickd_client* client = nullptr;
  EXPECT_EQ(pickd_open(&options, &client), -EMFILE) << "the library hears the refusal, too";
  EXPECT_EQ(daemon_.counter("control_refused"), 2U);
}

TEST_F(SystemControlAbuse, DropsWhoNeverReadsItsAnswers) {
  RawControl raw(daemon_);
  ASSERT_TRUE(raw.hello().has_value());
  for (std::uint32_t number = 2; number < 5000; ++number) {
    if (!raw.say(number, kAskStatus)) break;
  }
  expect_unharmed();
}

TEST_F(SystemControlAbuse, ForgetsWhoSaidGoodbye) {
  RawControl raw(daemon_);
  ASSERT_TRUE(raw.hello().has_value());
  ASSERT_NE(raw.ask(kOpenChannel)->as<fb::ChannelOpened>(), nullptr);
  EXPECT_TRUE(raw.say(
      9, [](flatbuffers::FlatBufferBuilder& builder) { return fb::CreateGoodbye(builder); }));
  EXPECT_TRUE(raw.hung_up());
  expect_unharmed();
  EXPECT_EQ(daemon_.counter("clients_died"), 0U);
}

TEST_F(SystemControlAbuse, RefusesEndpointsThatBreakTheRules) {
  RawControl raw(daemon_);
  ASSERT_TRUE(raw.hello().has_value());
  struct Bad {
    std::string name = "bad";
    std::string address = "h:1";
    std::uint8_t role = 0;
    std::string model = "m";
    std::string adapter = "a";
  };
  const std::vector<Bad> cases = {
      {.name = ""},
      {.name = std::string(128, 'x')},
      {.name = std::string("a\0b", 3)},
      {.address = ""},
      {.address = std::string(128, 'x')},
      {.address = std::string("h\0:1", 4)},
      {.address = "h"},
      {.address = "h:65536"},
      {.address = "a b:1"},
      {.role = 4},
      {.role = 255},
      {.model = ""},
      {.model = std::string(256, 'm')},
      {.adapter = std::string(40'000, 'a')},
  };
  for (const bool replace : {false, true}) {
    for (std::size_t at = 0; at < cases.size(); ++at) {
      const Bad& bad = cases[at];
      const auto endpoint = [&bad](flatbuffers::FlatBufferBuilder& builder) {
        const auto name = builder.CreateString(bad.name);
        const auto address = builder.CreateString(bad.address);
        const auto models = builder.CreateVectorOfStrings(std::vector<std::string>{bad.model});
        const auto active = builder.CreateVectorOfStrings(std::vector<std::string>{bad.adapter});
        const auto adapters = fb::CreateAdapters(builder, 1, active);
        return fb::CreateEndpoint(builder, name, address, 0, bad.role, models, 0, 0, 0, adapters);
      };
      const auto reply = replace ? raw.ask([&](flatbuffers::FlatBufferBuilder& builder) {
        const auto list = builder.CreateVector(std::vector{endpoint(builder)});
        return fb::CreateReplaceEndpoints(builder, list);
      })
                                 : raw.ask([&](flatbuffers::FlatBufferBuilder& builder) {
                                     return fb::CreateChangeEndpoint(builder, fb::EndpointOp::Add,
                                                                     endpoint(builder));
                                   });
      ASSERT_TRUE(reply.has_value());
      EXPECT_EQ(reply->code(), -EINVAL) << at << " " << reply->words();
    }
  }
  EXPECT_EQ(daemon_.endpoints().size(), 4U);
}

TEST_F(SystemControlAbuse, KeepsTimeWhenTheClockIsReal) {
  RawControl raw(daemon_);
  ASSERT_TRUE(raw.hello().has_value());
  const auto reply = raw.ask([](flatbuffers::FlatBufferBuilder& builder) {
    return fb::CreateSetClock(builder, 1'000'000, true);
  });
  EXPECT_EQ(reply->code(), -EINVAL);
  EXPECT_NE(reply->words().find("--virtual-clock"), std::string::npos) << reply->words();
}

}  // namespace
}  // namespace pickd::systests
