#include "daemon/endpoints/endpoint_spec.hpp"

#include <algorithm>

#include "abi/key.hpp"
#include "daemon/config/address.hpp"

namespace pickd::endpoints {

namespace {

bool is_control(char letter) { return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F; }

// A text that may be anything, for a log.
std::string shown(const std::string& name) {
  std::string text = name.substr(0, abi::kEndpointNameBytesMax);
  std::replace_if(text.begin(), text.end(), is_control, '?');
  return text.size() == name.size() ? text : text + "...";
}

// What is wrong with where it is; empty when nothing is.
std::string place_mistake(const EndpointSpec& spec) {
  if (std::string mistake = config::address_mistake(spec.address); !mistake.empty())
    return "its address " + mistake + ", is \"" + shown(spec.address) + "\"";
  if (std::string mistake = config::metrics_url_mistake(spec.metrics_url); !mistake.empty())
    return "its metrics URL " + mistake + ", is \"" + shown(spec.metrics_url) + "\"";
  return "";
}

}  // namespace

base::Result<void> check_spec(const EndpointSpec& spec) {
  const auto refuse = [&spec](const std::string& text) {
    return base::Error{-EINVAL, "endpoint \"" + shown(spec.name) + "\": " + text};
  };
  if (spec.name.empty() || spec.name.size() > abi::kEndpointNameBytesMax) {
    return refuse("its name must have 1 to 127 bytes");
  }
  if (spec.address.empty() || spec.address.size() > abi::kEndpointAddressBytesMax) {
    return refuse("its address must have 1 to 127 bytes");
  }
  for (const std::string* text :
       {&spec.name, &spec.address, &spec.pool, &spec.metrics_url, &spec.engine}) {
    // Terminals and logs show these; what moves a cursor has no place in them.
    const bool control = std::any_of(text->begin(), text->end(), is_control);
    if (text->find('\0') != std::string::npos)
      return refuse("name, address, pool, metrics URL and engine cannot hold NUL bytes");
    if (control)
      return refuse("name, address, pool, metrics URL and engine cannot hold control characters");
  }
  if (spec.pool.empty() || spec.pool.size() > abi::kEndpointNameBytesMax) {
    return refuse("its pool's name must have 1 to 127 bytes");
  }
  if (spec.role > abi::Role::kEncode) {
    return refuse("its role must be 0 (both), 1 (decode), 2 (prefill) or 3 (encode)");
  }
  if (spec.metrics_url.size() > abi::kMetricsUrlBytesMax) {
    return refuse("its metrics URL must have at most 255 bytes");
  }
  if (const std::string mistake = place_mistake(spec); !mistake.empty()) return refuse(mistake);
  if (spec.capacity_blocks > kCapacityBlocksMax) {
    return refuse("its capacity must be at most 1000000000 blocks, or 0 for the configured one");
  }
  if (spec.engine.size() > abi::kEngineBytesMax) {
    return refuse("its engine must have at most 63 bytes");
  }
  if (spec.rank != abi::kUnknown32 && spec.rank > abi::kRankMax) {
    return refuse("its rank must be 0 to 1023, or unknown");
  }
  if (spec.more_ports.size() > abi::kMorePortsMax) {
    return refuse("it has more than 255 further ports");
  }
  if (std::find(spec.more_ports.begin(), spec.more_ports.end(), 0) != spec.more_ports.end()) {
    return refuse("its further ports must be 1 to 65535");
  }
  if (spec.models.size() > abi::kEndpointModelsMax) return refuse("it lists more than 64 models");
  for (const std::string& model : spec.models) {
    if (model.empty() || model.size() > abi::kModelBytesMax) {
      return refuse("a model's name must have 1 to 255 bytes");
    }
  }
  if (spec.labels.size() > abi::kEndpointLabelsMax) return refuse("it has more than 64 labels");
  if (spec.adapters_active.size() > abi::kEndpointAdaptersMax ||
      spec.adapters_waiting.size() > abi::kEndpointAdaptersMax) {
    return refuse("it lists more than 16 adapters of a kind");
  }
  for (const std::vector<std::string>* names : {&spec.adapters_active, &spec.adapters_waiting}) {
    for (const std::string& name : *names) {
      if (name.empty() || name.size() > abi::kAdapterBytesMax) {
        return refuse("an adapter's name must have 1 to 255 bytes");
      }
    }
  }
  if (spec.kv_use_ppm != abi::kUnknown32 && spec.kv_use_ppm > 1'000'000) {
    return refuse("its KV use must be 0 to 1000000 parts per million, or unknown");
  }
  return {};
}

std::uint32_t adapter_hash(const void* name, std::size_t size) {
  const auto hash = static_cast<std::uint32_t>(XXH3_64bits(name, size));
  return hash == 0 ? 1 : hash;
}

}  // namespace pickd::endpoints
