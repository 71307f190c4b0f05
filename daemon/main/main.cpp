// pickd: arguments, configuration, signals, start and stop. Everything else is in control/ and
// below.
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "daemon/base/fd.hpp"
#include "daemon/base/log.hpp"
#include "daemon/config/load.hpp"
#include "daemon/control/control_server.hpp"
#include "daemon/control/version.hpp"
#include "daemon/main/descriptors.hpp"
#include "daemon/main/service_manager.hpp"
#include "daemon/net/file_watch.hpp"
#include "daemon/prefix/horizons.hpp"
#include "daemon/state/memory_limit.hpp"

extern char** environ;

namespace {

using pickd::base::Result;

constexpr int kExitFailure = 1;
constexpr int kExitBadConfig = 2;
constexpr std::uint64_t kQuietNs =
    100'000'000;  // after a change of the files, before they are read

struct Arguments {
  std::string config_path;
  std::string check_path;
  std::string profile;
  std::string reactor;
  bool check = false;
  bool print = false;
  bool virtual_clock = false;
};

std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (char** at = environ; *at != nullptr; ++at) variables.emplace_back(*at);
  return variables;
}

int complain(const pickd::base::Error& error, int exit_code) {
  std::fprintf(stderr, "pickd: %s\n", error.text.c_str());
  return exit_code;
}

// The configuration with the command line's profile, and the profile made once to see that it can
// be.
Result<pickd::config::Loaded> load(const Arguments& arguments) {
  auto loaded = pickd::config::load_config(
      arguments.check ? arguments.check_path : arguments.config_path, environment());
  if (!loaded) return loaded;
  if (!arguments.profile.empty()) {
    loaded->config.scheduling = {};
    loaded->config.scheduling.profile = arguments.profile;
  }
  if (!arguments.reactor.empty()) loaded->config.listen.reactor = arguments.reactor;
  if (!loaded->origins.contains("state.size_mib")) {
    // Nobody asked for a size: an eighth of what the cgroup allows is enough.
    const std::uint64_t bytes = pickd::state::default_state_bytes(
        loaded->config.state.size_mib << 20, pickd::state::memory_limit_bytes());
    loaded->config.state.size_mib = std::max<std::uint64_t>(bytes >> 20, 8);
  }
  if (auto checked = pickd::control::check_config(loaded->config); !checked) return checked.error();
  return loaded;
}

// For people who ask the daemon: absolute, since they are elsewhere. Empty: there is none.
std::string config_path(const Arguments& arguments) {
  const char* named = std::getenv("PICKD_CONFIG");
  const std::string path = !arguments.config_path.empty() ? arguments.config_path
                           : named != nullptr             ? named
                                                          : "";
  std::error_code ignored;
  return path.empty() ? path : std::filesystem::absolute(path, ignored).string();
}

// The files that the configuration came from.
std::vector<std::string> sources(const Arguments& arguments, const pickd::config::Loaded& loaded) {
  std::vector<std::string> paths;
  for (const auto& [key, place] : loaded.origins) {
    if (place.source == nullptr || place.line == 0) continue;  // the environment's
    if (std::find(paths.begin(), paths.end(), *place.source) == paths.end())
      paths.push_back(*place.source);
  }
  if (!arguments.config_path.empty() &&
      std::find(paths.begin(), paths.end(), arguments.config_path) == paths.end()) {
    paths.push_back(arguments.config_path);
  }
  if (!loaded.config.scheduling.path.empty()) paths.push_back(loaded.config.scheduling.path);
  return paths;
}

// For `systemctl status`, a line.
std::string summary(pickd::control::ControlServer& control) {
  return "profile " + control.room().schedule().name() + ", " +
         std::to_string(control.room().endpoint_table().count()) + " endpoints";
}

