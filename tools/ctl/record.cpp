// pickctl record: the daemon's picks as a trace, until so many seconds or picks, or Ctrl-C.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "abi/recording.hpp"
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
  bool replace = false;
};

// By how much the share of hits that a trace shows may differ from that of the daemon.
constexpr double kShareApart = 0.1;

// The file of a trace. What is there already is kept, unless it shall be replaced; a trace tells of
// users' traffic, so that nobody else may read it.
class Output {
 public:
  Output(const std::string& path, bool replace) : path_(path) {
    if (path == "-") {
      fd_ = STDOUT_FILENO;
      return;
    }
    struct stat there {};
    is_file_ = ::lstat(path.c_str(), &there) != 0 || S_ISREG(there.st_mode);
    if (::lstat(path.c_str(), &there) == 0 && S_ISLNK(there.st_mode))
      throw std::runtime_error(path + " is a symbolic link: name the file it shall be");
    int flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW;
    if (is_file_) flags |= O_CREAT | (replace ? O_TRUNC : O_EXCL);
    fd_ = ::open(path.c_str(), flags, 0600);
    if (fd_ >= 0) return;
    if (errno == EEXIST)
      throw std::runtime_error(path + " is there already: name another, or say --force");
    fail();
  }
  ~Output() {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(const std::string& line) {
    waiting_ += line;
    constexpr std::size_t kMuch = 64 * 1024;
    if (waiting_.size() >= kMuch) flush();
  }

  // Whole lines: where there is no room for one, its beginning is taken back.
  void flush() {
    std::size_t done = 0;
    while (done < waiting_.size()) {
      const ssize_t wrote = ::write(fd_, waiting_.data() + done, waiting_.size() - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) {
        const int error = errno;
        const std::size_t whole = done == 0 ? 0 : waiting_.rfind('\n', done - 1) + 1;
        if (is_file_ && ::ftruncate(fd_, static_cast<off_t>(written_ + whole)) != 0)
          std::fprintf(stderr, "pickctl: the last line of %s is cut\n", path_.c_str());
        errno = error;
        fail();
      }
      done += static_cast<std::size_t>(wrote);
    }
    written_ += done;
    waiting_.clear();
  }

 private:
  [[noreturn]] void fail() const {
    throw std::runtime_error((path_ == "-" ? "standard output" : path_) +
                             ": cannot be written: " + std::strerror(errno));
  }

  std::string path_;
  int fd_ = -1;
  bool is_file_ = false;
  std::string waiting_;
  std::size_t written_ = 0;
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
  common.output_is_trace = options.output == "-";
  Tap tap(common.socket);
  Output output(options.output, options.replace);
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
  if (writer.hit_share() > writer.shown_hit_share() + kShareApart)
    std::fprintf(
        stderr,
        "pickctl: warning: %.1f %% of the tokens were believed cached, and at most %.1f %% "
        "can be in the trace, whose numbers stand for %u tokens each: prompts share less "
        "than that, or what was remembered before. pickd-sim will see fewer hits than "
        "there are\n",
        100 * writer.hit_share(), 100 * writer.shown_hit_share(),
        static_cast<unsigned>(abi::kRecordingStrideTokens));
  if (common.json) {
    const nlohmann::ordered_json out = {{"picks", writer.picks()},
                                        {"written", writer.written()},
                                        {"outputs_guessed", writer.guessed()},
                                        {"lost", tap.lost()},
                                        {"hit_share", writer.hit_share()},
                                        {"trace_hit_share", writer.shown_hit_share()}};
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
  app.add_flag("--force", options->replace, "Replace the file when it is there already");
  app.footer(
      "Numbers stand for blocks of 512 tokens; equal numbers are equal prompts up to there.\n"
      "See what another policy or fleet would do with it: pickd-sim --trace FILE");
  return [options, &common] { return record(common, *options); };
}

}  // namespace pickd::ctl
