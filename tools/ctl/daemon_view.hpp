// What a running daemon tells of itself, copied out of its answers: for the commands that compute
// with it, or show it in several forms.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "abi/limits.hpp"
#include "tools/common/control_client.hpp"

namespace pickd::ctl {

struct EndpointView {
  std::uint32_t id = 0;
  std::uint32_t generation = 0;
  std::string name;
  std::string address;
  std::string pool;
  std::uint8_t role = 0;
  std::uint8_t state = 0;
  std::string why_not_ready;
  std::string source;
  std::string engine;
  std::uint32_t rank = 0;  // this and the next three: abi::kUnknown32 where nobody told
  std::uint32_t waiting = 0;
  std::uint32_t running = 0;
  std::uint32_t kv_use_ppm = 0;
  std::uint64_t inflight_requests = 0;
  std::uint64_t inflight_tokens = 0;
  std::uint64_t live_blocks = 0;
  std::uint64_t capacity_blocks = 0;  // 0: no limit
  bool load_told = false;
  std::uint64_t load_age_ms = 0;  // holds with load_told
  std::uint32_t scrape_failures = 0;
  std::uint32_t block_tokens = 0;  // of the engine's cache; abi::kUnknown32 where not told
  std::vector<std::string> models;
  std::vector<std::string> adapters_active;

  const char* state_name() const;
  const char* role_name() const;
  bool ready() const;
};

// All of them, by id. Throws std::runtime_error, as the next do.
std::vector<EndpointView> ask_endpoints(tools::ControlClient& control);

// Text of a field that an older daemon does not send.
std::string text_of(const flatbuffers::String* text);

// The counters of an answer by their names, as "pickd_picks_total".
std::map<std::string, std::uint64_t> counters_of(const fb::StatusAnswer& status);

struct ConfigView {
  std::string path;  // empty: the daemon reads no file
  std::string text;  // YAML
};
ConfigView ask_config(tools::ControlClient& control);

}  // namespace pickd::ctl
