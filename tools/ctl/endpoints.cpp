// pickctl endpoints: one line each, once or again and again.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "abi/state_layout.hpp"
#include "tools/common/human.hpp"
#include "tools/common/output.hpp"
#include "tools/ctl/commands.hpp"
#include "tools/ctl/daemon_view.hpp"
#include "tools/ctl/table.hpp"

namespace pickd::ctl {

namespace {

struct Look : Common {
  bool watch = false;
  double interval_s = 1;
  std::uint32_t times = 0;  // 0: until it is ended
  bool names = false;
  bool pools = false;
};

constexpr std::size_t kAdaptersColumn = 16;

// "-" where nobody told.
std::string told(std::uint32_t value) {
  return value == abi::kUnknown32 ? "-" : std::to_string(value);
}
std::string told_share(std::uint32_t ppm) {
  if (ppm == abi::kUnknown32) return "-";
  char text[16];
  std::snprintf(text, sizeof text, "%.1f%%", ppm / 1e4);
  return text;
}
std::string told_age(const EndpointView& endpoint) {
  return endpoint.load_told ? tools::human_ms(endpoint.load_age_ms) : "-";
}
nlohmann::ordered_json told_json(std::uint32_t value) {
  return value == abi::kUnknown32 ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
}

std::string adapters_of(const EndpointView& endpoint) {
  std::string list;
  for (const std::string& adapter : endpoint.adapters_active)
    list += (list.empty() ? "" : ",") + tools::printable(adapter);
  if (list.size() > kAdaptersColumn) list = list.substr(0, kAdaptersColumn - 2) + "..";
  return list.empty() ? "-" : list;
}

nlohmann::ordered_json to_json(const EndpointView& endpoint) {
  nlohmann::ordered_json out;
  out["id"] = endpoint.id;
  out["name"] = endpoint.name;
  out["address"] = endpoint.address;
  out["pool"] = endpoint.pool;
  out["role"] = endpoint.role_name();
  out["state"] = endpoint.state_name();
  out["why_not_ready"] = endpoint.why_not_ready;
  out["source"] = endpoint.source;
  out["generation"] = endpoint.generation;
  out["engine"] = endpoint.engine;
  out["rank"] = told_json(endpoint.rank);
  out["load_age_ms"] =
      endpoint.load_told ? nlohmann::ordered_json(endpoint.load_age_ms) : nlohmann::ordered_json();
  out["scrape_failures"] = endpoint.scrape_failures;
  out["inflight_requests"] = endpoint.inflight_requests;
  out["inflight_tokens"] = endpoint.inflight_tokens;
  out["waiting"] = told_json(endpoint.waiting);
  out["running"] = told_json(endpoint.running);
  out["kv_use_ppm"] = told_json(endpoint.kv_use_ppm);
  out["block_tokens"] = told_json(endpoint.block_tokens);
  out["live_blocks"] = endpoint.live_blocks;
  out["capacity_blocks"] = endpoint.capacity_blocks;
  out["models"] = endpoint.models;
  out["adapters_active"] = endpoint.adapters_active;
  return out;
}

void print_table(const std::vector<EndpointView>& endpoints) {
  Table table({"NAME", "ADDRESS", "STATE", "ROLE"});
  for (const char* head : {"IN-FLIGHT", "TOKENS", "WAITING", "RUNNING", "KV", "AGE", "BLOCKS"})
    table.head(head, Table::kRight);
  for (const char* head : {"ADAPTERS", "WHY NOT READY"}) table.head(head, Table::kLeft);
  for (const EndpointView& endpoint : endpoints) {
    table.row({tools::printable(endpoint.name), tools::printable(endpoint.address),
               endpoint.state_name(), endpoint.role_name(),
               std::to_string(endpoint.inflight_requests), std::to_string(endpoint.inflight_tokens),
               told(endpoint.waiting), told(endpoint.running), told_share(endpoint.kv_use_ppm),
               told_age(endpoint), std::to_string(endpoint.live_blocks), adapters_of(endpoint),
               tools::printable(endpoint.why_not_ready)});
  }
  table.print();
}

// One that holds a line's end would be read as two.
std::vector<std::string> names_of(const std::vector<EndpointView>& endpoints, bool pools) {
  std::vector<std::string> names;
  for (const EndpointView& endpoint : endpoints) {
    const std::string& name = pools ? endpoint.pool : endpoint.name;
    const bool seen = pools && std::find(names.begin(), names.end(), name) != names.end();
    if (!seen && name.find('\n') == std::string::npos) names.push_back(name);
  }
  return names;
}

void show_names(const std::vector<std::string>& names, const Look& look) {
  if (look.json) {
    constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
    const nlohmann::ordered_json out = {{look.pools ? "pools" : "names", names}};
    std::printf("%s\n", out.dump(2, ' ', false, kReplace).c_str());
    return;
  }
  for (const std::string& name : names) std::printf("%s\n", name.c_str());
}

void show(tools::ControlClient& control, const Look& look) {
  const std::vector<EndpointView> endpoints = ask_endpoints(control);
  if (look.names || look.pools) {
    show_names(names_of(endpoints, look.pools), look);
    return;
  }
  if (!look.json) {
    print_table(endpoints);
    return;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const EndpointView& endpoint : endpoints) list.push_back(to_json(endpoint));
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  const int indent = look.watch ? -1 : 2;  // watching: one object a line
  std::printf(
      "%s\n",
      nlohmann::ordered_json{{"endpoints", list}}.dump(indent, ' ', false, kReplace).c_str());
}

// Before each table but the first: a terminal is cleared, in a file an empty line stands between.
void begin_frame(const Look& look, bool first) {
  if (look.json) return;
  if (tools::output_is_screen()) {
    std::fputs("\x1b[H\x1b[2J", stdout);
  } else if (!first) {
    std::putchar('\n');
  }
}

// Goes on when the daemon restarts: that is when one watches. The first look must succeed.
void watch(const Look& look) {
  std::unique_ptr<tools::ControlClient> control;
  for (std::uint32_t shown = 0; look.times == 0 || shown < look.times; ++shown) {
    if (shown != 0) std::this_thread::sleep_for(std::chrono::duration<double>(look.interval_s));
    const bool last = shown + 1 == look.times;
    try {
      if (!control) control = std::make_unique<tools::ControlClient>(look.socket, "pickctl");
      begin_frame(look, shown == 0);
      show(*control, look);
    } catch (const std::runtime_error& error) {
      if (shown == 0 || last) throw;
      control.reset();
      std::fprintf(stderr, "pickctl: %s; trying again\n", error.what());
    }
    tools::flush_output();
  }
}

}  // namespace

Run make_endpoints(CLI::App& app, const Common& common) {
  auto look = std::make_shared<Look>();
  auto* flag = app.add_flag("--watch", look->watch,
                            "Show them again and again; with --json one object a line. Goes on "
                            "when the daemon restarts");
  app.add_option("--interval", look->interval_s, "Seconds between two looks of --watch")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str()
      ->needs(flag);
  app.add_option("--times", look->times, "Looks of --watch before it ends; 0: no end")
      ->capture_default_str()
      ->needs(flag);
  app.add_flag("--names", look->names, "Print their names only, one a line")->excludes(flag);
  app.add_flag("--pools", look->pools, "Print the names of their pools only")->excludes(flag);
  return [look, &common] {
    look->socket = common.socket;
    look->json = common.json;
    if (look->watch) {
      watch(*look);
    } else {
      tools::ControlClient control(look->socket, "pickctl");
      show(control, *look);
    }
    return 0;
  };
}

}  // namespace pickd::ctl
