// pickctl: look at a running daemon. One file a command; this one reads arguments.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "pickd/pickd.h"
#include "tools/common/numbers.hpp"
#include "tools/common/output.hpp"
#include "tools/ctl/commands.hpp"

namespace {

constexpr int kExitFailed = 1;
constexpr int kExitArguments = 2;

// How many letters to put in, take out or change.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t at = 1; at <= a.size(); ++at) {
    std::size_t diagonal = row[0]++;
    for (std::size_t to = 1; to <= b.size(); ++to) {
      const std::size_t changed = diagonal + (a[at - 1] == b[to - 1] ? 0 : 1);
      diagonal = row[to];
      row[to] = std::min({row[to] + 1, row[to - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

// What stands where the command belongs and is none; empty: nothing does.
std::string unknown_command(int argc, char** argv) {
  for (int at = 1; at < argc; ++at) {
    const std::string word = argv[at];
    if (word == "--socket") ++at;  // its value is no command
    if (word.empty() || word[0] == '-') continue;
    const auto commands = pickd::ctl::commands();
    const bool known = std::any_of(commands.begin(), commands.end(),
                                   [&](const auto& command) { return word == command.name; });
    return known ? "" : word;
  }
  return "";
}

int refuse_command(const std::string& word) {
  const auto commands = pickd::ctl::commands();
  const auto nearest =
      std::min_element(commands.begin(), commands.end(), [&](const auto& a, const auto& b) {
        return distance(word, a.name) < distance(word, b.name);
      });
  constexpr std::size_t kAlike = 3;
  std::string hint;
  if (distance(word, nearest->name) < kAlike)
    hint = std::string(" Did you mean \"") + nearest->name + "\"?";
  std::fprintf(stderr, "pickctl: there is no command \"%s\".%s `pickctl --help` lists them.\n",
               word.c_str(), hint.c_str());
  return kExitArguments;
}

int fail(const pickd::ctl::Common& common, const std::string& what) {
  std::fprintf(stderr, "pickctl: %s\n", what.c_str());
  if (common.json && !common.output_is_trace) {
    constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
    const nlohmann::ordered_json out = {{"error", what}};
    std::printf("%s\n", out.dump(2, ' ', false, kReplace).c_str());
  }
  return kExitFailed;
}

int run_command(int argc, char** argv) {
  CLI::App app{"pickctl: looks at a running pickd and operates it.\n"};
  app.footer(
      "Exit codes: 0 done, 1 the daemon is not there or refused, or the output could not be "
      "written,\n2 arguments bad, 3 doctor, config diff or status --check found something.");
  app.set_version_flag("--version", std::string("pickctl ") + pickd_version());
  app.require_subcommand(1);
  pickd::ctl::Common common;
  pickd::ctl::Run run;
  app.add_option("--socket", common.socket,
                 "Control socket; default $PICKD_SOCKET or /run/pickd/pickd.sock");
  app.add_flag("--json", common.json,
               "Print one JSON object; {\"error\": ...} when it fails. Not of scripts and help");
  app.fallthrough();  // --json may stand behind the command
  for (const pickd::ctl::Command& command : pickd::ctl::commands()) {
    CLI::App* added = app.add_subcommand(command.name, command.help);
    added->callback([&run, made = command.make(*added, common)] { run = made; });
  }
  pickd::tools::read_numbers_strictly(app);
  if (argc < 2) {
    std::fputs(app.help().c_str(), stderr);
    return kExitArguments;
  }
  if (const std::string word = unknown_command(argc, argv); !word.empty())
    return refuse_command(word);
  try {
    app.parse(argc, argv);
    return run();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitArguments;
  } catch (const pickd::tools::OutputLost&) {
    return 0;  // said at the end, as for any output
  } catch (const std::exception& error) {
    return fail(common, error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  pickd::tools::keep_standard_streams();
  return pickd::tools::exit_code("pickctl", run_command(argc, argv));
}
