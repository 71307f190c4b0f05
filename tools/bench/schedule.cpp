// Options and output of `pickd-bench schedule`: what a decision costs in the pick core, by profile,
// number of endpoints and plugin. One thread, the code that the daemon runs, no rings.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/bench/schedule_rig.hpp"
#include "tools/bench/store_measure.hpp"
#include "tools/bench/subcommands.hpp"

namespace pickd::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::vector<std::string> profiles = {"epp-default", "least-predicted-cost"};
  std::vector<std::uint32_t> endpoints = {5, 25, 100, 1000};
  std::uint32_t prompt_tokens = 4000;
  std::uint32_t picks = 20'000;
  bool json = false;
};

struct PluginCost {
  std::string type;
  double p50_ns;  // of the profile, less the profile without it
};

struct ProfileFigures {
  std::string name;
  std::vector<ScheduleFigures> by_endpoints;  // in the order of the options
  double ns_per_endpoint = 0;                 // between the two largest numbers
  std::vector<PluginCost> plugins;            // at the number next to the largest
};

ProfileFigures measure_profile(const std::string& name, const Options& options) {
  ProfileFigures figures;
  figures.name = name;
  for (const std::uint32_t endpoints : options.endpoints) {
    ScheduleRig rig(endpoints, options.prompt_tokens);
    figures.by_endpoints.push_back(rig.measure(named_profile(name), options.picks));
  }
  const std::size_t last = options.endpoints.size() - 1;
  if (last == 0) return figures;
  figures.ns_per_endpoint =
      (figures.by_endpoints[last].pick_p50_ns - figures.by_endpoints[last - 1].pick_p50_ns) /
      (options.endpoints[last] - options.endpoints[last - 1]);
  ScheduleRig rig(options.endpoints[last - 1], options.prompt_tokens);
  for (const config::PluginConfig& plugin : named_profile(name).plugins) {
    const ScheduleFigures all = rig.measure(named_profile(name), options.picks);
    const ScheduleFigures rest =
        rig.measure(without(named_profile(name), plugin.name), options.picks);
    figures.plugins.push_back({plugin.type, all.pick_p50_ns - rest.pick_p50_ns});
  }
  return figures;
}

void print_json(const std::vector<ProfileFigures>& all, double line_read_ns, double clock_ns,
                const Options& options) {
  Json json;
  json["line_read_ns"] = line_read_ns;
  json["clock_ns"] = clock_ns;
  json["prompt_tokens"] = options.prompt_tokens;
  for (const ProfileFigures& profile : all) {
    Json& out = json["profiles"][profile.name];
    for (std::size_t at = 0; at < options.endpoints.size(); ++at) {
      const ScheduleFigures& figures = profile.by_endpoints[at];
      out["endpoints"][std::to_string(options.endpoints[at])] = {
          {"pick_p50_ns", figures.pick_p50_ns},
          {"pick_p99_ns", figures.pick_p99_ns},
          {"remember_p50_ns", figures.remember_p50_ns},
          {"predictions_p50_ns", figures.predictions_p50_ns}};
    }
    out["ns_per_endpoint"] = profile.ns_per_endpoint;
    for (const PluginCost& plugin : profile.plugins) out["plugins"][plugin.type] = plugin.p50_ns;
  }
  std::printf("%s\n", json.dump(2).c_str());
}

void print_table(const std::vector<ProfileFigures>& all, double line_read_ns, double clock_ns,
                 const Options& options) {
  std::printf(
      "one thread, prompts of %u tokens; random line read %.0f ns, reading the clock %.0f ns "
      "(taken off)\n\n",
      options.prompt_tokens, line_read_ns, clock_ns);
  std::printf("%-20s %10s %12s %12s %16s %20s\n", "profile", "endpoints", "pick p50 us",
              "pick p99 us", "remember p50 us", "predictions p50 us");
  for (const ProfileFigures& profile : all) {
    for (std::size_t at = 0; at < options.endpoints.size(); ++at) {
      const ScheduleFigures& figures = profile.by_endpoints[at];
      std::printf("%-20s %10u %12.2f %12.2f %16.2f %20.2f\n", at == 0 ? profile.name.c_str() : "",
                  options.endpoints[at], figures.pick_p50_ns / 1e3, figures.pick_p99_ns / 1e3,
                  figures.remember_p50_ns / 1e3, figures.predictions_p50_ns / 1e3);
    }
    std::printf("%-18s %.1f ns an endpoint\n", "", profile.ns_per_endpoint);
    for (const PluginCost& plugin : profile.plugins)
      std::printf("%-18s %-30s %8.0f ns\n", "", plugin.type.c_str(), plugin.p50_ns);
  }
}

void run(const Options& options) {
  const double line_read_ns = measure_line_read_ns(64ULL << 20);
  std::vector<ProfileFigures> all;
  for (const std::string& name : options.profiles) all.push_back(measure_profile(name, options));
  const double clock_ns = measure_clock_ns();
  if (options.json) {
    print_json(all, line_read_ns, clock_ns, options);
  } else {
    print_table(all, line_read_ns, clock_ns, options);
  }
}

}  // namespace

void add_schedule(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--profile", options->profiles, "Profiles by name")->capture_default_str();
  app.add_option("--endpoints", options->endpoints, "Numbers of endpoints, ascending")
      ->check(CLI::Range(1U, kRigEndpointsMax))
      ->capture_default_str();
  app.add_option("--prompt-tokens", options->prompt_tokens, "Tokens of a prompt")
      ->check(CLI::Range(64U, 131'072U))
      ->capture_default_str();
  app.add_option("--picks", options->picks, "Picks of a measurement")
      ->check(CLI::Range(100U, 10'000'000U))
      ->capture_default_str();
  app.add_flag("--json", options->json, "JSON instead of a table");
  app.callback([options] { run(*options); });
}

}  // namespace pickd::bench
