// pickctl top: the loop of looks, and the terminal that shows them.
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <langinfo.h>
#include <CLI/CLI.hpp>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/common/control_client.hpp"
#include "tools/common/output.hpp"
#include "tools/ctl/commands.hpp"
#include "tools/ctl/top_frame.hpp"

namespace pickd::ctl {

namespace {

constexpr std::size_t kHistory = 512;

volatile std::sig_atomic_t g_ended = 0;  // written by the handler alone

struct Top {
  double interval_s = 1;
  std::uint32_t times = 0;  // 0: until it is ended
  std::string sort = "in-flight";
};

// The other screen of a terminal, without echo; put back at the end, whatever ends it.
class Terminal {
 public:
  Terminal() : is_one_(tools::output_is_screen()), reads_keys_(::isatty(STDIN_FILENO) != 0) {
    if (!is_one_) return;
    struct sigaction action {};
    action.sa_handler = [](int) { g_ended = 1; };
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
    if (reads_keys_ && ::tcgetattr(STDIN_FILENO, &before_) == 0) {
      termios raw = before_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    } else {
      reads_keys_ = false;
    }
    std::fputs("\x1b[?1049h\x1b[?25l", stdout);
  }
  ~Terminal() {
    if (!is_one_) return;
    std::fputs("\x1b[?25h\x1b[?1049l", stdout);
    std::fflush(stdout);
    if (reads_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool is_one() const { return is_one_; }

  TopScreen screen(TopSort sort) const {
    TopScreen screen;
    screen.sort = sort;
    winsize size{};
    screen.columns = 0;
    if (is_one_ && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
      screen.columns = size.ws_col;
      screen.rows = size.ws_row;
    }
    screen.colour = is_one_ && std::getenv("NO_COLOR") == nullptr;
    screen.unicode = std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
    return screen;
  }

  void show(const std::string& frame) const {
    if (is_one_) std::fputs("\x1b[H\x1b[2J", stdout);
    std::fputs(frame.c_str(), stdout);
    tools::flush_output();
  }

  // Waits for the time of the next look; false when it shall end.
  bool pause(double seconds, TopSort& sort) const {
    pollfd keys{STDIN_FILENO, POLLIN, 0};
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (g_ended == 0) {
      const double left =
          std::chrono::duration<double>(end - std::chrono::steady_clock::now()).count();
      if (left <= 0) return true;
      const int ready = ::poll(&keys, reads_keys_ ? 1 : 0, static_cast<int>(left * 1000) + 1);
      if (ready == 0) return true;
      if (ready < 0) continue;  // a signal: ended, or the window's size changed
      char key = 0;
      if (::read(STDIN_FILENO, &key, 1) != 1 || key == 'q') return false;
      if (key == 'f') sort = TopSort::kInflight;
      if (key == 'k') sort = TopSort::kKv;
      if (key == 'b') sort = TopSort::kBlocks;
      if (key == 'n') sort = TopSort::kName;
      return true;
    }
    return false;
  }

 private:
  bool is_one_;
  bool reads_keys_;
  termios before_{};
};

nlohmann::ordered_json to_json(const TopLook& look, const TopRates& rates) {
  nlohmann::ordered_json out;
  out["uptime_ms"] = look.uptime_ms;
  out["picks_per_s"] = rates.picks;
  out["refused_per_s"] = rates.refused;
  out["reports_per_s"] = rates.reports;
  const auto told = [](double value) {
    return value < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  };
  out["hit_share"] = told(rates.hit_share);
  out["reservations"] = look.reservations;
  out["prefix_live"] = look.prefix_live;
  out["endpoints"] = nlohmann::ordered_json::array();
  for (const EndpointView& endpoint : look.endpoints) {
    out["endpoints"].push_back({{"name", endpoint.name},
                                {"state", endpoint.state_name()},
                                {"inflight_requests", endpoint.inflight_requests},
                                {"live_blocks", endpoint.live_blocks}});
  }
  return out;
}

TopSort sort_of(const std::string& name) {
  if (name == "kv") return TopSort::kKv;
  if (name == "blocks") return TopSort::kBlocks;
  if (name == "name") return TopSort::kName;
  return TopSort::kInflight;
}

// Goes on when the daemon restarts: that is when one watches. The first look must succeed.
int watch(const Common& common, const Top& top) {
  auto control = std::make_unique<tools::ControlClient>(common.socket, "pickctl");
  TopLook before = look_at(*control);
  std::deque<double> picks;
  TopSort sort = sort_of(top.sort);
  const Terminal terminal;
  for (std::uint32_t shown = 0; top.times == 0 || shown < top.times; ++shown) {
    if (!terminal.pause(top.interval_s, sort)) break;
    try {
      if (!control) control = std::make_unique<tools::ControlClient>(common.socket, "pickctl");
      TopLook now = look_at(*control);
      const TopRates rates = rates_between(before, now);
      picks.push_back(rates.picks);
      if (picks.size() > kHistory) picks.pop_front();
      if (common.json) {
        constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
        std::printf("%s\n", to_json(now, rates).dump(-1, ' ', false, kReplace).c_str());
        tools::flush_output();
      } else {
        terminal.show(draw(now, rates, picks, terminal.screen(sort)));
      }
      before = std::move(now);
    } catch (const std::runtime_error& error) {
      control.reset();
      if (shown + 1 == top.times) throw;
      const std::string text = std::string("pickctl: ") + error.what() + "; trying again\n";
      if (terminal.is_one()) {
        terminal.show(text);
      } else {
        std::fputs(text.c_str(), stderr);
      }
    }
  }
  return 0;
}

}  // namespace

Run make_top(CLI::App& app, const Common& common) {
  auto top = std::make_shared<Top>();
  app.footer("Keys: q ends; f, k, b and n sort by in-flight, KV use, blocks and name.");
  app.add_option("--interval", top->interval_s, "Seconds between two looks")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  app.add_option("--times", top->times, "Looks before it ends; 0: no end")->capture_default_str();
  app.add_option("--sort", top->sort, "Order of the endpoints")
      ->check(CLI::IsMember({"in-flight", "kv", "blocks", "name"}))
      ->capture_default_str();
  return [top, &common] {
    std::setlocale(LC_CTYPE, "");
    return watch(common, *top);
  };
}

}  // namespace pickd::ctl
