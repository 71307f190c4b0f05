#include "tools/ctl/top_frame.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/common/human.hpp"

namespace pickd::ctl {

namespace {

constexpr std::size_t kBarColumns = 12;
constexpr std::size_t kNameColumns = 24;

std::uint64_t counter(const TopLook& look, const char* name) {
  const auto found = look.counters.find(name);
  return found == look.counters.end() ? 0 : found->second;
}

// "1,234": digits in groups.
std::string grouped(double value) {
  std::string digits =
      std::to_string(static_cast<std::uint64_t>(std::llround(std::max(value, 0.0))));
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

std::string format(const char* pattern, double value) {
  char text[48];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

// `share` of a bar, 0..1, in eighths of a column; of '#' where a terminal has no others.
std::string bar(double share, const TopScreen& screen) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double columns = std::clamp(share, 0.0, 1.0) * kBarColumns;
  const auto whole = static_cast<std::size_t>(columns);
  std::string text;
  std::size_t used = whole;
  for (std::size_t at = 0; at < whole; ++at) text += screen.unicode ? "█" : "#";
  const auto eighth = static_cast<std::size_t>((columns - static_cast<double>(whole)) * 8);
  if (screen.unicode && eighth > 0) {
    text += kEighths[eighth];
    ++used;
  }
  if (screen.colour && used > 0) {
    const char* colour = share > 0.9 ? "\x1b[31m" : share > 0.7 ? "\x1b[33m" : "\x1b[32m";
    text = colour + text + "\x1b[0m";
  }
  return text + std::string(kBarColumns - std::min(used, kBarColumns), ' ');
}

std::string spark(const std::deque<double>& values, std::size_t columns, bool unicode) {
  static constexpr const char* kLevels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr const char* kPlain[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
  const std::size_t count = std::min(values.size(), columns);
  const auto begin = values.end() - static_cast<std::ptrdiff_t>(count);
  const double most = count == 0 ? 0 : *std::max_element(begin, values.end());
  std::string text;
  for (auto at = begin; at != values.end(); ++at) {
    const auto level = most <= 0 ? 0 : static_cast<std::size_t>(std::lround(7 * *at / most));
    text += unicode ? kLevels[level] : kPlain[level];
  }
  return text;
}

void sort_endpoints(std::vector<const EndpointView*>& endpoints, TopSort sort) {
  const auto kv = [](const EndpointView* endpoint) {
    return endpoint->kv_use_ppm == abi::kUnknown32 ? -1 : static_cast<double>(endpoint->kv_use_ppm);
  };
  std::stable_sort(endpoints.begin(), endpoints.end(), [&](const auto* a, const auto* b) {
    switch (sort) {
      case TopSort::kInflight: return a->inflight_requests > b->inflight_requests;
      case TopSort::kKv: return kv(a) > kv(b);
      case TopSort::kBlocks: return a->live_blocks > b->live_blocks;
      case TopSort::kName: break;
    }
    return a->name < b->name;
  });
}

std::string fitted(std::string text, std::size_t columns) {
  if (text.size() > columns) text = text.substr(0, columns - 2) + "..";
  return text + std::string(columns - text.size(), ' ');
}

std::string told(std::uint32_t value) {
  return value == abi::kUnknown32 ? "-" : std::to_string(value);
}

std::string line_of(const EndpointView& endpoint, std::uint64_t most_inflight,
                    std::uint64_t most_blocks, const TopScreen& screen) {
  const auto share = [](std::uint64_t of, std::uint64_t all) {
    return all == 0 ? 0.0 : static_cast<double>(of) / static_cast<double>(all);
  };
  const bool kv_known = endpoint.kv_use_ppm != abi::kUnknown32;
  const std::uint64_t room = endpoint.capacity_blocks != 0 ? endpoint.capacity_blocks : most_blocks;
  char text[256];
  std::string line = fitted(tools::printable(endpoint.name), kNameColumns) + " ";
  std::snprintf(text, sizeof text, "%-9s %6llu ", endpoint.state_name(),
                static_cast<unsigned long long>(endpoint.inflight_requests));
  line += text + bar(share(endpoint.inflight_requests, most_inflight), screen);
  std::snprintf(text, sizeof text, " %5s %5s %6s ", told(endpoint.waiting).c_str(),
                told(endpoint.running).c_str(),
                kv_known ? format("%.1f%%", endpoint.kv_use_ppm / 1e4).c_str() : "-");
  line += text + bar(kv_known ? endpoint.kv_use_ppm / 1e6 : 0, screen);
  std::snprintf(text, sizeof text, " %8llu ",
                static_cast<unsigned long long>(endpoint.live_blocks));
  line += text + bar(share(endpoint.live_blocks, room), screen);
  if (!endpoint.why_not_ready.empty()) line += " " + tools::printable(endpoint.why_not_ready);
  return line;
}

double mape_of(const fb::LatencyModel* model) {
  return model == nullptr || model->samples() == 0 ? -1 : model->mape();
}

std::string off_by(double mape) { return mape < 0 ? "-" : format("%.0f %%", 100 * mape); }

}  // namespace

TopLook look_at(tools::ControlClient& control) {
  TopLook look;
  {
    const auto& status = control.ask<fb::AskStatus, fb::StatusAnswer>(fb::CreateAskStatus);
    look.version = text_of(status.version());
    look.profile = text_of(status.profile());
    look.uptime_ms = status.uptime_ms();
    look.daemon_epoch = status.daemon_epoch();
    look.clients = status.clients();
    look.reservations = status.reservations();
    look.prefix_words = status.prefix_words();
    look.prefix_live = status.prefix_live();
    look.counters = counters_of(status);
    std::uint64_t most = 0;
    if (status.latency() != nullptr) {
      for (const fb::LatencyClass* of : *status.latency()) {
        if (of->ttft()->samples() < most) continue;
        most = of->ttft()->samples();
        look.ttft_mape = mape_of(of->ttft());
        look.itl_mape = mape_of(of->itl());
      }
    }
    look.at = std::chrono::steady_clock::now();
  }
  look.endpoints = ask_endpoints(control);
  return look;
}

TopRates rates_between(const TopLook& before, const TopLook& now) {
  TopRates rates;
  rates.seconds = std::chrono::duration<double>(now.at - before.at).count();
  if (rates.seconds <= 0) return rates;
  // A warm start keeps the counters; where they went back, a new count began at 0.
  const auto grown = [&](const char* name) {
    const std::uint64_t then = counter(before, name);
    const std::uint64_t is = counter(now, name);
    return static_cast<double>(is >= then ? is - then : is);
  };
  rates.picks = grown("pickd_picks_total") / rates.seconds;
  rates.refused = grown("pickd_picks_refused_total") / rates.seconds;
  rates.reports = grown("pickd_reports_total") / rates.seconds;
  const double asked = grown("pickd_prompt_blocks_total");
  if (asked > 0) rates.hit_share = grown("pickd_match_blocks_total") / asked;
  return rates;
}

std::string draw(const TopLook& now, const TopRates& rates, const std::deque<double>& picks,
                 const TopScreen& screen) {
  const auto ready = static_cast<std::size_t>(std::count_if(
      now.endpoints.begin(), now.endpoints.end(), [](const auto& each) { return each.ready(); }));
  const double load = now.prefix_words == 0 ? 0
                                            : 100.0 * static_cast<double>(now.prefix_live) /
                                                  static_cast<double>(now.prefix_words);
  std::vector<std::string> lines;
  lines.push_back("pickd " + tools::printable(now.version) + ", up " +
                  tools::human_ms(now.uptime_ms) + ", profile " + tools::printable(now.profile) +
                  ", " + std::to_string(now.endpoints.size()) + " endpoints, " +
                  std::to_string(ready) + " ready, " + std::to_string(now.clients) + " clients");
  lines.push_back("picks      " + grouped(rates.picks) + "/s, refused " + grouped(rates.refused) +
                  "/s, reports " + grouped(rates.reports) + "/s, in flight " +
                  std::to_string(now.reservations));
  lines.push_back(
      "hits       " +
      (rates.hit_share < 0 ? "-" : format("%.1f %%", 100 * rates.hit_share) + " of the blocks") +
      ", store " + grouped(static_cast<double>(now.prefix_live)) + " blocks, " +
      format("%.1f", load) + " % of the table");
  lines.push_back("predicts   TTFT off by " + off_by(now.ttft_mape) + ", ITL " +
                  off_by(now.itl_mape));
  lines.push_back("picks/s    " +
                  spark(picks, screen.columns > 12 ? screen.columns - 12 : 1, screen.unicode));
  lines.push_back("");
  char head[256];
  std::snprintf(head, sizeof head, "%-*s %-9s %6s %*s %5s %5s %6s %*s %8s %s",
                static_cast<int>(kNameColumns), "NAME", "STATE", "FLIGHT",
                static_cast<int>(kBarColumns), "", "WAIT", "RUN", "KV",
                static_cast<int>(kBarColumns), "", "BLOCKS", "");
  lines.push_back(screen.colour ? "\x1b[7m" + fitted(head, screen.columns) + "\x1b[0m" : head);

  std::vector<const EndpointView*> endpoints;
  std::uint64_t most_inflight = 1;
  std::uint64_t most_blocks = 1;
  for (const EndpointView& endpoint : now.endpoints) {
    endpoints.push_back(&endpoint);
    most_inflight = std::max(most_inflight, endpoint.inflight_requests);
    most_blocks = std::max(most_blocks, endpoint.live_blocks);
  }
  sort_endpoints(endpoints, screen.sort);
  std::size_t fit = endpoints.size();
  if (screen.rows != 0 && lines.size() + fit + 1 > screen.rows)
    fit = screen.rows > lines.size() + 2 ? screen.rows - lines.size() - 2 : 0;
  for (std::size_t at = 0; at < fit; ++at)
    lines.push_back(line_of(*endpoints[at], most_inflight, most_blocks, screen));
  if (fit < endpoints.size())
    lines.push_back("... and " + std::to_string(endpoints.size() - fit) + " more");
  std::string text;
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace pickd::ctl
