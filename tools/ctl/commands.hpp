// The commands of pickctl: a new one is a function in a file of its own and a line in commands.cpp.
#pragma once

#include <span>
#include <string>

namespace pickd::ctl {

struct Options {
  std::string socket;
  bool json = false;
};

struct Command {
  const char* name;
  const char* help;
  void (*run)(const Options& options);  // throws std::runtime_error
};

std::span<const Command> commands();

void run_status(const Options& options);
void run_endpoints(const Options& options);
void run_store(const Options& options);

}  // namespace pickd::ctl
