// How long a prefix is remembered is a setting.
#include "tests/system/support.hpp"

namespace pickd::systests {
namespace {

constexpr std::uint64_t kTicksPerSecond = 20;

// Field case 46: affinity lasted five minutes whatever one set, while caches live an hour.
TEST(SystemTtl, IsHowLongAPrefixIsRemembered) {
  for (const auto& [ttl, remembered] : {std::pair{"5min", false}, std::pair{"1h", true}}) {
    // By prefix first, and nothing in flight: who remembers is who is picked.
    Daemon daemon({.state = {std::string("ttl: ") + ttl},
                   .arguments = {"--virtual-clock", "--profile", "prefix-load"}});
    tools::ControlClient control(daemon.socket(), "clock");
    control.set_clock(100'000, false);
    const Client client(daemon);
    const Request request(prompt_of(4096));
    const Result first;
    ASSERT_EQ(pick(client, request, first), 0);
    ASSERT_EQ(client.report(first.ticket(), PICKD_REPORT_DONE), 0);
    control.set_clock(100'000 + 240 * kTicksPerSecond, true);
    const Result soon;
    Request dry(prompt_of(4096));
    dry.raw.flags |= PICKD_REQUEST_DRY_RUN;
    ASSERT_EQ(pick(client, dry, soon), 0);
    EXPECT_EQ(soon.name(), first.name());
    EXPECT_EQ(soon.match_tokens(), 1024U) << ttl << ", after four minutes";
    control.set_clock(100'000 + 360 * kTicksPerSecond, true);
    const Result late;
    ASSERT_EQ(pick(client, dry, late), 0);
    EXPECT_EQ(late.match_tokens(), remembered ? 1024U : 0U) << ttl << ", after six minutes";
  }
}

// The other half of it: per request, where it says so.
TEST(SystemTtl, IsShorterForARequestThatSaysSo) {
  Daemon daemon(
      {.state = {"ttl: 1h"}, .arguments = {"--virtual-clock", "--profile", "prefix-load"}});
  tools::ControlClient control(daemon.socket(), "clock");
  control.set_clock(100'000, false);
  const Client client(daemon);
  const Request request(prompt_of(4096));
  const Result first;
  ASSERT_EQ(pick(client, request, first), 0);
  ASSERT_EQ(client.report(first.ticket(), PICKD_REPORT_DONE), 0);
  control.set_clock(100'000 + 360 * kTicksPerSecond, true);
  const auto match_with = [&](const char* ttl) {
    pickd_attribute attribute = {pickd_string("X-Pickd-Affinity-TTL"), pickd_string(ttl)};
    Request dry(prompt_of(4096));
    dry.raw.flags |= PICKD_REQUEST_DRY_RUN;
    dry.raw.attributes = &attribute;
    dry.raw.attribute_count = 1;
    const Result result;
    EXPECT_EQ(pick(client, dry, result), 0);
    return result.match_tokens();
  };
  EXPECT_EQ(match_with("5m"), 0U);
  EXPECT_EQ(match_with("1h"), 1024U);
  EXPECT_EQ(match_with("soon"), 1024U) << "no time: as configured";
}

}  // namespace
}  // namespace pickd::systests
