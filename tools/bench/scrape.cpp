// pickd-bench scrape: what scraping many engines costs the daemon, beside the bare exchange of the
// same bytes over the same sockets, in one run.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>

#include "daemon/base/clock.hpp"
#include "daemon/base/fd.hpp"
#include "tools/bench/daemon_process.hpp"
#include "tools/bench/page_server.hpp"
#include "tools/bench/subcommands.hpp"

namespace pickd::bench {

namespace {

struct ScrapeOptions {
  std::uint32_t endpoints = 1000;
  std::uint32_t page_bytes = 6000;
  std::uint32_t interval_ms = 1000;
  double seconds = 10;
  bool json = false;
};

constexpr std::uint32_t kProbes = 5000;
constexpr std::chrono::milliseconds kLookAgain{20};
constexpr std::chrono::seconds kSettle{3};
constexpr std::chrono::seconds kAllSeenMax{60};

// CPU time of a process, all threads.
std::uint64_t cpu_ns(pid_t pid) {
  clockid_t clock{};
  if (::clock_getcpuclockid(pid, &clock) != 0)
    throw std::runtime_error("the CPU clock of pid " + std::to_string(pid));
  return base::clock_ns(clock);
}

std::uint64_t scrapes_of(DaemonProcess& daemon) { return daemon.counter("pickd_scrapes_total"); }

// The floor: CPU time of this thread for one request and its page, with blocking calls and nothing
// done about the bytes.
double bare_exchange_us(const PageServer& server) {
  const std::string& first = server.addresses().front();
  const std::size_t colon = first.find(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(first.substr(colon + 1))));
  ::inet_pton(AF_INET, first.substr(0, colon).c_str(), &address.sin_addr);
  const base::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error(std::string("connect: ") + std::strerror(errno));
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: " + first +
                              "\r\nUser-Agent: pickd\r\nAccept-Encoding: identity\r\n\r\n";
  const std::uint64_t from_ns = base::clock_ns(CLOCK_THREAD_CPUTIME_ID);
  for (std::uint32_t at = 0; at < kProbes; ++at) {
    if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0)
      throw std::runtime_error(std::string("send: ") + std::strerror(errno));
    std::size_t got = 0;
    while (got < server.page_bytes()) {
      char bytes[16384];
      const ssize_t more = ::recv(socket.get(), bytes, sizeof bytes, 0);
      if (more <= 0) throw std::runtime_error("the page server went away");
      got += static_cast<std::size_t>(more);
    }
  }
  return static_cast<double>(base::clock_ns(CLOCK_THREAD_CPUTIME_ID) - from_ns) / 1e3 / kProbes;
}

struct Share {
  double core = 0;       // of one core
  double scrapes_s = 0;  // pages a second
};

Share measure(DaemonProcess& daemon, double seconds) {
  const std::uint64_t scrapes_before = scrapes_of(daemon);
  const std::uint64_t cpu_before_ns = cpu_ns(daemon.pid());
  const std::uint64_t from_ns = base::monotonic_ns();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const std::uint64_t cpu_after_ns = cpu_ns(daemon.pid());
  const double spent_ns = static_cast<double>(base::monotonic_ns() - from_ns);
  const std::uint64_t scrapes_after = scrapes_of(daemon);
  return {static_cast<double>(cpu_after_ns - cpu_before_ns) / spent_ns,
          static_cast<double>(scrapes_after - scrapes_before) / spent_ns * 1e9};
}

void wait_for_all(DaemonProcess& daemon, std::uint64_t scrapes) {
  const auto give_up = std::chrono::steady_clock::now() + kAllSeenMax;
  while (scrapes_of(daemon) < scrapes) {
    if (std::chrono::steady_clock::now() > give_up)
      throw std::runtime_error("not every engine was scraped within a minute");
    std::this_thread::sleep_for(kLookAgain);
  }
}

void run_scrape(const ScrapeOptions& options) {
  const PageServer server(options.endpoints, options.page_bytes);
  DaemonOptions daemon_options;
  daemon_options.addresses = server.addresses();
  Share idle;
  {
    DaemonProcess daemon(daemon_options);
    std::this_thread::sleep_for(kSettle);  // its memory is being made
    idle = measure(daemon, options.seconds / 2);
  }
  daemon_options.scrape_interval_ms = options.interval_ms;
  DaemonProcess daemon(daemon_options);
  wait_for_all(daemon, 2ULL * options.endpoints);  // connections stand, memory is there
  const Share share = measure(daemon, options.seconds);
  const double bare_us = bare_exchange_us(server);
  const double scrape_us = (share.core - idle.core) / share.scrapes_s * 1e6;
  if (options.json) {
    nlohmann::ordered_json out;
    out["endpoints"] = options.endpoints;
    out["page_bytes"] = server.page_bytes();
    out["interval_ms"] = options.interval_ms;
    out["reactor"] = daemon.reactor();
    out["scrapes_s"] = share.scrapes_s;
    out["core_share"] = share.core;
    out["core_share_idle"] = idle.core;
    out["scrape_us"] = scrape_us;
    out["bare_exchange_us"] = bare_us;
    out["ratio"] = scrape_us / bare_us;
    std::printf("%s\n", out.dump(2).c_str());
    return;
  }
  std::printf("%u engines every %u ms, pages of %zu bytes, reactor %s\n", options.endpoints,
              options.interval_ms, server.page_bytes(), daemon.reactor().c_str());
  std::printf("%-28s %.0f a second\n", "pages read", share.scrapes_s);
  std::printf("%-28s %.1f %% of a core (%.1f %% without scraping)\n", "the daemon takes",
              100 * share.core, 100 * idle.core);
  std::printf("%-28s %.1f us, bare exchange %.1f us, ratio %.2f\n", "CPU for a page", scrape_us,
              bare_us, scrape_us / bare_us);
}

}  // namespace

void add_scrape(CLI::App& app) {
  const auto options = std::make_shared<ScrapeOptions>();
  app.add_option("--endpoints", options->endpoints, "Engines, a loopback address each")
      ->check(CLI::Range(1, 4095))
      ->capture_default_str();
  app.add_option("--page-bytes", options->page_bytes, "Size of a metrics page")
      ->check(CLI::Range(1000, 1000000))
      ->capture_default_str();
  app.add_option("--interval-ms", options->interval_ms, "Time between two pages of an engine")
      ->check(CLI::Range(100, 600000))
      ->capture_default_str();
  app.add_option("--seconds", options->seconds, "How long it is watched")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--json", options->json, "Print one JSON object");
  app.callback([options] { run_scrape(*options); });
}

}  // namespace pickd::bench
