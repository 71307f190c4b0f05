// What the system tests share: a real daemon in a directory of its own, clients of the real
// library, questions to the daemon, child processes. Knows the public header and the control
// socket only; nothing of the daemon's insides.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "pickd/pickd.h"
#include "tools/common/child.hpp"
#include "tools/common/control_client.hpp"

namespace pickd::systests {

// How long an event is waited for before the test fails: far above what a loaded machine needs.
inline constexpr std::chrono::seconds kGenerous{60};
inline constexpr std::int64_t kGenerousUs = 60'000'000;

// Looks until `condition` holds; false when it never did.
bool eventually(const std::function<bool()>& condition);

// ---- The daemon ---------------------------------------------------------------------------------

// Parts of the configuration file; the daemon adds its paths and a small state. Each line of
// `listen` and `state` is a setting of that section.
struct Settings {
  std::vector<std::string> listen = {};
  std::vector<std::string> state = {};
  std::string rest = "";
  std::size_t endpoints = 4;  // e0..eN-1 at 10.0.0.N:8000, of any model
  std::vector<std::string> arguments = {};
  std::vector<std::string> runner = {};  // a program of this build that runs the daemon
};

struct EndpointView {
  std::uint32_t id = 0;
  std::uint32_t generation = 0;
  std::uint8_t state = 0;
  std::string address;
  std::uint64_t inflight_requests = 0;
  std::uint64_t inflight_tokens = 0;

  bool operator==(const EndpointView&) const = default;
};

struct StatusView {
  std::uint32_t pid = 0;
  std::uint32_t clients = 0;  // the one that asks included
  std::uint32_t channels = 0;
  std::uint64_t reservations = 0;
  std::uint64_t daemon_epoch = 0;
  std::uint64_t ttft_samples = 0;  // of the first class
  double ttft_mape = 0;
  bool ttft_ready = false;
  std::map<std::string, std::uint64_t> counters;  // by their names without "pickd_" and "_total"
};

class Daemon {
 public:
  explicit Daemon(const Settings& settings = {});
  ~Daemon();

  void start();  // again, after stop() or a kill
  int stop();    // SIGTERM; returns the status of waitpid
  void signal(int number);
  void reap();  // waits until it has ended
  pid_t pid() const { return child_.pid(); }

  const std::string& directory() const { return directory_.path(); }
  std::string socket() const { return directory() + "/pickd.sock"; }
  std::string state() const { return directory() + "/state"; }
  std::string config() const { return directory() + "/pickd.yaml"; }
  std::string log() const;

  StatusView status();
  std::uint64_t counter(const std::string& name);
  std::map<std::string, EndpointView> endpoints();
  // Requests in flight on all endpoints together.
  std::uint64_t inflight();
  std::size_t descriptors() const;  // entries of /proc/PID/fd

 private:
  tools::ControlClient& control();

  tools::TempDir directory_;
  std::vector<std::string> arguments_;
  std::vector<std::string> runner_;
  tools::Child child_;
  std::unique_ptr<tools::ControlClient> control_;
};

// ---- The library --------------------------------------------------------------------------------

class Client {
 public:
  explicit Client(const std::string& socket, std::uint32_t channels_max = 0);
  explicit Client(Daemon& daemon, std::uint32_t channels_max = 0)
      : Client(daemon.socket(), channels_max) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { close(); }

  void close();
  pickd_client* get() const { return client_; }
  std::string last_error() const;

  int report(pickd_ticket ticket, pickd_report_kind kind, const std::string& endpoint = "") const;
  int add(const std::string& name, const std::string& address) const;

 private:
  pickd_client* client_ = nullptr;
};

// A request with storage for what it points to.
struct Request {
  pickd_request raw = PICKD_REQUEST_INIT;

  Request() = default;
  explicit Request(const std::string& prompt) { text(prompt); }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  Request& text(const std::string& prompt);
  Request& subset(const std::vector<std::string>& names);

 private:
  std::string prompt_;
  pickd_slice segment_{};
  std::vector<std::string> names_;
  std::vector<pickd_slice> name_slices_;
};

class Result {
 public:
  Result() : result_(pickd_result_new()) {}
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  ~Result() { pickd_result_free(result_); }

  pickd_result* get() const { return result_; }
  pickd_ticket ticket() const { return pickd_result_ticket(result_); }
  std::string name(std::size_t index = 0) const;
  std::uint32_t match_tokens(std::size_t index = 0) const {
    return pickd_result_match_tokens(result_, index);
  }
  bool degraded() const { return (pickd_result_flags(result_) & PICKD_RESULT_DEGRADED) != 0; }
  std::size_t count() const { return pickd_result_endpoint_count(result_); }

 private:
  pickd_result* result_;
};

int pick(const Client& client, const Request& request, const Result& result,
         std::int64_t timeout_us = kGenerousUs);

// A prompt of so many bytes that no other seed has.
std::string prompt_of(std::size_t bytes, unsigned seed = 0);

// ---- Processes ----------------------------------------------------------------------------------

// A child made by fork(): runs `body` and exits with what it returns. Both sides talk in single
// characters. The parent must have no second thread at that moment.
class Forked {
 public:
  explicit Forked(const std::function<int(Forked& self)>& body);
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;
  ~Forked();

  void say(char word) const;
  char hear() const;       // 0 when the other side is gone or silent
  bool spoken_to() const;  // hear() would return at once
  void kill(int signal) const;
  int wait();  // exit code, or minus the signal that killed it
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  base::Fd socket_;
};

struct Ended {
  int exit_code = -1;
  std::string output;
  std::string errors;
};

// Runs a program of this build to its end.
Ended run(const std::string& program, const std::vector<std::string>& arguments);

inline constexpr char kNeedsRoot[] = "needs root, to become another user";

}  // namespace pickd::systests
