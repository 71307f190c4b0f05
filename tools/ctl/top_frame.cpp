#include "tools/ctl/top_frame.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/common/human.hpp"

namespace pickd::ctl {

namespace {

constexpr std::size_t kBarColumnsMin = 6;
constexpr std::size_t kBarColumnsMax = 12;
constexpr std::size_t kNameColumnsMin = 16;  // where there is room
constexpr std::size_t kStateColumns = 9;
constexpr std::size_t kPipeColumns = 140;

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
std::string bar(double share, std::size_t width, const TopScreen& screen) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double columns = std::clamp(share, 0.0, 1.0) * static_cast<double>(width);
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
  return text + std::string(width - std::min(used, width), ' ');
}

bool begins_letter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

// How many columns of a terminal it takes: escape sequences none, a letter of UTF-8 one.
std::size_t columns_of(const std::string& text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x1b') {
      at = std::min(text.find('m', at), text.size());
    } else if (begins_letter(text[at])) {
      ++columns;
    }
  }
  return columns;
}

// At most `columns` of it, with ".." where something was cut away.
std::string cut(const std::string& text, std::size_t columns) {
  if (columns_of(text) <= columns) return text;
  const std::size_t kept = columns < 4 ? columns : columns - 2;
  std::string out;
  std::size_t used = 0;
  bool coloured = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x1b') {
      const std::size_t end = std::min(text.find('m', at), text.size() - 1);
      out += text.substr(at, end - at + 1);
      at = end;
      coloured = true;
      continue;
    }
    if (begins_letter(text[at]) && used++ == kept) break;
    out += text[at];
  }
  if (coloured) out += "\x1b[0m";
  return kept == columns ? out : out + "..";
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

std::string left(const std::string& text, std::size_t columns) {
  const std::string fitting = cut(text, columns);
  return fitting + std::string(columns - columns_of(fitting), ' ');
}

std::string right(const std::string& text, std::size_t columns) {
  return std::string(columns - std::min(text.size(), columns), ' ') + text;
}

std::string told(std::uint32_t value) {
  return value == abi::kUnknown32 ? "-" : std::to_string(value);
}

double share_of(std::uint64_t of, std::uint64_t all) {
  return all == 0 ? 0.0 : static_cast<double>(of) / static_cast<double>(all);
}

// What the bars are compared with.
struct Most {
  std::uint64_t inflight = 1;
  std::uint64_t blocks = 1;
};

struct Column {
  const char* head;
  std::size_t width;
  std::string (*text)(const EndpointView& endpoint);
  double (*share)(const EndpointView& endpoint, const Most& most);  // nullptr: it has no bar
};

// In the order in which they are given up where there is no room, the last first.
constexpr Column kFlight = {
    "FLIGHT", 6, [](const EndpointView& of) { return std::to_string(of.inflight_requests); },
    [](const EndpointView& of, const Most& most) {
      return share_of(of.inflight_requests, most.inflight);
    }};
constexpr Column kKv = {
    "KV", 6,
    [](const EndpointView& of) {
      return of.kv_use_ppm == abi::kUnknown32 ? "-" : format("%.1f%%", of.kv_use_ppm / 1e4);
    },
    [](const EndpointView& of, const Most&) {
      return of.kv_use_ppm == abi::kUnknown32 ? 0 : of.kv_use_ppm / 1e6;
    }};
constexpr Column kBlocks = {
    "BLOCKS", 8, [](const EndpointView& of) { return std::to_string(of.live_blocks); },
    [](const EndpointView& of, const Most& most) {
      return share_of(of.live_blocks, of.capacity_blocks != 0 ? of.capacity_blocks : most.blocks);
    }};
constexpr Column kWait = {"WAIT", 5, [](const EndpointView& of) { return told(of.waiting); },
                          nullptr};
constexpr Column kRun = {"RUN", 5, [](const EndpointView& of) { return told(of.running); },
                         nullptr};

// What a line of an endpoint has room for.
struct Layout {
  std::size_t name = 0;
  std::size_t bar = 0;  // 0: there are none
  std::vector<Column> columns;

