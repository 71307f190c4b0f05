// What pickctl top shows: rates between two looks, the order of the endpoints, a screen that fits.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "abi/state_layout.hpp"
#include "tools/ctl/top_frame.hpp"

namespace pickd::ctl {
namespace {

EndpointView endpoint_of(const std::string& name, std::uint64_t inflight, std::uint32_t kv_ppm,
                         std::uint64_t blocks) {
  EndpointView endpoint;
  endpoint.name = name;
  endpoint.state = static_cast<std::uint8_t>(abi::EndpointState::kReady);
  endpoint.inflight_requests = inflight;
  endpoint.kv_use_ppm = kv_ppm;
  endpoint.waiting = endpoint.running = abi::kUnknown32;
  endpoint.live_blocks = blocks;
  return endpoint;
}

TopLook look_of(std::uint64_t picks, std::uint64_t asked, std::uint64_t matched, int seconds) {
  TopLook look;
  look.at = std::chrono::steady_clock::time_point{} + std::chrono::seconds(seconds);
  look.counters = {{"pickd_picks_total", picks},
                   {"pickd_prompt_blocks_total", asked},
                   {"pickd_match_blocks_total", matched}};
  look.endpoints = {endpoint_of("b", 1, 900'000, 5), endpoint_of("a", 7, 100'000, 80),
                    endpoint_of("c", 3, abi::kUnknown32, 20)};
  return look;
}

std::string text_of(TopScreen screen) {
  screen.unicode = false;
  const TopLook now = look_of(3'000'000, 200, 150, 12);
  return draw(now, rates_between(look_of(1'000'000, 100, 100, 10), now), {1, 2, 4}, screen);
}

std::string order_of(const std::string& text) {
  std::vector<std::pair<std::size_t, char>> places;
  for (const char name : {'a', 'b', 'c'})
    places.emplace_back(text.find(std::string("\n") + name + " "), name);
  std::sort(places.begin(), places.end());
  std::string order;
  for (const auto& [place, name] : places) {
    EXPECT_NE(place, std::string::npos) << text;
    order += name;
  }
  return order;
}

TEST(TopFrame, SaysWhatHappenedBetweenTwoLooks) {
  const TopRates rates = rates_between(look_of(100, 50, 10, 10), look_of(700, 150, 85, 12));
  EXPECT_DOUBLE_EQ(rates.picks, 300);
  EXPECT_DOUBLE_EQ(rates.hit_share, 0.75);
}

TEST(TopFrame, CountsFromZeroWhereADaemonBeganAnew) {
  const TopRates rates = rates_between(look_of(1'000, 50, 10, 10), look_of(40, 0, 0, 12));
  EXPECT_DOUBLE_EQ(rates.picks, 20);
  EXPECT_LT(rates_between(look_of(0, 0, 0, 10), look_of(5, 0, 0, 12)).hit_share, 0)
      << "of nothing there is no share";
}

TEST(TopFrame, ShowsRatesInGroupsOfDigits) {
  const std::string text = text_of({});
  EXPECT_NE(text.find("picks      1,000,000/s"), std::string::npos) << text;
  EXPECT_NE(text.find("hits       50.0 % of the blocks"), std::string::npos) << text;
  EXPECT_NE(text.find("picks/s    :=#"), std::string::npos) << text;
}

TEST(TopFrame, SortsAsItIsTold) {
  EXPECT_EQ(order_of(text_of({.sort = TopSort::kInflight})), "acb");
  EXPECT_EQ(order_of(text_of({.sort = TopSort::kKv})), "bac") << "what nobody told comes last";
  EXPECT_EQ(order_of(text_of({.sort = TopSort::kBlocks})), "acb");
  EXPECT_EQ(order_of(text_of({.sort = TopSort::kName})), "abc");
}

std::size_t columns_of(const std::string& line) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '\x1b') {
      at = line.find('m', at);
    } else if ((static_cast<unsigned char>(line[at]) & 0xC0) != 0x80) {
      ++columns;
    }
  }
  return columns;
}

TEST(TopFrame, FitsTheTerminalAndSaysWhatItLeftOut) {
  for (const std::size_t rows : {9U, 10U, 24U}) {
    const std::string text = text_of({.rows = rows});
    EXPECT_LT(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), rows) << text;
    const bool all = text.find("\na ") != std::string::npos &&
                     text.find("\nb ") != std::string::npos &&
                     text.find("\nc ") != std::string::npos;
    EXPECT_NE(text.find("more") != std::string::npos, all) << text;
  }
}

TEST(TopFrame, IsNeverWiderOrHigherThanTheTerminal) {
  TopLook now = look_of(3'000'000, 200, 150, 12);
  for (int each = 0; each < 40; ++each) {
    now.endpoints.push_back(endpoint_of("vllm-llama-3-8b-6d5f7c9b8d-x7k" + std::to_string(each),
                                        1'000, 900'000, 100'000));
    now.endpoints.back().why_not_ready = "3 scrapes failed in a row: no connection";
  }
  for (const auto& [columns, rows] : {std::pair<std::size_t, std::size_t>{80, 24},
                                      {40, 10},
                                      {20, 5},
                                      {10, 3},
                                      {1, 1},
                                      {132, 40},
                                      {400, 100}}) {
    for (const bool rich : {false, true}) {
      const TopScreen screen{columns, rows, TopSort::kName, rich, rich};
      const std::string text =
          draw(now, rates_between(look_of(1'000'000, 100, 100, 10), now), {1, 2, 4}, screen);
      std::istringstream lines(text);
      std::string line;
      std::size_t count = 0;
      for (; std::getline(lines, line); ++count) EXPECT_LE(columns_of(line), columns) << text;
      EXPECT_LT(count, std::max<std::size_t>(rows, 2)) << text;
      EXPECT_TRUE(rows < 10 || text.find("\nvllm-ll") != std::string::npos) << text;
    }
  }
}

TEST(TopFrame, HasBarsWhereThereIsRoom) {
  EXPECT_NE(text_of({.columns = 100}).find("############"), std::string::npos);
  EXPECT_EQ(text_of({.columns = 50}).find("##"), std::string::npos);
}

}  // namespace
}  // namespace pickd::ctl
