// Config: everything an operator can set, checked and with defaults filled in.
//
// Plain data. How it is read from YAML and the environment is in load.hpp; which settings there
// are, with range, unit and help text, is the table in settings.cpp. Knows no plugin: the pick
// folder gives the `scheduling` tree its meaning.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/config/pool_config.hpp"
#include "daemon/config/tree.hpp"

namespace pickd::config {

struct ListenConfig {
  std::string socket;      // path of the control socket
  std::uint64_t mode = 0;  // permission bits of the socket
  std::string group;       // group of the socket; empty: the daemon's own
  std::optional<std::vector<std::uint32_t>> admin_uids;  // absent: root and the daemon's own
  std::vector<std::uint32_t> allowed_uids;               // empty: whoever the file mode lets in
  std::uint64_t clients_max = 0;
  std::uint64_t channels_max = 0;
  std::uint64_t channels_per_client_max = 0;
  std::uint64_t channels_mib_max = 0;
  std::uint64_t keys_max = 0;  // block keys of one submission
  // Of one user, by uid; 0 as the table says.
  std::uint64_t clients_per_uid_max = 0;
  std::uint64_t channels_per_uid_max = 0;
  std::uint64_t channels_mib_per_uid_max = 0;
  std::uint64_t messages_per_s = 0;
  std::uint64_t blocks_per_s = 0;
  std::string reactor;  // auto, io_uring, epoll
  std::uint64_t hello_within_ms = 0;

  bool operator==(const ListenConfig&) const = default;
};

struct StateConfig {
  std::string path;
  std::uint64_t size_mib = 0;
  std::uint64_t block_tokens = 0;
  std::uint64_t ttl_ms = 0;
  std::uint64_t capacity_tokens = 0;  // of an endpoint that names none; 0: no limit
  std::uint64_t prefix_blocks_min = 0;
  std::uint64_t prefix_blocks_max = 0;
  std::uint64_t endpoints_max = 0;

  bool operator==(const StateConfig&) const = default;
};

struct WorkersConfig {
  std::uint64_t count = 0;
  std::uint64_t spin_us = 0;
  bool busy_poll = false;
  std::vector<std::uint32_t> cpus;  // worker i runs on cpus[i % size]; empty: anywhere

  bool operator==(const WorkersConfig&) const = default;
};

struct ReservationsConfig {
  std::uint64_t max = 0;  // a power of two
  std::uint64_t per_uid_max = 0;
  std::uint64_t lease_ms = 0;
  std::uint64_t come_back_within_ms = 0;

  bool operator==(const ReservationsConfig&) const = default;
};

// What is learned of the latencies of engines.
struct LatencyConfig {
  bool enabled = false;
  std::uint64_t memory_samples = 0;
  std::uint64_t samples_min = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t percentile = 0;

  bool operator==(const LatencyConfig&) const = default;
};

struct ExplainConfig {
  std::uint64_t picks_per_s = 0;  // 0: none
  std::uint64_t memory_kib = 0;   // of a worker

  bool operator==(const ExplainConfig&) const = default;
};

// Where metrics, health and the page are served.
struct AdminConfig {
  std::string listen;      // address:port; empty: no TCP
  std::string socket;      // path; empty: no Unix socket
  std::uint64_t mode = 0;  // permission bits of the socket
  bool allow_remote = false;
  bool page = false;
  std::uint64_t endpoints_max = 0;  // told apart in metrics and on the page
  std::uint64_t connections_max = 0;
  std::uint64_t request_within_ms = 0;
  std::uint64_t idle_ms = 0;

  bool operator==(const AdminConfig&) const = default;
};

struct LogConfig {
  std::string level;  // trace, debug, info, warn, error

  bool operator==(const LogConfig&) const = default;
};

// Metrics of one engine that differ from what is built in; empty: as built in.
struct EngineMetricsConfig {
  std::string name;
  std::string waiting;  // a metric, with labels where it needs some: name{label="value"}
  std::string running;
  std::string kv_use;
  std::string adapters;
  std::string cache_info;
  std::string block_tokens_label;  // of cache_info
  std::string blocks_label;        // of cache_info
  std::string block_tokens;
  std::string blocks;
  Place place;

