// pickctl status.
#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/common/control_client.hpp"
#include "tools/common/human.hpp"
#include "tools/ctl/commands.hpp"
#include "tools/ctl/daemon_view.hpp"

namespace pickd::ctl {

namespace {

// Absent from a daemon that is older than the field.
std::string why_not_io_uring(const fb::StatusAnswer& status) {
  return status.reactor_why() == nullptr ? "" : status.reactor_why()->str();
}

nlohmann::ordered_json json_of(const fb::LatencyModel& model) {
  nlohmann::ordered_json out;
  out["samples"] = model.samples();
  out["mape"] = model.mape();
  out["bias"] = model.bias();
  out["p90_coverage"] = model.coverage();
  out["ready"] = model.ready();
  out["drifting"] = model.drifting();
  return out;
}

void print_model(const fb::LatencyClass& of, const char* what, const fb::LatencyModel& model) {
  if (model.samples() == 0) return;
  std::printf("predicts     %s of %s: %" PRIu64
              " samples, off by %.0f %%, bias %+.0f %%, p90 holds "
              "%.0f %%, %s%s\n",
              what, of.name()->size() == 0 ? "all" : of.name()->c_str(), model.samples(),
              100 * model.mape(), 100 * model.bias(), 100 * model.coverage(),
              model.ready() ? "ready" : "not ready", model.drifting() ? ", drifting" : "");
}

void print_json(const fb::StatusAnswer& status) {
  nlohmann::ordered_json out;
  out["version"] = status.version()->str();
  out["pid"] = status.pid();
  out["socket"] = status.socket()->str();
  out["uptime_ms"] = status.uptime_ms();
  out["daemon_epoch"] = status.daemon_epoch();
  out["instance"] = status.instance();
  out["reactor"] = status.reactor()->str();
  out["reactor_why"] = why_not_io_uring(status);
  out["profile"] = status.profile()->str();
  out["state_bytes"] = status.state_bytes();
  out["block_tokens"] = status.block_tokens();
  out["ttl_ms"] = status.ttl_ms();
  out["tick"] = status.tick();
  out["clients"] = status.clients();
  out["channels"] = status.channels();
  out["workers"] = status.workers();
  out["endpoints"] = status.endpoints();
  out["endpoints_ready"] = status.endpoints_ready();
  out["reservations"] = status.reservations();
  out["prefix_words"] = status.prefix_words();
  out["prefix_live"] = status.prefix_live();
  if (status.latency() != nullptr) {
    out["latency"] = nlohmann::ordered_json::array();
    for (const fb::LatencyClass* of : *status.latency()) {
      nlohmann::ordered_json model;
      model["class"] = of->name()->str();
      model["output_tokens"] = of->output_tokens();
      model["ttft"] = json_of(*of->ttft());
      model["itl"] = json_of(*of->itl());
      out["latency"].push_back(model);
    }
  }
  for (const fb::Counter* counter : *status.counters()) {
    out["counters"][counter->name()->str()] = counter->value();
  }
  std::printf("%s\n",
              out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void print_text(const fb::StatusAnswer& status) {
  std::printf("pickd %s, pid %u, up %s, on %s\n", status.version()->c_str(), status.pid(),
              tools::human_ms(status.uptime_ms()).c_str(), status.socket()->c_str());
  std::printf("profile      %s\n", status.profile()->c_str());
  std::printf("endpoints    %u, %u ready\n", status.endpoints(), status.endpoints_ready());
  std::printf("clients      %u, %u channels, %u worker%s, reactor %s\n", status.clients(),
              status.channels(), status.workers(), status.workers() == 1 ? "" : "s",
              status.reactor()->c_str());
  if (const std::string why = why_not_io_uring(status); !why.empty())
    std::printf("             no io_uring: %s\n", why.c_str());
  const double load = status.prefix_words() == 0
                          ? 0
                          : 100.0 * static_cast<double>(status.prefix_live()) /
                                static_cast<double>(status.prefix_words());
  std::printf("state        %s, blocks of %u tokens, TTL %s\n",
              tools::human_bytes(status.state_bytes()).c_str(), status.block_tokens(),
              tools::human_ms(status.ttl_ms()).c_str());
  std::printf("prefixes     %" PRIu64 " blocks held, %.1f %% of the table\n", status.prefix_live(),
              load);
  std::printf("in flight    %" PRIu64 " requests\n", status.reservations());
  if (status.latency() != nullptr) {
    for (const fb::LatencyClass* of : *status.latency()) {
      print_model(*of, "TTFT", *of->ttft());
      print_model(*of, "ITL", *of->itl());
    }
  }
  for (const fb::Counter* counter : *status.counters()) {
    if (counter->value() != 0)
      std::printf("%-48s %" PRIu64 "\n", counter->name()->c_str(), counter->value());
  }
}

}  // namespace

Run make_status(CLI::App& app, const Common& common) {
  auto check = std::make_shared<bool>(false);
  app.add_flag("--check", *check,
               "Exit code 3 when a thread of the daemon stands still: for probes that restart it");
  return [check, &common] {
    tools::ControlClient control(common.socket, "pickctl");
    const auto& status = control.ask<fb::AskStatus, fb::StatusAnswer>(fb::CreateAskStatus);
    common.json ? print_json(status) : print_text(status);
    return *check && counters_of(status)["pickd_threads_standing_still"] != 0 ? kExitFound : 0;
  };
}

}  // namespace pickd::ctl
