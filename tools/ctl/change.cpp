// pickctl drain, undrain, remove, add: changes of the endpoints, for admins of the daemon.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "tools/common/control_client.hpp"
#include "tools/ctl/commands.hpp"
#include "tools/ctl/daemon_view.hpp"

namespace pickd::ctl {

namespace {

constexpr std::chrono::milliseconds kLook{100};  // between two looks at what is in flight

struct Which {
  std::vector<std::string> names;
  std::string pool;
};

void add_which(CLI::App& app, Which& which) {
  auto* names = app.add_option("NAME", which.names, "Endpoints, by name");
  auto* pool = app.add_option("--pool", which.pool, "All endpoints of this pool instead");
  names->excludes(pool);
}

std::vector<std::string> names_of(const Which& which, tools::ControlClient& control) {
  if (which.pool.empty()) {
    if (which.names.empty())
      throw CLI::ValidationError(
          "name at least one endpoint, or --pool; `pickctl endpoints` lists "
          "them");
    return which.names;
  }
  std::vector<std::string> names;
  for (const EndpointView& endpoint : ask_endpoints(control)) {
    if (endpoint.pool == which.pool) names.push_back(endpoint.name);
  }
  if (names.empty())
    throw std::runtime_error("no endpoint is in pool \"" + which.pool +
                             "\"; `pickctl endpoints --json` shows the pools");
  return names;
}

void change(tools::ControlClient& control, fb::EndpointOp op, const std::string& name) {
  tools::ControlClient::expect<fb::Outcome>(control.ask([&](client::ControlExchange& exchange) {
    flatbuffers::FlatBufferBuilder& builder = exchange.builder();
    const auto text = builder.CreateString(name);
    fb::EndpointBuilder endpoint(builder);
    endpoint.add_name(text);
    exchange.set_body(fb::CreateChangeEndpoint(builder, op, endpoint.Finish()));
  }));
}

// Requests in flight on `names`; one that is gone has none.
std::uint64_t inflight_of(tools::ControlClient& control, const std::vector<std::string>& names) {
  std::uint64_t count = 0;
  for (const EndpointView& endpoint : ask_endpoints(control)) {
    if (std::find(names.begin(), names.end(), endpoint.name) != names.end())
      count += endpoint.inflight_requests;
  }
  return count;
}

struct Drained {
  bool empty = false;
  std::uint64_t left = 0;
};

Drained wait_until_empty(tools::ControlClient& control, const std::vector<std::string>& names,
                         double timeout_s) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  std::uint64_t shown = 0;
  for (;;) {
    const std::uint64_t left = inflight_of(control, names);
    if (left == 0) return {true, 0};
    if (left != shown) std::fprintf(stderr, "pickctl: %" PRIu64 " requests in flight\n", left);
    shown = left;
    if (timeout_s > 0 && std::chrono::steady_clock::now() >= end) return {false, left};
    std::this_thread::sleep_for(kLook);
  }
}

void print_done(const Common& common, const char* what, const std::vector<std::string>& names) {
  if (common.json) {
    std::printf("%s\n", nlohmann::ordered_json{{what, names}}.dump(2).c_str());
    return;
  }
  for (const std::string& name : names) std::printf("%s %s\n", what, name.c_str());
}

// Where an endpoint of the configuration file would be asked; what clients add is not, by itself.
std::string metrics_at(const std::string& address) {
  const std::size_t scheme = address.find("://");
  const std::size_t host = scheme == std::string::npos ? 0 : scheme + 3;
  if (scheme != std::string::npos && address.rfind("http", 0) != 0)
    throw CLI::ValidationError("nothing is known of metrics at " + address +
                               "; say --metrics-url or --no-scrape");
  return (scheme == std::string::npos ? "http://" : address.substr(0, host)) +
         address.substr(host, address.find_first_of("/?", host) - host) + "/metrics";
}

Run make_change(CLI::App& app, const Common& common, fb::EndpointOp op, const char* done) {
  auto which = std::make_shared<Which>();
  add_which(app, *which);
  return [which, &common, op, done] {
    tools::ControlClient control(common.socket, "pickctl");
    const std::vector<std::string> names = names_of(*which, control);
    for (const std::string& name : names) change(control, op, name);
    print_done(common, done, names);
    return 0;
  };
}

}  // namespace

