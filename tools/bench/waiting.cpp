#include "tools/bench/waiting.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/bench/open_loop.hpp"

namespace pickd::bench {

namespace {

// Slower than a wake takes, and faster than the spin budget.
constexpr std::array<double, 2> kRates = {1000, 25'000};
constexpr std::array<std::uint32_t, 4> kHogs = {0, 1, 2, 4};
constexpr std::array<const char*, 3> kWaits = {"block", "default", "spin"};

PickSubjectOptions subject_options(const WaitingOptions& options) {
  return {options.clients, options.endpoints, options.prompt_tokens};
}

// Medians of the slices: a burst of other load on the machine spoils a slice, not the cell.
struct Cell {
  tools::Samples p50_ns;
  tools::Samples p99_ns;

  void add(const tools::Samples& slice) {
    p50_ns.add(slice.percentile(0.5));
    p99_ns.add(slice.percentile(0.99));
  }
  double p50_us() const { return p50_ns.percentile(0.5) / 1e3; }
  double p99_us() const { return p99_ns.percentile(0.5) / 1e3; }
};

struct Row {
  double rate;
  std::uint32_t hogs;
  Cell wake;
  std::array<Cell, kWaits.size()> picks;

  double p99_to_block() const { return picks[1].p99_us() / picks[0].p99_us(); }
  double p50_to_spin() const { return picks[1].p50_us() / picks[2].p50_us(); }
};

void print_table(const WaitingOptions& options, const std::vector<Row>& rows) {
  std::printf("picks at intended times, us from there; %u endpoints, prompts of %u tokens;\n",
              options.endpoints, options.prompt_tokens);
  std::printf("medians of %u slices of %.1f s, in turns\n\n", options.slices, options.slice_s);
  std::printf(
      "                 bare wake           block         default            spin"
      "  default: p99/  p50/\n");
  std::printf(
      "picks/s hogs    p50    p99      p50    p99      p50    p99      p50    p99"
      "           block  spin\n");
  for (const Row& row : rows) {
    std::printf("%7.0f %4u %6.0f %6.0f ", row.rate, row.hogs, row.wake.p50_us(), row.wake.p99_us());
    for (const Cell& cell : row.picks) std::printf("  %6.0f %6.0f ", cell.p50_us(), cell.p99_us());
    std::printf("         %5.2f %5.2f\n", row.p99_to_block(), row.p50_to_spin());
  }
  std::printf(
      "\nwanted: p99 of default at most 2 x that of block in each row; p50 at most 2 x that\n"
      "of spin where picks come faster than the budget and nothing else runs (row %.0f, 0)\n",
      kRates[1]);
}

void print_json(const std::vector<Row>& rows) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json line;
    line["rate"] = row.rate;
    line["hogs"] = row.hogs;
    line["wake_p50_ns"] = row.wake.p50_us() * 1e3;
    line["wake_p99_ns"] = row.wake.p99_us() * 1e3;
    for (std::size_t at = 0; at < kWaits.size(); ++at) {
      line[std::string(kWaits[at]) + "_p50_ns"] = row.picks[at].p50_us() * 1e3;
      line[std::string(kWaits[at]) + "_p99_ns"] = row.picks[at].p99_us() * 1e3;
    }
    line["default_p99_to_block"] = row.p99_to_block();
    line["default_p50_to_spin"] = row.p50_to_spin();
    out.push_back(line);
  }
  std::printf("%s\n", out.dump(2).c_str());
}

}  // namespace

void run_waiting_standard(const WaitingOptions& options) {
  const std::unique_ptr<LoopSubject> wake = make_wake_subject();  // forks, so first
  std::vector<std::unique_ptr<LoopSubject>> subjects;
  subjects.reserve(std::size(kWaits));
  for (const char* wait : kWaits)
    subjects.push_back(make_pick_subject(wait, subject_options(options)));
  std::vector<Row> rows;
  rows.reserve(std::size(kRates) * std::size(kHogs));
  for (const double rate : kRates) {
    for (const std::uint32_t hogs : kHogs) rows.push_back({rate, hogs, {}, {}});
  }
  for (std::uint32_t slice = 0; slice < options.slices; ++slice) {
    for (Row& row : rows) {
      const Hogs hogs(row.hogs);
      row.wake.add(run_slice(*wake, {row.rate, options.slice_s, 1}));
      for (std::size_t at = 0; at < kWaits.size(); ++at) {
        row.picks[at].add(run_slice(*subjects[at], {row.rate, options.slice_s, options.clients}));
      }
    }
  }
  if (options.json)
    print_json(rows);
  else
    print_table(options, rows);
}

void run_waiting(const WaitingOptions& options) {
  std::vector<std::unique_ptr<LoopSubject>> subjects;
  for (const std::string& wait : options.waits)
    subjects.push_back(make_pick_subject(wait, subject_options(options)));
  std::vector<tools::Samples> samples(subjects.size());
  {
    const Hogs hogs(options.hogs);
    for (std::uint32_t slice = 0; slice < options.slices; ++slice) {
      for (std::size_t at = 0; at < subjects.size(); ++at)
        samples[at].add(run_slice(*subjects[at], {options.rate, options.slice_s, options.clients}));
    }
  }
  nlohmann::ordered_json out;
  out["rate"] = options.rate;
  out["clients"] = options.clients;
  out["hogs"] = options.hogs;
  if (!options.json) {
    std::printf("open loop: %.0f picks/s, %u clients, %u hogs, from the intended time\n",
                options.rate, options.clients, options.hogs);
  }
  for (std::size_t at = 0; at < subjects.size(); ++at) {
    const double p50 = samples[at].percentile(0.5);
    const double p99 = samples[at].percentile(0.99);
    const std::string& name = options.waits[at];
    out[name + "_p50_ns"] = p50;
    out[name + "_p99_ns"] = p99;
    if (!options.json)
      std::printf("%-10s p50 %9.1f us   p99 %9.1f us\n", name.c_str(), p50 / 1e3, p99 / 1e3);
  }
  if (options.json) std::printf("%s\n", out.dump(2).c_str());
}

}  // namespace pickd::bench
