// One policy under the workload. See run.hpp.
#include "tools/demo/run.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace pickd::demo {

namespace {

using namespace std::chrono_literals;

constexpr int kEngines = 8;
// 28,672 tokens: the system prompts of all applications (about 60,000 tokens) do not fit one
// engine, the conversations of an eighth of them do.
constexpr const char* kEngineBlocks = "1792";
constexpr std::uint32_t kEngineTokens = 1792 * 16;
constexpr auto kReadyTimeout = 20s;
constexpr auto kStopGrace = 2s;

bool on_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

}  // namespace

base::Result<Outcome> Run::play() {
  auto directory = tools::TempDir::make("pickd-demo");
  if (!directory) return directory.error();
  directory_.emplace(std::move(*directory));
  if (auto started = start_engines(); !started) return started.error();
  if (auto started = start_pickd(); !started) return started.error();
  if (options_.page) {
    if (auto shown = show_page(); !shown) return shown.error();
  }
  do {
    if (auto started = start_driver(); !started) return started.error();
    if (auto watched = watch_driver(); !watched) return watched.error();
  } while (options_.page);

  struct stat state {};
  if (::stat(file("state").c_str(), &state) != 0) return base::errno_error("stat " + file("state"));
  outcome_.state_bytes = static_cast<std::uint64_t>(state.st_size);
  pickd_.stop(kStopGrace);
  for (tools::Child& engine : engines_) engine.signal(SIGTERM);  // all at once, then one by one
  for (tools::Child& engine : engines_) engine.stop(kStopGrace);
  return std::move(outcome_);
}

base::Result<void> Run::start_engines() {
  for (int i = 0; i < kEngines; ++i) {
    const std::string name = "engine-" + std::to_string(i);
    auto engine =
        tools::Child::start({options_.programs + "/enginesim", "--port", "0", "--model", "demo",
                             "--blocks", kEngineBlocks, "--max-num-batched-tokens", "1024",
                             "--step-noise", "0.05", "--seed", std::to_string(i + 1)},
                            {.read_output = true, .error_file = file(name + ".log")});
    if (!engine) return engine.error();
    engines_.push_back(std::move(*engine));
  }
  for (tools::Child& engine : engines_) {
    const auto port = engine.wait_for_line("listening on ", kReadyTimeout);
    if (!port) return port.error();
    addresses_.push_back("127.0.0.1:" + port.value());
  }
  return {};
}

base::Result<void> Run::start_pickd() {
  std::ofstream config(file("pickd.yaml"));
  config << "listen:\n  socket: " << file("pickd.sock") << "\nstate:\n  path: " << file("state")
         << "\n  size_mib: 16\n";
  if (options_.page) config << "admin:\n  listen: \"127.0.0.1:0\"\n";
  config << "endpoints:\n";
  for (int i = 0; i < kEngines; ++i) {
    config << "  - {name: engine-" << i << ", address: \""
           << addresses_[static_cast<std::size_t>(i)]
           << "\", models: [demo], capacity_tokens: " << kEngineTokens << "}\n";
  }
  config.close();
  if (!config) return base::errno_error("write " + file("pickd.yaml"));
  std::vector<std::string> arguments{options_.programs + "/pickd", "--config", file("pickd.yaml")};
  if (!options_.profile.empty()) arguments.insert(arguments.end(), {"--profile", options_.profile});
  auto started =
      tools::Child::start(arguments, {.read_output = false, .error_file = file("pickd.log")});
  if (!started) return started.error();
  pickd_ = std::move(*started);
  return tools::wait_for_text(pickd_, file("pickd.log"), "ready on", kReadyTimeout);
}

base::Result<void> Run::show_page() const {
  std::ostringstream log;
  log << std::ifstream(file("pickd.log")).rdbuf();
  const std::string text = log.str();
  const std::string mark = "admin: ";
  const std::size_t at = text.find(mark);
  if (at == std::string::npos)
    return base::Error{-ENODATA, "pickd does not say where its page is" + last_words("pickd")};
  const std::size_t from = at + mark.size();
  std::printf("pickd's page: %s (until Ctrl-C)\n",
              text.substr(from, text.find('\n', from) - from).c_str());
  std::fflush(stdout);
  return {};
}