Run make_drain(CLI::App& app, const Common& common) {
  struct Drain : Which {
    bool wait = false;
    double timeout_s = 0;
  };
  auto drain = std::make_shared<Drain>();
  add_which(app, *drain);
  auto* wait =
      app.add_flag("--wait", drain->wait, "Return when nothing is in flight on them any more");
  app.add_option("--timeout", drain->timeout_s,
                 "Seconds after which --wait gives up with exit code 1; 0: never")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str()
      ->needs(wait);
  return [drain, &common] {
    tools::ControlClient control(common.socket, "pickctl");
    const std::vector<std::string> names = names_of(*drain, control);
    for (const std::string& name : names) change(control, fb::EndpointOp::Drain, name);
    if (drain->wait) {
      const Drained drained = wait_until_empty(control, names, drain->timeout_s);
      if (!drained.empty)
        throw std::runtime_error("still " + std::to_string(drained.left) +
                                 " requests in flight after the time-out; they stay draining");
    }
    print_done(common, drain->wait ? "drained" : "draining", names);
    return 0;
  };
}

Run make_undrain(CLI::App& app, const Common& common) {
  return make_change(app, common, fb::EndpointOp::Undrain, "undrained");
}

Run make_remove(CLI::App& app, const Common& common) {
  return make_change(app, common, fb::EndpointOp::Remove, "removed");
}

Run make_add(CLI::App& app, const Common& common) {
  struct Added {
    std::string name;
    std::string address;
    std::string pool;
    std::string role = "both";
    std::vector<std::string> models;
    std::vector<std::string> labels;
    std::uint64_t capacity_blocks = 0;
    std::string metrics_url;
    std::string engine;
    bool unwatched = false;
    bool update = false;
  };
  auto added = std::make_shared<Added>();
  app.add_option("NAME", added->name, "Its name")->required();
  app.add_option("ADDRESS", added->address, "HOST:PORT that the gateway sends requests to")
      ->required();
  app.add_option("--pool", added->pool, "Its pool; default: default");
  app.add_option("--role", added->role, "What it does")
      ->check(CLI::IsMember({"both", "decode", "prefill", "encode"}))
      ->capture_default_str();
  app.add_option("--model", added->models, "A model it serves; none: any. May be repeated");
  app.add_option("--label", added->labels, "KEY=VALUE. May be repeated");
  app.add_option("--capacity-blocks", added->capacity_blocks,
                 "Prefix blocks its cache holds; 0: as state.capacity_tokens says");
  auto* page = app.add_option(
      "--metrics-url", added->metrics_url,
      "Where its metrics are read, with http:// or https://. Default: http://ADDRESS/metrics");
  app.add_flag("--no-scrape", added->unwatched,
               "Read no metrics: it is ready at once, and nobody learns of its load or its end")
      ->excludes(page);
  app.add_option("--engine", added->engine, "Whose metrics page it is; default: found out");
  app.add_flag("--update", added->update, "It is there already: change it to this");
  return [added, &common] {
    static constexpr const char* kRoles[] = {"both", "decode", "prefill", "encode"};
    tools::ControlClient control(common.socket, "pickctl");
    const auto fill = [&](client::ControlExchange& exchange) {
      flatbuffers::FlatBufferBuilder& builder = exchange.builder();
      std::vector<flatbuffers::Offset<fb::Label>> labels;
      for (const std::string& label : added->labels) {
        const std::size_t equals = label.find('=');
        if (equals == std::string::npos || equals == 0)
          throw CLI::ValidationError("--label " + label + ": a label is KEY=VALUE");
        const auto key = builder.CreateString(label.substr(0, equals));
        const auto value = builder.CreateString(label.substr(equals + 1));
        labels.push_back(fb::CreateLabel(builder, key, value));
      }
      const auto role = static_cast<std::uint8_t>(
          std::find(std::begin(kRoles), std::end(kRoles), added->role) - std::begin(kRoles));
      const auto name = builder.CreateString(added->name);
      const auto address = builder.CreateString(added->address);
      const auto pool = builder.CreateString(added->pool);
      const auto models = builder.CreateVectorOfStrings(added->models);
      const auto label_list = builder.CreateVector(labels);
      const auto metrics_url = builder.CreateString(added->unwatched || !added->metrics_url.empty()
                                                        ? added->metrics_url
                                                        : metrics_at(added->address));
      const auto engine = builder.CreateString(added->engine);
      fb::EndpointBuilder endpoint(builder);
      endpoint.add_name(name);
      endpoint.add_address(address);
      endpoint.add_pool(pool);
      endpoint.add_role(role);
      endpoint.add_models(models);
      endpoint.add_labels(label_list);
      endpoint.add_capacity_blocks(added->capacity_blocks);
      endpoint.add_metrics_url(metrics_url);
      endpoint.add_engine(engine);
      const auto op = added->update ? fb::EndpointOp::Update : fb::EndpointOp::Add;
      exchange.set_body(fb::CreateChangeEndpoint(builder, op, endpoint.Finish()));
    };
    tools::ControlClient::expect<fb::Outcome>(control.ask(fill));
    print_done(common, added->update ? "updated" : "added", {added->name});
    return 0;
  };
}

}  // namespace pickd::ctl
