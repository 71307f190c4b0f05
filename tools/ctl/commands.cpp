#include "tools/ctl/commands.hpp"

namespace pickd::ctl {

namespace {

const Command kCommands[] = {
    {"status", "The daemon: version, uptime, clients, store, counters", run_status},
    {"endpoints", "The endpoints: state, load, cached blocks, why not ready, one line each",
     run_endpoints, add_watch_options},
    {"store", "The prefix store: size, load, blocks of each endpoint, what was forgotten and why",
     run_store},
    {"explain",
     "Why a pick went where it went: columns and scores of every candidate, what was dropped",
     run_explain, add_explain_options},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace pickd::ctl
