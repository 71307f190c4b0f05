// pickctl endpoints: one line each, once or again and again.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "abi/state_layout.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/human.hpp"
#include "tools/ctl/commands.hpp"

namespace pickd::ctl {

namespace {

constexpr std::size_t kAdaptersColumn = 16;

const char* state_name(std::uint8_t state) {
  static constexpr const char* kNames[] = {"free", "ready",    "suspect",
                                           "down", "draining", "starting"};
  return state < std::size(kNames) ? kNames[state] : "unknown";
}
const char* role_name(std::uint8_t role) {
  static constexpr const char* kNames[] = {"both", "decode", "prefill", "encode"};
  return role < std::size(kNames) ? kNames[role] : "unknown";
}

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
std::string told_age(const fb::EndpointStatus& endpoint) {
  return endpoint.load_told() ? tools::human_ms(endpoint.load_age_ms()) : "-";
}
nlohmann::ordered_json told_json(std::uint32_t value) {
  return value == abi::kUnknown32 ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
}

// Absent from a daemon that is older than the field.
std::string text_of(const flatbuffers::String* text) { return text == nullptr ? "" : text->str(); }

std::string adapters_of(const fb::EndpointStatus& endpoint) {
  std::string list;
  for (const auto* adapter : *endpoint.adapters_active())
    list += (list.empty() ? "" : ",") + tools::printable(adapter->string_view());
  if (list.size() > kAdaptersColumn) list = list.substr(0, kAdaptersColumn - 2) + "..";
  return list.empty() ? "-" : list;
}

nlohmann::ordered_json to_json(const fb::EndpointStatus& endpoint) {
  nlohmann::ordered_json out;
  out["id"] = endpoint.id();
  out["name"] = endpoint.name()->str();
  out["address"] = endpoint.address()->str();
  out["pool"] = endpoint.pool()->str();
  out["role"] = role_name(endpoint.role());
  out["state"] = state_name(endpoint.state());
  out["why_not_ready"] = text_of(endpoint.why_not_ready());
  out["source"] = endpoint.source()->str();
  out["generation"] = endpoint.generation();
  out["engine"] = text_of(endpoint.engine());
  out["rank"] = told_json(endpoint.rank());
  out["load_age_ms"] = endpoint.load_told() ? nlohmann::ordered_json(endpoint.load_age_ms())
                                            : nlohmann::ordered_json();
  out["scrape_failures"] = endpoint.scrape_failures();
  out["inflight_requests"] = endpoint.inflight_requests();
  out["inflight_tokens"] = endpoint.inflight_tokens();
  out["waiting"] = told_json(endpoint.waiting());
  out["running"] = told_json(endpoint.running());
  out["kv_use_ppm"] = told_json(endpoint.kv_use_ppm());
  out["live_blocks"] = endpoint.live_blocks();
  out["capacity_blocks"] = endpoint.capacity_blocks();
  out["models"] = nlohmann::ordered_json::array();
  for (const auto* model : *endpoint.models()) out["models"].push_back(model->str());
  out["adapters_active"] = nlohmann::ordered_json::array();
  for (const auto* adapter : *endpoint.adapters_active())
    out["adapters_active"].push_back(adapter->str());
  return out;
}

void print_head() {
  std::printf("%-20s %-22s %-8s %-7s %9s %9s %7s %7s %6s %8s %8s %-*s %s\n", "NAME", "ADDRESS",
              "STATE", "ROLE", "IN-FLIGHT", "TOKENS", "WAITING", "RUNNING", "KV", "AGE", "BLOCKS",
              static_cast<int>(kAdaptersColumn), "ADAPTERS", "WHY NOT READY");
}

void print_line(const fb::EndpointStatus& endpoint) {
  std::printf(
      "%-20s %-22s %-8s %-7s %9" PRIu64 " %9" PRIu64 " %7s %7s %6s %8s %8" PRIu64 " %-*s %s\n",
      tools::printable(endpoint.name()->string_view()).c_str(),
      tools::printable(endpoint.address()->string_view()).c_str(), state_name(endpoint.state()),
      role_name(endpoint.role()), endpoint.inflight_requests(), endpoint.inflight_tokens(),
      told(endpoint.waiting()).c_str(), told(endpoint.running()).c_str(),
      told_share(endpoint.kv_use_ppm()).c_str(), told_age(endpoint).c_str(), endpoint.live_blocks(),
      static_cast<int>(kAdaptersColumn), adapters_of(endpoint).c_str(),
      tools::printable(text_of(endpoint.why_not_ready())).c_str());
}

void show(tools::ControlClient& control, const Options& options) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::uint32_t from = 0;
  do {
    const auto& page = tools::ControlClient::expect<fb::EndpointsAnswer>(
        control.ask([from](client::ControlExchange& exchange) {
          exchange.set_body(fb::CreateAskEndpoints(exchange.builder(), from));
        }));
    if (from == 0 && !options.json) print_head();
    for (const fb::EndpointStatus* endpoint : *page.endpoints()) {
      if (options.json) {
        list.push_back(to_json(*endpoint));
      } else {
        print_line(*endpoint);
      }
    }
    from = page.next_id();
  } while (from != 0);
  if (options.json) {
    constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
    const int indent = options.watch ? -1 : 2;  // watching: one object a line
    std::printf(
        "%s\n",
        nlohmann::ordered_json{{"endpoints", list}}.dump(indent, ' ', false, kReplace).c_str());
  }
}

// Before each table but the first: a terminal is cleared, in a file an empty line stands between.
void begin_frame(const Options& options, bool first) {
  if (options.json) return;
  if (::isatty(STDOUT_FILENO) != 0) {
    std::fputs("\x1b[H\x1b[2J", stdout);
  } else if (!first) {
    std::putchar('\n');
  }
}

// Goes on when the daemon restarts: that is when one watches. The first look must succeed.
void watch(const Options& options) {
  std::unique_ptr<tools::ControlClient> control;
  for (std::uint32_t shown = 0; options.times == 0 || shown < options.times; ++shown) {
    if (shown != 0) std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
    const bool last = shown + 1 == options.times;
    try {
      if (!control) control = std::make_unique<tools::ControlClient>(options.socket, "pickctl");
      begin_frame(options, shown == 0);
      show(*control, options);
    } catch (const std::runtime_error& error) {
      if (shown == 0 || last) throw;
      control.reset();
      std::fprintf(stderr, "pickctl: %s; trying again\n", error.what());
    }
    std::fflush(stdout);
  }
}

}  // namespace

void add_watch_options(CLI::App& app, Options& options) {
  auto* flag = app.add_flag("--watch", options.watch,
                            "Show them again and again; with --json one object a line. Goes on "
                            "when the daemon restarts");
  app.add_option("--interval", options.interval_s, "Seconds between two looks of --watch")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str()
      ->needs(flag);
  app.add_option("--times", options.times, "Looks of --watch before it ends; 0: no end")
      ->capture_default_str()
      ->needs(flag);
}

void run_endpoints(const Options& options) {
  if (options.watch) return watch(options);
  tools::ControlClient control(options.socket, "pickctl");
  show(control, options);
}

}  // namespace pickd::ctl