  Layout(const std::vector<const EndpointView*>& endpoints, std::size_t width)
      : columns({kFlight, kKv, kBlocks, kWait, kRun}) {
    std::size_t longest = 4;
    bool says_why = false;
    for (const EndpointView* endpoint : endpoints) {
      longest = std::max(longest, columns_of(tools::printable(endpoint->name)));
      says_why |= !endpoint->why_not_ready.empty();
    }
    const auto used = [this] {
      std::size_t all = 1 + kStateColumns;
      for (const Column& column : columns) all += 1 + column.width;
      return all;
    };
    while (!columns.empty() && used() + std::min(longest, kNameColumnsMin) > width)
      columns.pop_back();
    name = std::min(longest, width > used() ? width - used() : 1);
    std::size_t room = width - std::min(width, used() + name);
    if (says_why) room -= std::min<std::size_t>(room / 2, 40);
    const auto bars = static_cast<std::size_t>(std::count_if(
        columns.begin(), columns.end(), [](const Column& each) { return each.share != nullptr; }));
    if (bars != 0 && room / bars > kBarColumnsMin) bar = std::min(room / bars - 1, kBarColumnsMax);
    // As they are read: who waits and runs stands beside what is in flight.
    if (columns.size() == 5) std::rotate(columns.begin() + 1, columns.begin() + 3, columns.end());
  }

  std::string head() const {
    std::string line = left("NAME", name) + " " + left("STATE", kStateColumns);
    for (const Column& column : columns) {
      line += " " + right(column.head, column.width);
      if (bar != 0 && column.share != nullptr) line += std::string(1 + bar, ' ');
    }
    return line;
  }

  std::string line(const EndpointView& endpoint, const Most& most, const TopScreen& screen) const {
    std::string line = left(tools::printable(endpoint.name), name) + " " +
                       left(endpoint.state_name(), kStateColumns);
    for (const Column& column : columns) {
      line += " " + right(column.text(endpoint), column.width);
      if (bar != 0 && column.share != nullptr)
        line += " " + bar_of(column.share(endpoint, most), screen);
    }
    if (!endpoint.why_not_ready.empty()) line += " " + tools::printable(endpoint.why_not_ready);
    return line;
  }

 private:
  std::string bar_of(double share, const TopScreen& screen) const {
    return ctl::bar(share, bar, screen);
  }
};

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
  const std::size_t width = screen.columns == 0 ? kPipeColumns : screen.columns;
  std::vector<std::string> lines;
  lines.push_back("pickd " + tools::printable(now.version) + ", up " +
                  tools::human_ms(now.uptime_ms) + ", " + std::to_string(now.endpoints.size()) +
                  " endpoints, " + std::to_string(ready) + " ready, " +
                  std::to_string(now.clients) + " clients, " + tools::printable(now.profile));
  lines.push_back("picks      " + grouped(rates.picks) + "/s, refused " + grouped(rates.refused) +
                  "/s, reports " + grouped(rates.reports) + "/s, in flight " +
                  std::to_string(now.reservations));
  lines.push_back(
      "hits       " +
      (rates.hit_share < 0 ? "-" : format("%.1f %%", 100 * rates.hit_share) + " of the blocks") +
      ", store " + grouped(static_cast<double>(now.prefix_live)) + " blocks, " +
      format("%.1f", load) + " % of the table");
  lines.push_back("picks/s    " + spark(picks, width > 12 ? width - 12 : 1, screen.unicode));
  lines.push_back("predicts   TTFT off by " + off_by(now.ttft_mape) + ", ITL " +
                  off_by(now.itl_mape));
  lines.push_back("");

  std::vector<const EndpointView*> endpoints;
  Most most;
  for (const EndpointView& endpoint : now.endpoints) {
    endpoints.push_back(&endpoint);
    most.inflight = std::max(most.inflight, endpoint.inflight_requests);
    most.blocks = std::max(most.blocks, endpoint.live_blocks);
  }
  // Of a low terminal the endpoints get half.
  const std::size_t below = 1 + std::min<std::size_t>(endpoints.size(), screen.rows / 2);
  while (screen.rows != 0 && lines.size() > 1 && lines.size() + below >= screen.rows)
    lines.pop_back();
  sort_endpoints(endpoints, screen.sort);
  const Layout layout(endpoints, width);
  const std::string head = left(layout.head(), width);
  lines.push_back(screen.colour ? "\x1b[7m" + head + "\x1b[0m" : head);
  std::size_t fit = endpoints.size();
  if (screen.rows != 0 && lines.size() + fit + 1 > screen.rows)
    fit = screen.rows > lines.size() + 2 ? screen.rows - lines.size() - 2 : 0;
  for (std::size_t at = 0; at < fit; ++at)
    lines.push_back(layout.line(*endpoints[at], most, screen));
  if (fit < endpoints.size())
    lines.push_back("... and " + std::to_string(endpoints.size() - fit) + " more");
  if (screen.rows != 0)
    lines.resize(std::min(lines.size(), std::max<std::size_t>(screen.rows, 2) - 1));
  std::string text;
  for (std::string& line : lines) {
    if (screen.columns != 0) line = cut(line, screen.columns);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace pickd::ctl
