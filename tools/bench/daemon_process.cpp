#include "tools/bench/daemon_process.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <algorithm>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "abi/fence.hpp"

namespace pickd::bench {

namespace {

constexpr std::chrono::seconds kStartMax{20};
constexpr std::uint32_t kScrapeMsMin = 100;

tools::TempDir make_directory() {
  auto directory = tools::TempDir::make("pickd-bench");
  if (!directory) throw std::runtime_error(directory.error().text);
  return std::move(*directory);
}

std::string write_config(const std::string& directory, const DaemonOptions& options) {
  const std::string path = directory + "/pickd.yaml";
  std::ofstream file(path);
  file << "listen: {socket: " << directory << "/pickd.sock, keys_max: " << options.keys_max << "}\n"
       << "state: {path: " << directory << "/state, size_mib: " << options.state_mib
       << ", capacity_tokens: " << options.capacity_tokens << "}\n"
       << "workers: {count: " << options.workers;
  if (options.spin_us != DaemonOptions::kSpinDefault) file << ", spin: " << options.spin_us << "us";
  file << (options.busy_poll ? ", busy_poll: true}\n" : "}\n") << "log: {level: warn}\n"
       << "scrape: {enabled: " << (options.scrape_interval_ms != 0 ? "true" : "false")
       << ", interval: " << std::max(options.scrape_interval_ms, kScrapeMsMin) << "ms}\n"
       << "endpoints:\n";
  for (std::size_t at = 0; at < options.addresses.size(); ++at) {
    file << "  - {name: engine-" << at << ", address: \"" << options.addresses[at] << "\"}\n";
  }
  if (!options.addresses.empty()) return path;
  for (std::uint32_t at = 0; at < options.endpoints; ++at) {
    file << "  - {name: engine-" << at << ", address: \"127.0.0.1:" << 9000 + at << "\"}\n";
  }
  return path;
}

std::string find_worker_times(pid_t pid) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "pickd-worker0") return task.path() / "schedstat";
  }
  return {};
}

}  // namespace

DaemonProcess::DaemonProcess(const DaemonOptions& options)
    : workers_(options.workers),
      busy_poll_(options.busy_poll),
      directory_(make_directory()),
      socket_(directory_.path() + "/pickd.sock") {
  std::vector<std::string> arguments = {tools::program_directory() + "/pickd", "--config",
                                        write_config(directory_.path(), options)};
  if (!options.profile.empty()) arguments.insert(arguments.end(), {"--profile", options.profile});
  if (options.virtual_clock) arguments.emplace_back("--virtual-clock");
  auto child = tools::Child::start(arguments, {});
  if (!child) throw std::runtime_error(child.error().text);
  child_ = std::move(*child);
  const auto give_up = std::chrono::steady_clock::now() + kStartMax;
  while (control_ == nullptr) {
    try {
      control_ = std::make_unique<tools::ControlClient>(socket_, "pickd-bench");
    } catch (const std::runtime_error&) {
      if (!child_.running()) throw std::runtime_error("pickd " + child_.exit_words());
      if (std::chrono::steady_clock::now() > give_up) throw;
    }
  }
}

std::uint64_t DaemonProcess::worker_cpu_ns() {
  // Found at the first question: a thread has no name before it has run.
  if (worker_times_.empty()) worker_times_ = find_worker_times(child_.pid());
  std::uint64_t ran_ns = 0;  // the first number of the file
  std::ifstream(worker_times_) >> ran_ns;
  return ran_ns;
}

std::string DaemonProcess::reactor() {
  return control_->ask<fb::AskStatus, fb::StatusAnswer>(fb::CreateAskStatus).reactor()->str();
}

std::uint64_t DaemonProcess::counter(std::string_view name) {
  const auto& status = control_->ask<fb::AskStatus, fb::StatusAnswer>(fb::CreateAskStatus);
  for (const fb::Counter* counter : *status.counters()) {
    if (counter->name()->string_view() == name) return counter->value();
  }
  throw std::runtime_error("the daemon has no counter " + std::string(name));
}

void DaemonProcess::rest() {
  if (busy_poll_) {
    child_.signal(SIGSTOP);
    siginfo_t stopped{};
    if (::waitid(P_PID, static_cast<id_t>(child_.pid()), &stopped, WSTOPPED) != 0)
      throw std::runtime_error("the daemon could not be stopped");
    return;
  }
  for (std::uint32_t worker = 0; worker < workers_; ++worker) {
    while (!control_->state().asleep(worker)) abi::spin_pause();
  }
}

void DaemonProcess::go_on() {
  if (busy_poll_) child_.signal(SIGCONT);
}

}  // namespace pickd::bench
