// pickctl: look at a running daemon. One file a command; this one reads arguments.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "pickd/pickd.h"
#include "tools/ctl/commands.hpp"

int main(int argc, char** argv) {
  CLI::App app{"pickctl: looks at a running pickd.\n"};
  app.footer("Exit codes: 0 done, 1 the daemon is not there or refused, 2 arguments bad.");
  app.set_version_flag("--version", std::string("pickctl ") + pickd_version());
  app.require_subcommand(1);
  pickd::ctl::Options options;
  app.add_option("--socket", options.socket,
                 "Control socket; default $PICKD_SOCKET or /run/pickd/pickd.sock");
  app.add_flag("--json", options.json, "Print one JSON object");
  app.fallthrough();  // --json may stand behind the command
  for (const pickd::ctl::Command& command : pickd::ctl::commands()) {
    CLI::App* added = app.add_subcommand(command.name, command.help);
    added->callback([&options, &command] { command.run(options); });
    if (command.add_options != nullptr) command.add_options(*added, options);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pickctl: %s\n", error.what());
    return 1;
  }
  return 0;
}
