#include "tools/demo/failures.hpp"

#include <poll.h>
#include <signal.h>

#include <cstdio>
#include <fstream>

#include "abi/state_layout.hpp"
#include "daemon/base/clock.hpp"
#include "tools/demo/run.hpp"

namespace pickd::demo {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kEnginesAtFirst = 5;
constexpr auto kReadyTimeout = 20s;
constexpr auto kStopGrace = 2s;
constexpr int kLookMs = 50;
constexpr const char* kStallSeconds = "2";

// When what happens, as shares of the run. Each failure has time to be noticed, and to end.
constexpr double kKillAt = 0.15;
constexpr double kRestartAt = 0.30;
constexpr double kHangAt = 0.45;
constexpr double kJoinAt = 0.60;
constexpr double kGoOnAt = 0.75;

std::int64_t now_us() { return static_cast<std::int64_t>(base::monotonic_ns() / 1000); }

std::string words_of(const fb::EndpointStatus& endpoint) {
  static constexpr const char* kStates[] = {"free", "ready",    "suspect",
                                            "down", "draining", "starting"};
  std::string words = endpoint.state() < std::size(kStates) ? kStates[endpoint.state()] : "unknown";
  words += ", generation " + std::to_string(endpoint.generation());
  if (const auto* why = endpoint.why_not_ready(); why != nullptr && why->size() != 0)
    words += ": " + why->str();
  return words;
}

}  // namespace

base::Result<bool> FailureRun::play() {
  auto directory = tools::TempDir::make("pickd-demo");
  if (!directory) return directory.error();
  directory_.emplace(std::move(*directory));
  for (std::size_t at = 0; at < kEnginesAtFirst; ++at) {
    engines_.push_back({"engine-" + std::to_string(at), "0", {}});
    if (auto started = start_engine(engines_.back()); !started) return started.error();
  }
  if (auto started = start_pickd(); !started) return started.error();
  try {
    control_ = std::make_unique<tools::ControlClient>(file("pickd.sock"), "pickd-demo");
    if (auto looked = look_at_endpoints(); !looked) return looked.error();
    if (auto started = start_driver(); !started) return started.error();
    if (auto watched = watch(); !watched) return watched.error();
  } catch (const std::runtime_error& error) {
    return base::Error{-EPROTO, error.what()};
  }
  control_.reset();
  pickd_.stop(kStopGrace);
  for (Engine& engine : engines_) engine.child.stop(kStopGrace);
  if (!options_.log.empty()) {
    std::ofstream out(options_.log);
    out << request_log_;
    out.close();
    if (!out) return base::errno_error("write " + options_.log);
  }
  return print_verdict();
}

base::Result<void> FailureRun::start_engine(Engine& engine) {
  auto started =
      tools::Child::start({options_.programs + "/enginesim", "--port", engine.port, "--model",
                           "demo", "--step-noise", "0.05"},
                          {.read_output = true, .error_file = file(engine.name + ".log")});
  if (!started) return started.error();
  engine.child = std::move(*started);
  const auto port = engine.child.wait_for_line("listening on ", kReadyTimeout);
  if (!port) return port.error();
  engine.port = port.value();
  return {};
}

base::Result<void> FailureRun::start_pickd() {
  std::ofstream config(file("pickd.yaml"));
  config << "listen:\n  socket: " << file("pickd.sock") << "\nstate:\n  path: " << file("state")
         << "\n  size_mib: 16\n"
         << "scrape:\n  interval: 200ms\n  connect_timeout: 500ms\n  timeout: 1s\nendpoints:\n";
  for (const Engine& engine : engines_) {
    config << "  - {name: " << engine.name << ", address: \"127.0.0.1:" << engine.port
           << "\", models: [demo]}\n";
  }
  config.close();
  if (!config) return base::errno_error("write " + file("pickd.yaml"));
  auto started = tools::Child::start({options_.programs + "/pickd", "--config", file("pickd.yaml")},
                                     {.read_output = false, .error_file = file("pickd.log")});
  if (!started) return started.error();
  pickd_ = std::move(*started);
  return tools::wait_for_text(pickd_, file("pickd.log"), "ready on", kReadyTimeout);
}