int serve(const Arguments& arguments, const pickd::config::Loaded& loaded) {
  const pickd::config::Config& config = loaded.config;
  const bool virtual_clock = arguments.virtual_clock;
  pickd::base::start_log(config.log.level);
  const std::uint64_t descriptors = pickd::service::raise_descriptor_limit();
  if (const auto why = pickd::service::why_too_few_descriptors(config.listen, descriptors))
    spdlog::warn("{}", *why);
  // Blocked before any thread starts, so that only the descriptor sees them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);  // a write to a client that is gone is an error, not our end
  const pickd::base::Fd signal_fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signal_fd.valid()) return complain(pickd::base::errno_error("signalfd"), kExitFailure);

  auto listener = pickd::service::passed_listener(config.listen.socket);
  if (!listener) return complain(listener.error(), kExitFailure);
  auto server = pickd::control::ControlServer::create(config, virtual_clock, std::move(*listener));
  if (!server) return complain(server.error(), kExitFailure);
  pickd::control::ControlServer& control = **server;
  control.tell_origins(config_path(arguments), loaded.origins);
  // What the file set when it was taken: of all sections but `scheduling`, at the start.
  pickd::config::FileSections in_force = loaded.sections;
  const auto reload = [&] {
    pickd::service::say_reloading();
    auto next = load(arguments);
    if (next) {
      if (auto kept = pickd::config::check_kept(in_force, *next); !kept) next = kept.error();
    }
    if (next) in_force["scheduling"] = next->sections["scheduling"];
    if (next) control.tell_origins(config_path(arguments), next->origins);
    control.reconfigure(next ? Result<pickd::config::Config>(std::move(next->config))
                             : Result<pickd::config::Config>(next.error()));
    pickd::service::say_ready(summary(control));
  };
  auto watched =
      control.reactor().watch(signal_fd.get(), pickd::net::kReadable, [&](std::uint32_t) {
        signalfd_siginfo info{};
        if (::read(signal_fd.get(), &info, sizeof info) != sizeof info) return;
        if (info.ssi_signo == SIGHUP) return reload();
        spdlog::info("stopping on signal {}", info.ssi_signo);
        pickd::service::say_stopping();
        control.stop();
      });
  if (!watched) return complain(watched.error(), kExitFailure);
  std::unique_ptr<pickd::net::FileWatch> files;
  if (const auto paths = sources(arguments, loaded); !paths.empty()) {
    auto watch = pickd::net::FileWatch::create(control.reactor(), paths, kQuietNs, reload);
    // Not worth refusing to serve for: SIGHUP still works.
    if (!watch) spdlog::warn("configuration: {}; changes need SIGHUP", watch.error().text);
    if (watch) files = std::move(*watch);
  }
  spdlog::info("pickd {}: profile {}, {} endpoints, {} MiB of state, blocks of {} tokens",
               pickd::control::kVersion, control.room().schedule().name(),
               control.room().endpoint_table().count(), control.room().segment().bytes() >> 20,
               config.state.block_tokens);
  // Fixed at the start: neither more endpoints nor longer prompts take more memory than this.
  const auto blocks_max = static_cast<std::uint64_t>(
      pickd::prefix::kLoadMax * static_cast<double>(control.room().segment().header().prefix_lines *
                                                    pickd::abi::kWordsPerLine));
  spdlog::info(
      "state: at most {} blocks over all endpoints, {} tokens, in {} MiB of pages of {} KiB",
      blocks_max, blocks_max * config.state.block_tokens, control.room().segment().bytes() >> 20,
      control.room().segment().page_bytes() >> 10);
  spdlog::info("store: {}", control.room().origin());
  spdlog::info("ready on {}", config.listen.socket);
  pickd::service::Watchdog watchdog(control);
  if (watchdog.start()) spdlog::info("watchdog: told by every thread in turn");
  pickd::service::say_ready(summary(control));
  control.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"pickd: picks the endpoint for each LLM request, for all gateways of this node.\n"};
  app.footer(
      "Exit codes: 0 stopped in order or configuration good, 1 cannot run, 2 configuration or "
      "arguments bad.\n"
      "Every scalar setting can be set from the environment, as PICKD_SECTION_KEY.");
  app.add_option("-c,--config", arguments.config_path,
                 "Configuration file (YAML); also PICKD_CONFIG");
  auto* check =
      app.add_option("--check-config", arguments.check_path,
                     "Check this file (none: the environment alone), print what is wrong, exit")
          ->expected(0, 1);
  app.add_flag("--print-config", arguments.print,
               "Print the configuration in force and where each value came from, exit");
  app.add_option("--profile", arguments.profile,
                 "Scheduling profile by name, instead of the configured one");
  app.add_option("--reactor", arguments.reactor,
                 "How sockets are waited for: auto (io_uring if it can be set up, else epoll), "
                 "io_uring (the same, with a warning if it is epoll), epoll; instead of "
                 "listen.reactor")
      ->check(CLI::IsMember({"auto", "io_uring", "epoll"}));
  app.add_flag("--virtual-clock", arguments.virtual_clock,
               "Time stands until a client sets it: for replays and tests");
  app.set_version_flag("--version", std::string("pickd ") + pickd::control::kVersion);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitBadConfig;
  }
  arguments.check = check->count() != 0;

  auto loaded = load(arguments);
  if (!loaded) return complain(loaded.error(), kExitBadConfig);
  if (arguments.print) {
    std::fputs(pickd::config::print_config(*loaded).c_str(), stdout);
    return 0;
  }
  if (arguments.check) {
    const bool nothing = !loaded->path.empty() && loaded->sections.empty();
    std::printf("%s: good%s\n",
                arguments.check_path.empty() ? "configuration" : arguments.check_path.c_str(),
                nothing ? ", but holds nothing: all defaults apply" : "");
    return 0;
  }
  return serve(arguments, *loaded);
}
