#include "tools/bench/store_standard.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/bench/store_measure.hpp"
#include "tools/bench/store_scaling.hpp"

namespace pickd::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint32_t kEndpoints = 8;
constexpr std::uint32_t kManyEndpoints = 500;
constexpr std::uint32_t kSharedBlocks = 94;
constexpr double kHalf = 0.5;
constexpr double kFull = 0.75;

struct Line {
  std::string name;
  StoreFigures figures;
};

struct Target {
  std::string name;
  double wanted;
  double measured;
  bool at_most;  // else at least
  const char* unit;
  bool met() const { return at_most ? measured <= wanted : measured >= wanted; }
};

class StandardSet {
 public:
  StandardSet(const std::string& trace, bool quiet) : trace_(trace), quiet_(quiet) {}

  void measure() {
    for (const std::uint32_t expand : {8U, 32U}) measure_against_references(expand);
    measure_many_endpoints();
  }

  void print() const {
    std::printf("%s; %u endpoints, one thread; random 64-byte line read %.0f ns\n",
                workload_.c_str(), kEndpoints, line_read_ns_);
    std::printf("K: blocks for each 512 tokens, so K=8 is 64 tokens a block and K=32 is 16\n\n");
    std::printf("%-34s %11s %9s %9s %17s %9s %8s %5s\n", "", "find us", "insert", "combined",
                "steady", "evict", "bytes/", "load");
    std::printf("%-34s %5s %5s %9s %9s %8s %8s %9s %8s\n", "", "p50", "p99", "M/s", "M ops/s",
                "ins M/s", "M ops/s", "M/s", "holding");
    for (const Line& line : lines_) print_line(line);
    std::printf("\n%-62s %10s %10s\n", "target", "wanted", "measured");
    for (const Target& target : targets_) {
      std::printf("%-62s %s %5.4g %-2s %7.4g %-2s  %s\n", target.name.c_str(),
                  target.at_most ? "<=" : ">=", target.wanted, target.unit, target.measured,
                  target.unit, target.met() ? "met" : "MISSED");
    }
    for (const auto& [name, times] : probes_)
      std::printf("%-73s %7.4g x   (probe of the machine)\n", name.c_str(), times);
  }

  void print_json() const {
    Json json;
    json["workload"] = workload_;
    json["line_read_ns"] = line_read_ns_;
    for (const Line& line : lines_) json["runs"][line.name] = to_json(line.figures);
    for (const Target& target : targets_) {
      json["targets"].push_back({{"name", target.name},
                                 {"bound", target.at_most ? "at_most" : "at_least"},
                                 {"wanted", target.wanted},
                                 {"measured", target.measured},
                                 {"unit", target.unit},
                                 {"met", target.met()}});
    }
    for (const auto& [name, times] : probes_) json["probes"][name] = times;
    std::printf("%s\n", json.dump(2).c_str());
  }

 private:
  static void print_line(const Line& line) {
    const StoreFigures& f = line.figures;
    std::printf("%-34s %5.2f %5.1f %9.2f %9.2f ", line.name.c_str(), f.find_p50_ns / 1e3,
                f.find_p99_ns / 1e3, f.insert_mblocks_s, f.combined_mops_s);
    if (f.steady_combined_mops_s != 0)
      std::printf("%8.2f %8.2f ", f.steady_insert_mblocks_s, f.steady_combined_mops_s);
    else
      std::printf("%8s %8s ", "-", "-");
    std::printf("%9.2f %8.1f ", f.evict_mentries_s, f.bytes_per_holding);
    if (f.load != 0)
      std::printf("%5.2f\n", f.load);
    else
      std::printf("%5s\n", "-");
  }

  StoreOptions options(std::uint32_t expand) const {
    StoreOptions made;
    made.trace = trace_;
    made.expand = expand;
    made.endpoints = kEndpoints;
    return made;
  }

  StoreFigures run(const std::string& name, const MakeSubject& make, const StoreWorkload& workload,
                   const StoreOptions& options, FindFigures* finds = nullptr) {
    if (!quiet_) std::fprintf(stderr, "measuring %s ...\n", name.c_str());
    lines_.push_back({name, measure_subject(make, workload, options, finds)});
    return lines_.back().figures;
  }

  static MakeSubject pickd(const StoreOptions& options, std::uint64_t bytes) {
    return [options, bytes](bool) {
      return make_pickd_store(options.endpoints, bytes, options.threads);
    };
  }

  // Size of a table that the workload fills to `load`: what a large one holds says how much it is.
  static std::uint64_t bytes_for_load(const StoreWorkload& workload, const StoreOptions& options,
                                      double load) {
    const std::uint64_t bytes = workload.blocks() * 8 * 2;
    const auto store = make_pickd_store(options.endpoints, bytes, 1);
    PromptBuffer buffer;
    for (std::size_t at = 0; at < workload.requests(); ++at) {
      store->insert(workload.prompt(at, 0, false, buffer),
                    static_cast<std::uint32_t>(at % options.endpoints), 1 + at);
    }
    const auto words = static_cast<double>(store->entries());
    const double wanted = 8 * words / load;
    return static_cast<std::uint64_t>(wanted / 4096 + 1) * 4096;
  }

