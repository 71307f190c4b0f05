// The commands of pickctl: a new one is a function in a file of its own and a line in commands.cpp.
#pragma once

#include <functional>
#include <span>
#include <string>

namespace CLI {
class App;
}

namespace pickd::ctl {

inline constexpr int kExitFound = 3;  // it was done, and found what it looks for

// What every command is told.
struct Common {
  std::string socket;
  bool json = false;
  // Set by a command that writes a trace to standard output: nothing else may come there.
  mutable bool output_is_trace = false;
};

// Runs a command whose arguments have been read; returns the exit code. Throws std::runtime_error.
using Run = std::function<int()>;

// Adds the command's own arguments to `app`. `common` is filled in before what is returned runs.
using Make = Run (*)(CLI::App& app, const Common& common);

struct Command {
  const char* name;
  const char* help;
  Make make;
};

std::span<const Command> commands();

Run make_status(CLI::App& app, const Common& common);
Run make_endpoints(CLI::App& app, const Common& common);
Run make_store(CLI::App& app, const Common& common);
Run make_explain(CLI::App& app, const Common& common);
Run make_drain(CLI::App& app, const Common& common);
Run make_undrain(CLI::App& app, const Common& common);
Run make_add(CLI::App& app, const Common& common);
Run make_remove(CLI::App& app, const Common& common);
Run make_config(CLI::App& app, const Common& common);
Run make_top(CLI::App& app, const Common& common);
Run make_doctor(CLI::App& app, const Common& common);
Run make_record(CLI::App& app, const Common& common);
Run make_replay(CLI::App& app, const Common& common);
Run make_completion(CLI::App& app, const Common& common);

}  // namespace pickd::ctl
