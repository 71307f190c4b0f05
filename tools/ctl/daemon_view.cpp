#include "tools/ctl/daemon_view.hpp"

#include <iterator>

#include "abi/state_layout.hpp"

namespace pickd::ctl {

namespace {

std::vector<std::string> texts_of(
    const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* list) {
  std::vector<std::string> texts;
  if (list == nullptr) return texts;
  for (const auto* text : *list) texts.push_back(text->str());
  return texts;
}

EndpointView view_of(const fb::EndpointStatus& endpoint) {
  EndpointView view;
  view.id = endpoint.id();
  view.generation = endpoint.generation();
  view.name = text_of(endpoint.name());
  view.address = text_of(endpoint.address());
  view.pool = text_of(endpoint.pool());
  view.role = endpoint.role();
  view.state = endpoint.state();
  view.why_not_ready = text_of(endpoint.why_not_ready());
  view.source = text_of(endpoint.source());
  view.engine = text_of(endpoint.engine());
  view.rank = endpoint.rank();
  view.waiting = endpoint.waiting();
  view.running = endpoint.running();
  view.kv_use_ppm = endpoint.kv_use_ppm();
  view.inflight_requests = endpoint.inflight_requests();
  view.inflight_tokens = endpoint.inflight_tokens();
  view.live_blocks = endpoint.live_blocks();
  view.capacity_blocks = endpoint.capacity_blocks();
  view.load_told = endpoint.load_told();
  view.load_age_ms = endpoint.load_age_ms();
  view.scrape_failures = endpoint.scrape_failures();
  view.block_tokens = endpoint.block_tokens();
  view.models = texts_of(endpoint.models());
  view.adapters_active = texts_of(endpoint.adapters_active());
  return view;
}

}  // namespace

const char* EndpointView::state_name() const {
  static constexpr const char* kNames[] = {"free", "ready",    "suspect",
                                           "down", "draining", "starting"};
  return state < std::size(kNames) ? kNames[state] : "unknown";
}

const char* EndpointView::role_name() const {
  static constexpr const char* kNames[] = {"both", "decode", "prefill", "encode"};
  return role < std::size(kNames) ? kNames[role] : "unknown";
}

bool EndpointView::ready() const {
  return state == static_cast<std::uint8_t>(abi::EndpointState::kReady);
}

std::string text_of(const flatbuffers::String* text) { return text == nullptr ? "" : text->str(); }

std::vector<EndpointView> ask_endpoints(tools::ControlClient& control) {
  std::vector<EndpointView> all;
  std::uint32_t from = 0;
  do {
    const auto& page = tools::ControlClient::expect<fb::EndpointsAnswer>(
        control.ask([from](client::ControlExchange& exchange) {
          exchange.set_body(fb::CreateAskEndpoints(exchange.builder(), from));
        }));
    if (page.endpoints() != nullptr) {
      for (const fb::EndpointStatus* endpoint : *page.endpoints())
        all.push_back(view_of(*endpoint));
    }
    from = page.next_id();
  } while (from != 0);
  return all;
}

std::map<std::string, std::uint64_t> counters_of(const fb::StatusAnswer& status) {
  std::map<std::string, std::uint64_t> counters;
  if (status.counters() == nullptr) return counters;
  for (const fb::Counter* counter : *status.counters())
    counters[text_of(counter->name())] = counter->value();
  return counters;
}

ConfigView ask_config(tools::ControlClient& control) {
  ConfigView view;
  std::uint32_t from = 0;
  do {
    const auto& page = tools::ControlClient::expect<fb::ConfigAnswer>(
        control.ask([from](client::ControlExchange& exchange) {
          exchange.set_body(fb::CreateAskConfig(exchange.builder(), from));
        }));
    view.path = text_of(page.path());
    view.text += text_of(page.text());
    from = page.next_byte();
  } while (from != 0);
  return view;
}

}  // namespace pickd::ctl
