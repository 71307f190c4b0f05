// pickctl record: the daemon's picks as a trace, until so many seconds or picks, or Ctrl-C.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "tools/common/control_client.hpp"
#include "tools/ctl/commands.hpp"
#include "tools/ctl/trace_writer.hpp"

namespace pickd::ctl {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPause{20};  // when nothing came
constexpr std::chrono::seconds kProgress{5};

volatile std::sig_atomic_t g_ended = 0;  // written by the handler alone

struct Record {
  std::string output;
  double seconds = 0;       // 0: until it is ended
  std::uint64_t picks = 0;  // likewise
};

class Output {
 public:
  explicit Output(const std::string& path)
      : path_(path), file_(path == "-" ? stdout : std::fopen(path.c_str(), "w")) {
    if (file_ == nullptr) throw std::runtime_error(path + ": cannot be written");
  }
  ~Output() {
    if (file_ != stdout && file_ != nullptr) std::fclose(file_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(const std::string& line) {
    if (std::fwrite(line.data(), 1, line.size(), file_) != line.size())
      throw std::runtime_error(path_ + ": cannot be written");
  }
  void flush() {
    if (std::fflush(file_) != 0) throw std::runtime_error(path_ + ": cannot be written");
  }

 private:
  std::string path_;
  std::FILE* file_;
};

class Tap {
 public:
  explicit Tap(const std::string& socket) : control_(socket, "pickctl") {
    ask(fb::RecordingOp::Start);
  }

  // Whether anything came.
  bool take(TraceWriter& writer, fb::RecordingOp op = fb::RecordingOp::Take) {
    const fb::RecordingAnswer& answer = ask(op);
    lost_ = answer.lost();
    if (answer.entries() == nullptr || answer.entries()->size() == 0) return false;
    const std::vector<std::uint64_t> words(answer.entries()->begin(), answer.entries()->end());
    writer.add(words);
    return true;
  }
  std::uint64_t lost() const { return lost_; }

 private:
  const fb::RecordingAnswer& ask(fb::RecordingOp op) {
    return tools::ControlClient::expect<fb::RecordingAnswer>(
        control_.ask([op](client::ControlExchange& exchange) {
          exchange.set_body(fb::CreateAskRecording(exchange.builder(), op));
        }));
  }

  tools::ControlClient control_;
  std::uint64_t lost_ = 0;
};

int record(const Common& common, const Record& options) {
  struct sigaction action {};
  action.sa_handler = [](int) { g_ended = 1; };
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
  Tap tap(common.socket);
  Output output(options.output);
  TraceWriter writer([&output](const std::string& line) { output.write(line); });
  std::fprintf(stderr, "pickctl: recording; Ctrl-C ends it\n");
  const Clock::time_point start = Clock::now();
  Clock::time_point told = start;
  const auto enough = [&] {
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return g_ended != 0 || (options.seconds > 0 && seconds >= options.seconds) ||
           (options.picks > 0 && writer.picks() >= options.picks);
  };
  while (!enough()) {
    if (!tap.take(writer)) std::this_thread::sleep_for(kPause);
    output.flush();
    if (Clock::now() - told >= kProgress) {
      told = Clock::now();
      std::fprintf(stderr, "pickctl: %" PRIu64 " picks\n", writer.picks());
    }
  }
  while (tap.take(writer, fb::RecordingOp::Take)) {
    if (options.picks > 0) break;  // under load there may always be more
  }
  tap.take(writer, fb::RecordingOp::Stop);
  writer.finish();
  output.flush();
  if (common.json) {
    const nlohmann::ordered_json out = {{"picks", writer.picks()},
                                        {"written", writer.written()},
                                        {"outputs_guessed", writer.guessed()},
                                        {"lost", tap.lost()},
                                        {"hit_share", writer.hit_share()}};
    std::fprintf(options.output == "-" ? stderr : stdout, "%s\n", out.dump(2).c_str());
    return 0;
  }
  std::fprintf(stderr,
               "pickctl: %" PRIu64
               " picks written to %s, %.1f %% of their tokens believed cached; "
               "the answer's length of %" PRIu64 " is a guess\n",
               writer.written(), options.output.c_str(), 100 * writer.hit_share(),
               writer.guessed());
  if (tap.lost() != 0)
    std::fprintf(stderr, "pickctl: %" PRIu64 " picks or ends were lost: they came too fast\n",
                 tap.lost());
  return 0;
}

}  // namespace

Run make_record(CLI::App& app, const Common& common) {
  auto options = std::make_shared<Record>();
  app.add_option("--output", options->output, "The file to write, a request a line; -: stdout")
      ->required();
  app.add_option("--seconds", options->seconds, "Ends after so many; 0: does not")
      ->check(CLI::Range(0.0, 1e7))
      ->capture_default_str();
  app.add_option("--picks", options->picks, "Ends after so many or a few more; 0: does not")
      ->capture_default_str();
  app.footer(
      "Numbers stand for blocks of 512 tokens; equal numbers are equal prompts up to there.\n"
      "See what another policy or fleet would do with it: pickd-sim --trace FILE");
  return [options, &common] { return record(common, *options); };
}

}  // namespace pickd::ctl