  bool operator==(const EngineMetricsConfig&) const = default;
};

struct ScrapeConfig {
  bool enabled = false;
  std::uint64_t interval_ms = 0;
  std::uint64_t connect_timeout_ms = 0;
  std::uint64_t timeout_ms = 0;
  std::uint64_t stale_ms = 0;  // 0: two intervals, at least 2 s
  std::uint64_t page_bytes_max = 0;
  std::string path;         // empty: no metrics are read
  std::string health_path;  // empty: the metrics page alone says that an engine lives
  bool tls = false;
  std::string tls_ca_file;
  std::string tls_server_name;
  bool tls_skip_verify = false;
  std::string bearer_token_file;
  std::string engine;                        // for endpoints that name none; empty: detected
  std::vector<EngineMetricsConfig> engines;  // of `scrape.engines`

  bool operator==(const ScrapeConfig&) const = default;
};

struct EndpointConfig {
  std::string name;     // unique, 1..127 bytes
  std::string address;  // "host:port" or a URL, 1..127 bytes
  std::string pool = "default";
  Role role = Role::kBoth;
  std::vector<std::string> models;  // empty: serves any
  std::vector<std::pair<std::string, std::string>> labels;
  std::uint64_t capacity_tokens = 0;  // 0: state.capacity_tokens
  std::string metrics_url;            // empty: http://<address>/metrics
  std::string engine;                 // whose metrics they are; empty: detected
  std::optional<std::uint32_t> rank;  // of several behind one metrics page
  Place place;

  bool operator==(const EndpointConfig&) const = default;
};

// One entry of `plugins:`. The meaning of type and parameters belongs to the pick folder, which
// reads them with a ParameterReader (parameters.hpp).
struct PluginConfig {
  std::string type;
  std::string name;  // the type when the file names none; unique
  Tree parameters;   // a map; null when there are none
  Place place;

  friend bool operator==(const PluginConfig& a, const PluginConfig& b) {
    return a.type == b.type && a.name == b.name && same_tree(a.parameters, b.parameters);
  }
};

struct PluginUse {
  std::string plugin_ref;        // the name of a PluginConfig; it exists
  std::optional<double> weight;  // finite, negative too; absent means 1
  Place place;

  bool operator==(const PluginUse&) const = default;
};

struct ProfileConfig {
  std::string name;
  std::vector<PluginUse> plugins;
  Place place;
  bool implied = false;  // not written: plugins without profiles make one of all that fit

  bool operator==(const ProfileConfig&) const = default;
};

// Either `profile` names a built-in profile, or `plugins` and `profiles` say it all, or nothing is
// set and the default policy holds. `file` is what schedulingConfigFile said: plugins and profiles
// were read from there, so two configurations that differ only in it are equal.
struct SchedulingConfig {
  std::string profile;
  Place profile_place;
  std::string file;
  std::string path;  // of `file`, as it was opened; empty: none was
  std::vector<PluginConfig> plugins;
  std::vector<ProfileConfig> profiles;
  std::string detector;      // the plugin that says whether a pool is saturated; empty: the default
  Tree detector_parameters;  // of the default one, where the file gives them in place
  Place detector_place;

  friend bool operator==(const SchedulingConfig& a, const SchedulingConfig& b) {
    return a.profile == b.profile && a.plugins == b.plugins && a.profiles == b.profiles &&
           a.detector == b.detector && same_tree(a.detector_parameters, b.detector_parameters);
  }
};

struct Config {
  Config();  // the defaults of the table in settings.cpp; valid as it is

  ListenConfig listen;
  StateConfig state;
  WorkersConfig workers;
  ReservationsConfig reservations;
  ScrapeConfig scrape;
  LatencyConfig latency;
  ExplainConfig explain;
  AdminConfig admin;
  LogConfig log;
  SchedulingConfig scheduling;
  std::vector<EndpointConfig>
      endpoints;                  // of `endpoints:` and of `pools:`, in the order of the file
  std::vector<PoolConfig> pools;  // those with ranks or a discovery, in the order of the file

  bool operator==(const Config&) const = default;
};

}  // namespace pickd::config