base::Result<void> Run::start_driver() {
  auto started = tools::Child::start(
      {options_.programs + "/pickd-demo-load", "--socket", file("pickd.sock"), "--workload",
       options_.workload, "--seconds", std::to_string(options_.seconds), "--probe-seconds",
       std::to_string(options_.probe_seconds)},
      {.read_output = true, .error_file = file("pickd-demo-load.log")});
  if (!started) return started.error();
  driver_ = std::move(*started);
  started_ = shown_ = std::chrono::steady_clock::now();
  return {};
}

base::Result<void> Run::watch_driver() {
  for (bool more = true; more;) {
    pollfd waits[] = {{driver_.output(), POLLIN, 0}, {options_.signals, POLLIN, 0}};
    ::poll(waits, std::size(waits), 250);
    if (interrupted()) return base::Error{kInterrupted, "interrupted"};
    more = read_driver();
    if (more) {
      if (auto checked = check_children(); !checked) return checked;
      show_progress(false);
    }
  }
  // Its output has ended: it ends, too.
  while (driver_.running()) ::poll(nullptr, 0, 5);
  show_progress(true);
  if (driver_.exit_status() != 0) {
    if (auto checked = check_children(); !checked) return checked;  // the cause, rather
    return base::Error{-ECHILD,
                       "pickd-demo-load " + driver_.exit_words() + last_words("pickd-demo-load")};
  }
  if (outcome_.turns() == 0) return base::Error{-ENODATA, "no turn was played: let it run longer"};
  return {};
}

bool Run::read_driver() {
  char bytes[64 * 1024];
  ssize_t got;
  while ((got = ::read(driver_.output(), bytes, sizeof bytes)) > 0) {
    lines_.append(bytes, static_cast<std::size_t>(got));
  }
  const bool more = got < 0 && (errno == EAGAIN || errno == EINTR);
  std::size_t begin = 0;
  for (std::size_t end; (end = lines_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    outcome_.add_line(std::string_view(lines_).substr(begin, end - begin));
  }
  lines_.erase(0, begin);
  return more;
}

base::Result<void> Run::check_children() {
  if (!pickd_.running())
    return base::Error{-ECHILD, "pickd " + pickd_.exit_words() + last_words("pickd")};
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    if (engines_[i].running()) continue;
    const std::string name = "engine-" + std::to_string(i);
    return base::Error{-ECHILD, name + " " + engines_[i].exit_words() + last_words(name)};
  }
  return {};
}

bool Run::interrupted() const {
  pollfd wait{options_.signals, POLLIN, 0};
  return ::poll(&wait, 1, 0) == 1;
}

void Run::show_progress(bool last) {
  const auto now = std::chrono::steady_clock::now();
  if (!last && now - shown_ < (on_terminal() ? 250ms : 5000ms)) return;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  std::printf(
      "%s%-12s %3.0f of %.0f s  %5llu turns answered  hit rate %5.1f %%  TTFT mean %6.1f ms%s",
      on_terminal() ? "\r\x1b[K" : "", options_.title.c_str(), std::min(seconds, options_.seconds),
      options_.seconds, static_cast<unsigned long long>(outcome_.turns() - outcome_.failed()),
      outcome_.hit_rate() * 100, outcome_.turns() == 0 ? 0 : outcome_.ttft_ms.mean(),
      on_terminal() && !last ? "" : "\n");
  std::fflush(stdout);
}

std::string Run::last_words(const std::string& name) const {
  std::ostringstream log;
  log << std::ifstream(file(name + ".log")).rdbuf();
  std::string text = log.str();
  constexpr std::size_t kBytesMax = 2000;
  if (text.size() > kBytesMax) text.erase(0, text.size() - kBytesMax);
  return text.empty() ? "" : "; its last words:\n" + text;
}

}  // namespace pickd::demo
