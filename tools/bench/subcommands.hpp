// The measurements of pickd-bench: each is a function in a file of its own and a line in main.cpp.
#pragma once

namespace CLI {
class App;
}

namespace pickd::bench {

// Adds options to its subcommand and sets its callback. Failures are thrown as std::runtime_error.
void add_replay(CLI::App& app);
void add_pick(CLI::App& app);
void add_body(CLI::App& app);
void add_metrics(CLI::App& app);
void add_reactor(CLI::App& app);
void add_schedule(CLI::App& app);
void add_scrape(CLI::App& app);

}  // namespace pickd::bench
