// pickd-bench: measures pickd. Every figure is printed beside a probe of the machine from the same
// run.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "pickd/pickd.h"
#include "tools/bench/store.hpp"
#include "tools/bench/subcommands.hpp"
#include "tools/common/numbers.hpp"

int main(int argc, char** argv) {
  CLI::App app{"pickd-bench: measures pickd, beside a probe of the machine in the same run.\n"};
  app.footer("Exit codes: 0 measured, 1 could not measure, 2 arguments bad.");
  app.set_version_flag("--version", std::string("pickd-bench ") + pickd_version());
  app.require_subcommand(1);
  pickd::bench::add_replay(*app.add_subcommand(
      "replay", "Replay a Mooncake trace through a daemon: hit rate and pick latency"));
  pickd::bench::add_pick(*app.add_subcommand(
      "pick", "Round trip of a pick against a bare ring of the same record size"));
  pickd::bench::add_store(*app.add_subcommand(
      "store", "The prefix table on a trace, beside three reference structures"));
  pickd::bench::add_body(
      *app.add_subcommand("body", "How fast request bodies become requests, beside memchr"));
  pickd::bench::add_metrics(
      *app.add_subcommand("metrics", "How fast metrics pages of engines are read, beside memchr"));
  pickd::bench::add_reactor(
      *app.add_subcommand("reactor", "What an event costs over epoll and over io_uring"));
  pickd::bench::add_schedule(*app.add_subcommand(
      "schedule", "What a decision costs: profiles, endpoints, plugins; no daemon, one thread"));
  pickd::bench::add_scrape(*app.add_subcommand(
      "scrape", "What scraping many engines costs the daemon, beside the bare exchange"));
  pickd::tools::read_numbers_strictly(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pickd-bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
