// pickd-bench reactor: what an event costs in each reactor, in turns in one run, beside a bare
// system call.
//
// Of the watched descriptors so many are ready and stay so: nothing but the reactor is measured.
// With --pass-on each event is news instead: its handler reads the descriptor empty and writes to
// another one, so that two system calls and a wake in the kernel are in the figure too.
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "daemon/base/clock.hpp"
#include "daemon/base/fd.hpp"
#include "daemon/net/make_reactor.hpp"
#include "tools/bench/subcommands.hpp"
#include "tools/common/samples.hpp"

namespace pickd::bench {

namespace {

struct ReactorOptions {
  std::uint32_t watched = 1000;
  std::uint32_t rounds = 15;
  std::uint32_t events = 50'000;  // a measurement
  std::vector<std::uint32_t> ready = {1, 2, 5, 10, 100, 1000};
  bool pass_on = false;
  bool json = false;
};

// The eventfds that are watched: ready with a count of 1, which nobody reads.
class Descriptors {
 public:
  explicit Descriptors(std::uint32_t count) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    for (std::uint32_t at = 0; at < count; ++at) {
      fds_.emplace_back(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
      if (!fds_.back().valid()) throw std::runtime_error("reactor: not enough descriptors");
    }
  }
  void set_ready(std::uint32_t count) {
    for (std::size_t at = 0; at < fds_.size(); ++at) {
      std::uint64_t value = 0;
      [[maybe_unused]] const ssize_t got = ::read(fds_[at].get(), &value, sizeof value);
      value = 1;
      if (at < count) [[maybe_unused]]
        const ssize_t set = ::write(fds_[at].get(), &value, sizeof value);
    }
  }
  const std::vector<base::Fd>& fds() const { return fds_; }

 private:
  std::vector<base::Fd> fds_;
};

std::unique_ptr<net::Reactor> make(net::ReactorChoice choice) {
  auto made = net::make_reactor(choice);
  if (!made) throw std::runtime_error(made.error().text);
  if (!made->why_not_io_uring.empty())
    throw std::runtime_error("reactor: no io_uring here: " + made->why_not_io_uring);
  return std::move(made->reactor);
}

void pass_on(int from, int to) {
  std::uint64_t value = 0;
  [[maybe_unused]] const ssize_t got = ::read(from, &value, sizeof value);
  value = 1;
  [[maybe_unused]] const ssize_t wrote = ::write(to, &value, sizeof value);
}

double ns_per_event(net::ReactorChoice choice, const Descriptors& descriptors,
                    const ReactorOptions& options) {
  const auto reactor = make(choice);
  const std::uint32_t events = options.events;
  const std::uint32_t warm_up = events / 10;
  std::uint32_t seen = 0;
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = 0;
  const std::vector<base::Fd>& fds = descriptors.fds();
  for (std::size_t at = 0; at < fds.size(); ++at) {
    const int own = fds[at].get();
    const int next = fds[(at + 1) % fds.size()].get();
    auto watched = reactor->watch(own, net::kReadable, [&, own, next](std::uint32_t) {
      ++seen;
      if (options.pass_on) pass_on(own, next);
      if (seen == warm_up) from_ns = base::monotonic_ns();
      if (seen != warm_up + events) return;
      to_ns = base::monotonic_ns();
      reactor->stop();
    });
    if (!watched) throw std::runtime_error(watched.error().text);
  }
  reactor->run();
  return static_cast<double>(to_ns - from_ns) / events;
}

// A read of an empty eventfd: what entering the kernel costs on this machine at this moment.
double ns_per_call(std::uint32_t calls) {
  const base::Fd bare(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  const std::uint64_t from_ns = base::monotonic_ns();
  for (std::uint32_t at = 0; at < calls; ++at) {
    std::uint64_t value = 0;
    [[maybe_unused]] const ssize_t got = ::read(bare.get(), &value, sizeof value);
  }
  return static_cast<double>(base::monotonic_ns() - from_ns) / calls;
}

struct Row {
  std::uint32_t ready;
  tools::Samples epoll_ns;
  tools::Samples io_uring_ns;
};

void print_rows(const ReactorOptions& options, const tools::Samples& call_ns,
                const std::vector<Row>& rows) {
  constexpr double kMedian = 0.5;
  nlohmann::ordered_json out;
  out["watched"] = options.watched;
  out["rounds"] = options.rounds;
  out["pass_on"] = options.pass_on;
  out["system_call_ns"] = call_ns.percentile(kMedian);
  if (!options.json) {
    std::printf("%u descriptors watched, medians of %u rounds; a bare system call: %.0f ns\n",
                options.watched, options.rounds, call_ns.percentile(kMedian));
    std::printf("%8s %16s %16s %18s\n", "READY", "EPOLL ns/event", "IO_URING", "IO_URING / EPOLL");
  }
  for (const Row& row : rows) {
    const double epoll = row.epoll_ns.percentile(kMedian);
    const double io_uring = row.io_uring_ns.percentile(kMedian);
    if (!options.json)
      std::printf("%8u %16.0f %16.0f %18.2f\n", row.ready, epoll, io_uring, io_uring / epoll);
    out["rows"].push_back({{"ready", row.ready},
                           {"epoll_ns", epoll},
                           {"io_uring_ns", io_uring},
                           {"ratio", io_uring / epoll}});
  }
  if (options.json) std::printf("%s\n", out.dump(2).c_str());
}

void run_reactor(const ReactorOptions& options) {
  Descriptors descriptors(options.watched);
  tools::Samples call_ns;
  std::vector<Row> rows;
  for (const std::uint32_t ready : options.ready) {
    if (ready > options.watched) throw std::runtime_error("reactor: more ready than watched");
    rows.push_back({ready, {}, {}});
  }
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    call_ns.add(ns_per_call(options.events));
    for (Row& row : rows) {
      descriptors.set_ready(row.ready);
      row.epoll_ns.add(ns_per_event(net::ReactorChoice::kEpoll, descriptors, options));
      descriptors.set_ready(row.ready);
      row.io_uring_ns.add(ns_per_event(net::ReactorChoice::kIoUring, descriptors, options));
    }
  }
  print_rows(options, call_ns, rows);
}

}  // namespace

void add_reactor(CLI::App& app) {
  const auto options = std::make_shared<ReactorOptions>();
  app.add_option("--watched", options->watched, "Descriptors watched")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--ready", options->ready, "How many of them are ready; a row each")
      ->delimiter(',')
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--rounds", options->rounds, "Turns of both")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--events", options->events, "Events a measurement")
      ->check(CLI::Range(100, 100000000))
      ->capture_default_str();
  app.add_flag("--pass-on", options->pass_on,
               "Handlers read their descriptor and write to the next: each event is news");
  app.add_flag("--json", options->json, "Print one JSON object");
  app.callback([options] { run_reactor(*options); });
}

}  // namespace pickd::bench
