// pickctl store.
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/common/control_client.hpp"
#include "tools/common/human.hpp"
#include "tools/ctl/commands.hpp"

namespace pickd::ctl {

namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

nlohmann::ordered_json to_json(const fb::StoreAnswer& store) {
  nlohmann::ordered_json out;
  out["started"] = store.started()->str();
  out["state_bytes"] = store.state_bytes();
  out["block_tokens"] = store.block_tokens();
  out["ttl_ms"] = store.ttl_ms();
  out["words"] = store.words();
  out["live_words"] = store.live_words();
  out["load"] = share(store.live_words(), store.words());
  out["hot_blocks"] = store.hot_blocks();
  out["confirmed_words"] = store.confirmed_words();
  out["dead_words"] = store.dead_words();
  out["cleared_words"] = store.cleared_words();
  out["oldest_age_ms"] = store.oldest_age_ms();
  out["sweep_passes"] = store.sweep_passes();
  out["replaced_words"] = store.replaced_words();
  out["global_cuts"] = store.global_cuts();
  out["global_horizon_age_ms"] = store.global_horizon_age_ms();
  out["endpoints"] = nlohmann::ordered_json::array();
  return out;
}

nlohmann::ordered_json to_json(const fb::StoreEndpoint& endpoint) {
  nlohmann::ordered_json out;
  out["id"] = endpoint.id();
  out["name"] = endpoint.name()->str();
  out["live_blocks"] = endpoint.live_blocks();
  out["capacity_blocks"] = endpoint.capacity_blocks();
  out["horizon_age_ms"] = endpoint.horizon_age_ms();
  out["horizon_rule"] = endpoint.horizon_rule()->str();
  return out;
}

void print_head(const fb::StoreAnswer& store) {
  std::printf("began        %s\n", store.started()->c_str());
  std::printf("size         %s, %" PRIu64 " words, blocks of %u tokens\n",
              tools::human_bytes(store.state_bytes()).c_str(), store.words(), store.block_tokens());
  std::printf("live         %" PRIu64 " words, load %.3f, %" PRIu64 " confirmed by events\n",
              store.live_words(), share(store.live_words(), store.words()),
              store.confirmed_words());
  std::printf("dead         %" PRIu64 " words, free to take\n", store.dead_words());
  std::printf("hot blocks   %" PRIu64 "\n", store.hot_blocks());
  std::printf("oldest       %s (TTL %s)\n", tools::human_ms(store.oldest_age_ms()).c_str(),
              tools::human_ms(store.ttl_ms()).c_str());
  std::printf("sweep        %" PRIu64 " passes, %" PRIu64 " dead words made empty\n",
              store.sweep_passes(), store.cleared_words());
  std::printf("replaced     %" PRIu64 " live words whose lines were full\n",
              store.replaced_words());
  if (store.global_cuts() == 0) {
    std::printf("global cut   never needed\n");
  } else {
    std::printf("global cut   %" PRIu64 " times, all older than %s forgotten\n",
                store.global_cuts(), tools::human_ms(store.global_horizon_age_ms()).c_str());
  }
  std::printf("%-24s %10s %10s %6s %16s %s\n", "NAME", "BLOCKS", "CAPACITY", "FULL", "HORIZON",
              "SET BY");
}

void print_line(const fb::StoreEndpoint& endpoint) {
  const std::string capacity =
      endpoint.capacity_blocks() == 0 ? "-" : std::to_string(endpoint.capacity_blocks());
  std::printf("%-24s %10" PRIu64 " %10s %5.1f%% %16s %s\n", endpoint.name()->c_str(),
              endpoint.live_blocks(), capacity.c_str(),
              100 * share(endpoint.live_blocks(), endpoint.capacity_blocks()),
              tools::human_ms(endpoint.horizon_age_ms()).c_str(), endpoint.horizon_rule()->c_str());
}

void show(const Common& common) {
  tools::ControlClient control(common.socket, "pickctl");
  nlohmann::ordered_json out;
  std::uint32_t from = 0;
  bool first = true;
  do {
    const auto& page = tools::ControlClient::expect<fb::StoreAnswer>(
        control.ask([from](client::ControlExchange& exchange) {
          exchange.set_body(fb::CreateAskStore(exchange.builder(), from));
        }));
    if (first && common.json) out = to_json(page);
    if (first && !common.json) print_head(page);
    first = false;
    for (const fb::StoreEndpoint* endpoint : *page.endpoints()) {
      if (common.json) {
        out["endpoints"].push_back(to_json(*endpoint));
      } else {
        print_line(*endpoint);
      }
    }
    from = page.next_id();
  } while (from != 0);
  if (common.json)
    std::printf("%s\n",
                out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

}  // namespace

Run make_store(CLI::App&, const Common& common) {
  return [&common] {
    show(common);
    return 0;
  };
}

}  // namespace pickd::ctl
