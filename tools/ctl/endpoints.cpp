// pickctl endpoints.
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "abi/state_layout.hpp"
#include "tools/common/control_client.hpp"
#include "tools/ctl/commands.hpp"

namespace pickd::ctl {

namespace {

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
nlohmann::ordered_json told_json(std::uint32_t value) {
  return value == abi::kUnknown32 ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
}

nlohmann::ordered_json to_json(const fb::EndpointStatus& endpoint) {
  nlohmann::ordered_json out;
  out["id"] = endpoint.id();
  out["name"] = endpoint.name()->str();
  out["address"] = endpoint.address()->str();
  out["pool"] = endpoint.pool()->str();
  out["role"] = role_name(endpoint.role());
  out["state"] = state_name(endpoint.state());
  out["source"] = endpoint.source()->str();
  out["generation"] = endpoint.generation();
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

void print_line(const fb::EndpointStatus& endpoint) {
  std::printf("%-20s %-24s %-9s %-8s %9" PRIu64 " %10" PRIu64 " %8s %8s %7s %9" PRIu64 "\n",
              endpoint.name()->c_str(), endpoint.address()->c_str(), state_name(endpoint.state()),
              role_name(endpoint.role()), endpoint.inflight_requests(), endpoint.inflight_tokens(),
              told(endpoint.waiting()).c_str(), told(endpoint.running()).c_str(),
              told_share(endpoint.kv_use_ppm()).c_str(), endpoint.live_blocks());
}

}  // namespace

void run_endpoints(const Options& options) {
  tools::ControlClient control(options.socket, "pickctl");
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  if (!options.json) {
    std::printf("%-20s %-24s %-9s %-8s %9s %10s %8s %8s %7s %9s\n", "NAME", "ADDRESS", "STATE",
                "ROLE", "IN-FLIGHT", "TOKENS", "WAITING", "RUNNING", "KV", "BLOCKS");
  }
  std::uint32_t from = 0;
  do {
    const auto& page = tools::ControlClient::expect<fb::EndpointsAnswer>(
        control.ask([from](client::ControlExchange& exchange) {
          exchange.set_body(fb::CreateAskEndpoints(exchange.builder(), from));
        }));
    for (const fb::EndpointStatus* endpoint : *page.endpoints()) {
      if (options.json) {
        list.push_back(to_json(*endpoint));
      } else {
        print_line(*endpoint);
      }
    }
    from = page.next_id();
  } while (from != 0);
  if (options.json)
    std::printf("%s\n", nlohmann::ordered_json{{"endpoints", list}}
                            .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                            .c_str());
}

}  // namespace pickd::ctl