base::Result<void> FailureRun::start_driver() {
  auto started = tools::Child::start(
      {options_.programs + "/pickd-demo-load", "--socket", file("pickd.sock"), "--workload",
       options_.workload, "--seconds", std::to_string(options_.seconds), "--log", "--retry",
       "--stall-seconds", kStallSeconds},
      {.read_output = true, .error_file = file("pickd-demo-load.log")});
  if (!started) return started.error();
  driver_ = std::move(*started);
  started_ = std::chrono::steady_clock::now();
  steps_ = script();
  return {};
}

std::vector<FailureRun::Step> FailureRun::script() {
  return {{kKillAt, [this] { return kill_engine(0); }},
          {kRestartAt, [this] { return restart_engine(1); }},
          {kHangAt, [this] { return hang_engine(2, true); }},
          {kJoinAt, [this] { return join_engine(); }},
          {kGoOnAt, [this] { return hang_engine(2, false); }}};
}

base::Result<void> FailureRun::watch() {
  for (bool more = true; more;) {
    pollfd waits[] = {{driver_.output(), POLLIN, 0}, {options_.signals, POLLIN, 0}};
    ::poll(waits, std::size(waits), kLookMs);
    if ((waits[1].revents & POLLIN) != 0) return base::Error{kInterrupted, "interrupted"};
    more = read_driver();
    if (!more) break;
    if (!pickd_.running()) return base::Error{-ECHILD, "pickd " + pickd_.exit_words()};
    if (auto taken = take_steps(); !taken) return taken;
    if (auto looked = look_at_endpoints(); !looked) return looked;
  }
  while (driver_.running()) ::poll(nullptr, 0, 5);
  if (driver_.exit_status() != 0)
    return base::Error{-ECHILD, "pickd-demo-load " + driver_.exit_words()};
  for (const Step& step : steps_) {
    if (!step.done) return base::Error{-ENODATA, "the run was over before the last failure"};
  }
  return {};
}

