// pickctl: look at a running daemon. One file a command; this one reads arguments.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "pickd/pickd.h"
#include "tools/common/numbers.hpp"
#include "tools/ctl/commands.hpp"

int main(int argc, char** argv) {
  CLI::App app{"pickctl: looks at a running pickd and operates it.\n"};
  app.footer(
      "Exit codes: 0 done, 1 the daemon is not there or refused, 2 arguments bad, 3 doctor or "
      "config "
      "diff found something.");
  app.set_version_flag("--version", std::string("pickctl ") + pickd_version());
  app.require_subcommand(1);
  pickd::ctl::Common common;
  pickd::ctl::Run run;
  app.add_option("--socket", common.socket,
                 "Control socket; default $PICKD_SOCKET or /run/pickd/pickd.sock");
  app.add_flag("--json", common.json, "Print one JSON object");
  app.fallthrough();  // --json may stand behind the command
  for (const pickd::ctl::Command& command : pickd::ctl::commands()) {
    CLI::App* added = app.add_subcommand(command.name, command.help);
    added->callback([&run, made = command.make(*added, common)] { run = made; });
  }
  pickd::tools::read_numbers_strictly(app);
  try {
    app.parse(argc, argv);
    return run();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pickctl: %s\n", error.what());
    return 1;
  }
}