  void measure_against_references(std::uint32_t expand) {
    const std::string k = "K=" + std::to_string(expand) + " ";
    StoreOptions plain = options(expand);
    const StoreWorkload workload(plain);
    workload_ = workload.name() + ", " + std::to_string(workload.requests()) + " requests";
    StoreOptions steady = plain;
    steady.loops = 2;
    steady.ttl_ticks = static_cast<std::uint32_t>(workload.requests() / 2);
    const std::uint64_t half = bytes_for_load(workload, plain, kHalf);
    const std::uint64_t full = bytes_for_load(workload, plain, kFull - 0.01);
    line_read_ns_ = measure_line_read_ns(half);

    FindFigures finds;
    const StoreFigures own = run(k + "pickd", pickd(steady, half), workload, steady, &finds);
    const StoreFigures dense = run(k + "pickd, nearly full", pickd(plain, full), workload, plain);
    StoreOptions two = plain;
    two.threads = 2;
    run(k + "pickd, two threads", pickd(two, half), workload, two);
    if (!quiet_) std::fprintf(stderr, "measuring %stwo threads against one ...\n", k.c_str());
    const ScalingFigures scaling =
        measure_scaling(pickd(two, half), pickd(plain, half / 2), workload, plain);
    probes_.push_back({k + "two threads that share nothing against one", scaling.apart});
    run(
        k + "(a) locked LRU", [&](bool) { return make_locked_lru(kEndpoints); }, workload, plain);
    run(
        k + "(b) character radix tree",
        [&](bool) { return make_char_radix(kEndpoints, workload.block_bytes()); }, workload, plain);
    const StoreFigures tree = run(
        k + "(c) tree of block hashes",
        [&](bool with_ttl) { return make_hash_radix(kEndpoints, with_ttl); }, workload, steady);

    const auto times = [&](const char* what, double measured, double wanted) {
      targets_.push_back({k + what, wanted, measured, false, "x"});
    };
    times("combined against (c), fresh", own.combined_mops_s / tree.combined_mops_s, 4);
    times("combined against (c), steady", own.steady_combined_mops_s / tree.steady_combined_mops_s,
          4);
    times("insert against (c), fresh", own.insert_mblocks_s / tree.insert_mblocks_s, 5);
    times("insert against (c), steady", own.steady_insert_mblocks_s / tree.steady_insert_mblocks_s,
          4);
    times("eviction against (c)", own.evict_mentries_s / tree.evict_mentries_s, 100);
    const auto most = [&](const std::string& what, double measured, double wanted,
                          const char* unit) {
      targets_.push_back({k + what, wanted, measured, true, unit});
    };
    most("find p50 against (c)", own.find_p50_ns / tree.find_p50_ns, 3, "x");
    most("find p99 against (c)", own.find_p99_ns / tree.find_p99_ns, 1, "x");
    most("bytes a holding at load " + two_digits(own.load), own.bytes_per_holding, 17, "B");
    most("bytes a holding at load " + two_digits(dense.load), dense.bytes_per_holding, 11.5, "B");
    most("find p99 with the sweep flat out, against without",
         finds.sweeping_p99_ns / finds.quiet_p99_ns, 1.3, "x");
    times("combined of two threads against one", scaling.shared, 1.7);
    const auto& shortest = finds.by_tokens.front();
    const auto& longest = finds.by_tokens.back();
    most("find of " + std::to_string(longest.first) + " tokens against " +
             std::to_string(shortest.first) + ": grows by",
         longest.second / shortest.second,
         static_cast<double>(longest.first) / static_cast<double>(shortest.first), "x");
  }

  void measure_many_endpoints() {
    StoreOptions many = options(8);
    many.endpoints = kManyEndpoints;
    many.shared_blocks = kSharedBlocks;
    const StoreWorkload workload(many);
    const StoreFigures figures =
        run("K=8, 500 endpoints, shared prompt", pickd(many, bytes_for_load(workload, many, kHalf)),
            workload, many);
    targets_.push_back({"500 endpoints: find p50, at 100 ns a line read",
                        6 * std::max(1.0, line_read_ns_ / 100), figures.find_p50_ns / 1e3, true,
                        "us"});
    targets_.push_back(
        {"500 endpoints: common prompt found for", 99.9, 100 * figures.shared_found, false, "%"});
  }

  static std::string two_digits(double value) {
    char text[16];
    std::snprintf(text, sizeof text, "%.2f", value);
    return text;
  }

  static Json to_json(const StoreFigures& f) {
    return {{"find_p50_ns", f.find_p50_ns},
            {"find_p99_ns", f.find_p99_ns},
            {"insert_mblocks_s", f.insert_mblocks_s},
            {"combined_mops_s", f.combined_mops_s},
            {"steady_insert_mblocks_s", f.steady_insert_mblocks_s},
            {"steady_combined_mops_s", f.steady_combined_mops_s},
            {"evict_mentries_s", f.evict_mentries_s},
            {"bytes_per_holding", f.bytes_per_holding},
            {"load", f.load}};
  }

  std::string trace_;
  bool quiet_;
  std::string workload_;
  double line_read_ns_ = 0;
  std::vector<Line> lines_;
  std::vector<Target> targets_;
  std::vector<std::pair<std::string, double>> probes_;  // what the machine itself did
};

}  // namespace

void measure_standard_set(const std::string& trace, bool json) {
  StandardSet set(trace, json);
  set.measure();
  if (json)
    set.print_json();
  else
    set.print();
}

}  // namespace pickd::bench