bool FailureRun::read_driver() {
  char bytes[64 * 1024];
  ssize_t got;
  while ((got = ::read(driver_.output(), bytes, sizeof bytes)) > 0)
    lines_.append(bytes, static_cast<std::size_t>(got));
  const bool more = got < 0 && (errno == EAGAIN || errno == EINTR);
  std::size_t begin = 0;
  for (std::size_t end; (end = lines_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = lines_.substr(begin, end - begin);
    if (!log_.add_line(line)) continue;
    request_log_ += line + '\n';
    if (const std::string words = FailureLog::words_of(line); !words.empty()) say("  " + words);
  }
  lines_.erase(0, begin);
  return more;
}

base::Result<void> FailureRun::take_steps() {
  const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - started_;
  for (Step& step : steps_) {
    if (step.done || gone.count() < step.at * options_.seconds) continue;
    step.done = true;
    if (auto acted = step.act(); !acted) return acted;
  }
  return {};
}

// The outage begins before the signal: what is sent in between may fail already.
base::Result<void> FailureRun::kill_engine(std::size_t at) {
  Engine& engine = engines_[at];
  log_.begin_outage(engine.name, "killed", now_us());
  engine.child.signal(SIGKILL);
  say(engine.name + " is killed");
  return {};
}

base::Result<void> FailureRun::restart_engine(std::size_t at) {
  Engine& engine = engines_[at];
  log_.begin_outage(engine.name, "restarted", now_us());
  engine.child.signal(SIGKILL);
  engine.child.stop(kStopGrace);
  say(engine.name + " is killed and started again at the same address");
  if (auto started = start_engine(engine); !started) return started;
  log_.end_outage(engine.name, now_us());
  return {};
}

base::Result<void> FailureRun::hang_engine(std::size_t at, bool on) {
  Engine& engine = engines_[at];
  if (on) {
    log_.begin_outage(engine.name, "hung", now_us());
    engine.child.signal(SIGSTOP);
    say(engine.name + " hangs");
  } else {
    log_.end_outage(engine.name, now_us());
    engine.child.signal(SIGCONT);
    say(engine.name + " goes on");
  }
  return {};
}

base::Result<void> FailureRun::join_engine() {
  engines_.push_back({"engine-" + std::to_string(engines_.size()), "0", {}});
  Engine& engine = engines_.back();
  if (auto started = start_engine(engine); !started) return started;
  say(engine.name + " joins");
  const std::string address = "127.0.0.1:" + engine.port;
  const auto& outcome = tools::ControlClient::expect<fb::Outcome>(
      control_->ask([&](client::ControlExchange& exchange) {
        auto& builder = exchange.builder();
        const auto name = builder.CreateString(engine.name);
        const auto at = builder.CreateString(address);
        const auto page = builder.CreateString("http://" + address + "/metrics");
        const auto models = builder.CreateVectorOfStrings({"demo"});
        fb::EndpointBuilder endpoint(builder);
        endpoint.add_name(name);
        endpoint.add_address(at);
        endpoint.add_metrics_url(page);
        endpoint.add_models(models);
        exchange.set_body(
            fb::CreateChangeEndpoint(builder, fb::EndpointOp::Add, endpoint.Finish()));
      }));
  if (outcome.code() != 0) return base::Error{outcome.code(), outcome.text()->str()};
  return {};
}

base::Result<void> FailureRun::look_at_endpoints() {
  const auto& page = tools::ControlClient::expect<fb::EndpointsAnswer>(
      control_->ask([](client::ControlExchange& exchange) {
        exchange.set_body(fb::CreateAskEndpoints(exchange.builder(), 0));
      }));
  for (const fb::EndpointStatus* endpoint : *page.endpoints()) {
    const std::string name = endpoint->name()->str();
    const std::string words = words_of(*endpoint);
    std::string& before = seen_[name];
    if (before == words) continue;
    before = words;
    say("  pickd: " + name + " is " + words);
  }
  return {};
}

void FailureRun::say(const std::string& text) const {
  const std::chrono::duration<double> gone = started_ == std::chrono::steady_clock::time_point{}
                                                 ? std::chrono::duration<double>(0)
                                                 : std::chrono::steady_clock::now() - started_;
  std::printf("%7.2f s  %s\n", gone.count(), text.c_str());
  std::fflush(stdout);
}

bool FailureRun::print_verdict() {
  std::printf("\n%-10s %-10s %17s %8s %11s %13s\n", "ENGINE", "WHAT", "FIRST FAILURE", "FAILED",
              "SENT AFTER", "SERVED AGAIN");
  for (const Outage& outage : log_.outages()) {
    char first[32] = "none";
    if (outage.first_failure_us)
      std::snprintf(first, sizeof first, "after %.0f ms",
                    static_cast<double>(*outage.first_failure_us - outage.from_us) / 1000);
    std::printf("%-10s %-10s %17s %8llu %11llu %13llu\n", outage.engine.c_str(),
                outage.what.c_str(), first, static_cast<unsigned long long>(outage.failed),
                static_cast<unsigned long long>(outage.sent_after),
                static_cast<unsigned long long>(outage.served_again));
  }
  const std::string& joined = engines_.back().name;
  std::printf("%-10s %-10s %17s %8s %11s %13llu\n\n", joined.c_str(), "joined", "-", "-", "-",
              static_cast<unsigned long long>(log_.answered_by(joined)));
  std::printf("%llu requests, %llu answered, %llu of them by another engine than the first\n",
              static_cast<unsigned long long>(log_.requests()),
              static_cast<unsigned long long>(log_.answered()),
              static_cast<unsigned long long>(log_.retried()));
  std::vector<std::string> wrongs = log_.wrongs();
  if (log_.answered_by(joined) == 0) wrongs.push_back(joined + " joined and was never used");
  for (const Outage& outage : log_.outages()) {
    if (outage.to_us != kForever && outage.served_again == 0)
      wrongs.push_back(outage.engine + " came back and was never used again");
  }
  for (const std::string& wrong : wrongs) std::printf("WRONG: %s\n", wrong.c_str());
  if (wrongs.empty())
    std::puts("GOOD: none was lost, and none was sent to a dead engine after its first failure");
  return wrongs.empty();
}

}  // namespace pickd::demo
