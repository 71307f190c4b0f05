// The commands of pickctl: a new one is a function in a file of its own and a line in commands.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace CLI {
class App;
}

namespace pickd::ctl {

struct Options {
  std::string socket;
  bool json = false;
  bool watch = false;
  double interval_s = 1;    // of --watch
  std::uint32_t times = 0;  // of --watch; 0: until it is ended
  bool last = false;        // of explain, this and the next two
  std::string ticket;
  std::string request_path;
};

struct Command {
  const char* name;
  const char* help;
  void (*run)(const Options& options);                             // throws std::runtime_error
  void (*add_options)(CLI::App& app, Options& options) = nullptr;  // of this command alone
};

std::span<const Command> commands();

void run_status(const Options& options);
void run_endpoints(const Options& options);
void add_watch_options(CLI::App& app, Options& options);
void run_store(const Options& options);
void run_explain(const Options& options);
void add_explain_options(CLI::App& app, Options& options);

}  // namespace pickd::ctl
