// pickd-demo: plays the same chat workload against eight simulated engines, first by round-robin
// and then by pickd, and shows both side by side; with --failures it lets engines fail instead, and
// shows that no request is lost. Leaves nothing behind: no process, no socket, no file.
#include <signal.h>
#include <sys/signalfd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tools/common/numbers.hpp"
#include "tools/demo/failures.hpp"
#include "tools/demo/run.hpp"
#include "tools/demo/workload_maker.hpp"

extern char** environ;

using namespace pickd;

namespace {

// pickd refuses variables it does not know and heeds those it does: neither belongs into the demo.
void forget_pickd_environment() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, "PICKD_", 6) == 0) {
      names.emplace_back(*variable, std::strcspn(*variable, "="));
    }
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

// A descriptor that is readable once somebody wants us to end.
base::Fd end_signals() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, number);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return base::Fd(::signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
}

int fail(const base::Error& error) {
  std::fprintf(stderr, "\npickd-demo: %s\n", error.text.c_str());
  return error.code == demo::kInterrupted ? 130 : 1;
}

// The workload is played again when it is over; by then most of it has left the caches.
constexpr double kPageSeconds = 600;

int play_page(demo::RunOptions options) {
  options.title = "pickd";
  options.page = true;
  const auto played = demo::Run(options).play();
  if (played.error().code != demo::kInterrupted) return fail(played.error());
  std::printf("\n");
  return 0;
}

int play_failures(const demo::RunOptions& run, const std::string& log) {
  demo::FailureOptions options;
  options.programs = run.programs;
  options.workload = run.workload;
  options.log = log;
  options.seconds = run.seconds;
  options.signals = run.signals;
  const auto good = demo::FailureRun(options).play();
  if (!good) return fail(good.error());
  return good.value() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  double scale = 1;
  std::string json;
  bool failures = false;
  std::string log;
  bool page = false;
  demo::WorkloadOptions workload;
  CLI::App app{
      "Plays the same chat workload against eight simulated engines, by round-robin and by pickd."};
  app.option_defaults()->always_capture_default();
  app.add_option("--seconds", workload.seconds, "length of each of the two runs")
      ->check(CLI::Range(2.0, 3600.0));
  app.add_option("--scale", scale, "how many times the usual number of conversations")
      ->check(CLI::Range(0.05, 20.0));
  app.add_option("--seed", workload.seed, "seed of the workload");
  app.add_option("--json", json, "writes the numbers to this file, too");
  auto* fail_flag = app.add_flag("--failures", failures,
                                 "one run in which engines are killed, restarted, hung and added: "
                                 "exit code 1 if a request is lost or goes to an engine that is "
                                 "known to be dead");
  app.add_flag("--page", page, "pickd alone, with its page, until Ctrl-C; prints where the page is")
      ->excludes(fail_flag);
  app.add_option("--log", log, "with --failures: writes the request log to this file")
      ->needs(fail_flag);
  app.footer("Exit codes: 0 all went well, 1 not, 2 arguments bad, 130 interrupted.");
  pickd::tools::read_numbers_strictly(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  workload.conversations_per_s *= scale;

  const base::Fd signals = end_signals();
  forget_pickd_environment();
  auto directory = tools::TempDir::make("pickd-demo");
  if (!directory) return fail(directory.error());
  demo::RunOptions options;
  options.programs = tools::program_directory();
  options.workload = directory->path() + "/workload";
  options.seconds = workload.seconds;
  options.signals = signals.get();
  if (page) options.seconds = workload.seconds = std::max(workload.seconds, kPageSeconds);
  std::ofstream file(options.workload);
  file << demo::make_workload(workload);
  file.close();
  if (!file) return fail(base::errno_error("write " + options.workload));

  if (failures) return play_failures(options, log);
  if (page) return play_page(options);
  std::printf("8 engines, %u applications, %.1f conversations/s, 2 runs of %.0f s\n",
              workload.applications, workload.conversations_per_s, workload.seconds);
  std::fflush(stdout);
  std::ofstream out;
  if (!json.empty()) {
    // Before the runs: numbers of an earlier demo must not pass for those of one that failed.
    out.open(json);
    if (!out) return fail(base::errno_error("write " + json));
  }
  options.title = "round-robin";
  options.profile = "round-robin";
  auto round_robin = demo::Run(options).play();
  if (!round_robin) return fail(round_robin.error());
  options.title = "pickd";
  options.profile.clear();
  options.probe_seconds = 1;
  auto pickd = demo::Run(options).play();
  if (!pickd) return fail(pickd.error());

  std::printf("\n%s", demo::table_of(round_robin.value(), pickd.value()).c_str());
  if (!json.empty()) {
    out << demo::json_of(round_robin.value(), pickd.value());
    out.close();
    if (!out) return fail(base::errno_error("write " + json));
  }
  // A turn that failed is missing in every number above.
  return round_robin->failed() + pickd->failed() == 0 ? 0 : 1;
}
