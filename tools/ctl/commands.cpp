#include "tools/ctl/commands.hpp"

namespace pickd::ctl {

namespace {

const Command kCommands[] = {
    {"status", "The daemon: version, uptime, clients, store, counters", make_status},
    {"endpoints", "The endpoints: state, load, cached blocks, why not ready, one line each",
     make_endpoints},
    {"store", "The prefix store: size, load, blocks of each endpoint, what was forgotten and why",
     make_store},
    {"explain",
     "Why a pick went where it went: columns and scores of every candidate, what was dropped",
     make_explain},
    {"drain", "Give endpoints no new picks; what they hold stays remembered", make_drain},
    {"undrain", "Give drained endpoints picks again", make_undrain},
    {"add", "Add an endpoint, or change one with --update", make_add},
    {"remove", "Remove endpoints and forget what they hold", make_remove},
    {"config", "The configuration: what the daemon runs with, how a file differs from it",
     make_config},
    {"top", "The daemon live: picks, hits, load of each endpoint, until q or Ctrl-C", make_top},
    {"doctor", "Looks for common faults and says what would help", make_doctor},
    {"record", "Write picks as a trace that pickd-sim reads; no text of any prompt is in it",
     make_record},
    {"replay", "Send a trace's requests to the daemon as picks: which endpoints, how many hits",
     make_replay},
    {"completion", "Completion for a shell: bash, zsh or fish", make_completion},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace pickd::ctl
