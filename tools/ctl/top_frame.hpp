// What pickctl top shows at one moment: rates since the look before, and the text of a screen.
// Knows nothing of terminals but their size.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "tools/ctl/daemon_view.hpp"

namespace pickd::ctl {

// One look at the daemon.
struct TopLook {
  std::chrono::steady_clock::time_point at;
  std::string version;
  std::string profile;
  std::uint64_t uptime_ms = 0;
  std::uint64_t daemon_epoch = 0;
  std::uint32_t clients = 0;
  std::uint64_t reservations = 0;
  std::uint64_t prefix_words = 0;
  std::uint64_t prefix_live = 0;
  double ttft_mape = -1;  // of the class with most samples; below 0: nothing was learned
  double itl_mape = -1;
  std::map<std::string, std::uint64_t> counters;
  std::vector<EndpointView> endpoints;
};

TopLook look_at(tools::ControlClient& control);

// Between two looks at the same daemon.
struct TopRates {
  double seconds = 0;
  double picks = 0;  // a second, this and the next two
  double refused = 0;
  double reports = 0;
  double hit_share = -1;  // of the blocks asked for; below 0: none were
};

TopRates rates_between(const TopLook& before, const TopLook& now);

enum class TopSort { kInflight, kKv, kBlocks, kName };

struct TopScreen {
  std::size_t columns = 100;  // no line is longer; 0: lines are as long as they get
  std::size_t rows = 0;       // 0: as many as it takes
  TopSort sort = TopSort::kInflight;
  bool colour = false;
  bool unicode = true;
};

// `picks`: of the looks before, for the line that shows how they went.
std::string draw(const TopLook& now, const TopRates& rates, const std::deque<double>& picks,
                 const TopScreen& screen);

}  // namespace pickd::ctl
