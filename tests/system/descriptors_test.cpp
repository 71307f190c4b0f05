// A daemon that may open fewer descriptors than its limits allow clients and channels says so.
#include <sys/resource.h>

#include <cerrno>

#include "tests/system/raw_control.hpp"

namespace pickd::systests {
namespace {

// The log of a daemon that is started with at most `limit` descriptors.
int with_descriptors(rlim_t limit, const std::vector<std::string>& listen,
                     const std::function<bool(const std::string& log)>& is_right,
                     const std::function<bool(Daemon& daemon)>& before = nullptr) {
  Forked starter([&](Forked&) {
    const rlimit both{limit, limit};
    if (::setrlimit(RLIMIT_NOFILE, &both) != 0) return 1;
    Daemon daemon({.listen = listen});
    daemon.status();
    if (before != nullptr && !before(daemon)) return 3;
    if (is_right(daemon.log())) return 0;
    std::fprintf(stderr, "%s\n", daemon.log().c_str());
    return 2;
  });
  return starter.wait();
}

TEST(SystemDescriptors, ThatAreFewerThanTheLimitsAllowAreWorthAWarning) {
  EXPECT_EQ(with_descriptors(1024, {"clients_max: 100", "channels_max: 1000"},
                             [](const std::string& log) {
                               const auto says = [&log](const char* words) {
                                 return log.find(words) != std::string::npos;
                               };
                               return says("warn") && says("RLIMIT_NOFILE allows 1024") &&
                                      says("listen.clients_max 100") &&
                                      says("listen.channels_max 1000") && says("raise it to 2456");
                             }),
            0);
}

TEST(SystemDescriptors, ThatAreEnoughAreWorthNone) {
  EXPECT_EQ(with_descriptors(2456, {"clients_max: 100", "channels_max: 1000"},
                             [](const std::string& log) {
                               return log.find("RLIMIT_NOFILE") == std::string::npos;
                             }),
            0);
}

TEST(SystemDescriptors, OfTheDaemonThatAreUsedUpAreTheDaemonsFault) {
  // A client finds no channel for want of the daemon's descriptors, and is told whose they are.
  const auto open_until_refused = [](Daemon& daemon) {
    RawControl raw(daemon);
    if (!raw.hello()) return false;
    for (int at = 0; at < 100; ++at) {
      const auto answer = raw.ask(
          [](flatbuffers::FlatBufferBuilder& builder) { return fb::CreateOpenChannel(builder); });
      if (!answer.has_value()) return false;
      if (answer->as<fb::ChannelOpened>() != nullptr) continue;
      return answer->code() == -EMFILE &&
             answer->words().find("the daemon has no descriptor left") != std::string::npos;
    }
    return false;
  };
  EXPECT_EQ(with_descriptors(
                96, {"clients_max: 100", "channels_max: 1000"},
                [](const std::string& log) {
                  return log.find("the daemon has no descriptor left") != std::string::npos;
                },
                open_until_refused),
            0);
}

}  // namespace
}  // namespace pickd::systests
