// Options and output of `pickd-bench store`. See store.hpp.
#include "tools/bench/store.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "abi/limits.hpp"
#include "tools/bench/store_measure.hpp"
#include "tools/bench/store_standard.hpp"

namespace pickd::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
  const char* name;  // for people
  const char* key;   // of the JSON object; null = the product's own
  StoreFigures figures;
};

Json to_json(const StoreFigures& figures, const StoreOptions& options) {
  Json json;
  json["find_p50_ns"] = figures.find_p50_ns;
  json["find_p99_ns"] = figures.find_p99_ns;
  json["find_mean_ns"] = figures.find_mean_ns;
  json["insert_mblocks_s"] = figures.insert_mblocks_s;
  json["combined_mops_s"] = figures.combined_mops_s;
  json["steady_find_p50_ns"] = figures.steady_find_p50_ns;
  json["steady_find_p99_ns"] = figures.steady_find_p99_ns;
  json["steady_insert_mblocks_s"] = figures.steady_insert_mblocks_s;
  json["steady_combined_mops_s"] = figures.steady_combined_mops_s;
  json["evict_mentries_s"] = figures.evict_mentries_s;
  json["bytes_per_holding"] = figures.bytes_per_holding;
  json["load"] = figures.load;
  json["steady_load"] = figures.steady_load;
  json["replaced"] = figures.replaced;
  if (options.shared_blocks != 0) json["shared_found"] = figures.shared_found;
  return json;
}

void print_json(const std::vector<Row>& rows, const FindFigures& finds, double line_read_ns,
                const StoreOptions& options) {
  Json json = to_json(rows[0].figures, options);
  json["line_read_ns"] = line_read_ns;
  json["find_quiet_p50_ns"] = finds.quiet_p50_ns;
  json["find_quiet_p99_ns"] = finds.quiet_p99_ns;
  json["find_sweeping_p50_ns"] = finds.sweeping_p50_ns;
  json["find_sweeping_p99_ns"] = finds.sweeping_p99_ns;
  for (const auto& [tokens, ns] : finds.by_tokens)
    json["find_by_tokens_ns"][std::to_string(tokens)] = ns;
  json["reference"] = Json::object();
  for (std::size_t i = 1; i < rows.size(); ++i) {
    json["reference"][rows[i].key] = to_json(rows[i].figures, options);
    json["reference"][rows[i].key]["line_read_ns"] = line_read_ns;
  }
  std::printf("%s\n", json.dump(2).c_str());
}

void print_table(const std::vector<Row>& rows, const FindFigures& finds, double line_read_ns,
                 const StoreOptions& options) {
  std::printf(
      "%u blocks an id, %u endpoints, table of %u MiB, %u thread%s; random line read %.0f ns\n\n",
      options.expand, options.endpoints, options.state_mib, options.threads,
      options.threads == 1 ? "" : "s", line_read_ns);
  std::printf("%-14s %9s %9s %9s %9s %9s %9s %9s %8s %6s\n", "", "find p50", "find p99", "insert",
              "combined", "steady", "steady", "evict", "bytes", "load");
  std::printf("%-14s %9s %9s %9s %9s %9s %9s %9s %8s %6s\n", "", "us", "us", "M/s", "M ops/s",
              "insert M/s", "comb. M/s", "M/s", "/holding", "");
  for (const Row& row : rows) {
    const StoreFigures& f = row.figures;
    std::printf("%-14s %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %8.1f %6.2f\n", row.name,
                f.find_p50_ns / 1e3, f.find_p99_ns / 1e3, f.insert_mblocks_s, f.combined_mops_s,
                f.steady_insert_mblocks_s, f.steady_combined_mops_s, f.evict_mentries_s,
                f.bytes_per_holding, f.load);
  }
  const StoreFigures& own = rows[0].figures;
  std::printf("\npickd: find mean %.2f us, %.0f words replaced; in steady state load %.2f\n",
              own.find_mean_ns / 1e3, own.replaced, own.steady_load);
  if (options.shared_blocks != 0) {
    std::printf("pickd: common prompt of %u blocks found for %.2f %% of the endpoints\n",
                options.shared_blocks, 100 * own.shared_found);
  }
  std::printf("pickd: find p50/p99 %.2f/%.2f us alone, %.2f/%.2f us with the sweep flat out\n",
              finds.quiet_p50_ns / 1e3, finds.quiet_p99_ns / 1e3, finds.sweeping_p50_ns / 1e3,
              finds.sweeping_p99_ns / 1e3);
  std::printf("pickd: find by tokens of prompt:");
  for (const auto& [tokens, ns] : finds.by_tokens) std::printf(" %u: %.2f us", tokens, ns / 1e3);
  std::printf("\n");
}

}  // namespace

void measure_store(const StoreOptions& options) {
  const StoreWorkload workload(options);
  const std::uint64_t bytes = std::uint64_t{options.state_mib} << 20;
  const double line_read_ns = measure_line_read_ns(bytes);
  FindFigures finds;
  std::vector<Row> rows;
  const auto measure = [&](const char* name, const char* key, const MakeSubject& make,
                           FindFigures* more) {
    if (!options.json) std::fprintf(stderr, "measuring %s ...\n", name);
    rows.push_back({name, key, measure_subject(make, workload, options, more)});
  };
  measure(
      "pickd", nullptr,
      [&](bool) { return make_pickd_store(options.endpoints, bytes, options.threads); }, &finds);
  if (options.references) {
    measure(
        "(a) locked LRU", "locked_lru", [&](bool) { return make_locked_lru(options.endpoints); },
        nullptr);
    measure(
        "(b) char radix", "char_radix",
        [&](bool) { return make_char_radix(options.endpoints, workload.block_bytes()); }, nullptr);
    measure(
        "(c) hash radix", "hash_radix",
        [&](bool with_ttl) { return make_hash_radix(options.endpoints, with_ttl); }, nullptr);
  }
  if (options.json)
    print_json(rows, finds, line_read_ns, options);
  else
    print_table(rows, finds, line_read_ns, options);
}

namespace {

// Where a checkout of the project may have a trace beside it.
constexpr const char* kTraceBeside = "../shared/traces/conversation_trace.jsonl";

}  // namespace

void add_store(CLI::App& app) {
  auto options = std::make_shared<StoreOptions>();
  app.footer(
      "Without an option but --trace and --json: the standard set, one table with every target "
      "beside its figure.");
  app.add_option("--trace", options->trace,
                 "Mooncake trace, one JSON object a line (default: " + std::string(kTraceBeside) +
                     " when it is there, else chats made here)");
  std::vector<CLI::Option*> single = {
      app.add_option("--expand", options->expand,
                     "Blocks made of each 512-token id (32 = 16 tokens a block)")
          ->check(CLI::Range(1, 64)),
      app.add_option("--endpoints", options->endpoints, "Endpoints; request i goes to i mod N")
          ->check(CLI::Range(1U, static_cast<unsigned>(abi::kEndpointIdsMax) - 1)),
      app.add_option("--state-mib", options->state_mib, "Size of pickd's table")
          ->check(CLI::Range(1, 65536)),
      app.add_option("--shared-blocks", options->shared_blocks,
                     "Blocks of one prompt in front of every request")
          ->check(CLI::Range(0, 4096)),
      app.add_option("--ttl-ticks", options->ttl_ticks,
                     "TTL in requests: measures the steady state too (0 = not)"),
      app.add_option("--loops", options->loops,
                     "Replays for the steady state; the first one only fills")
          ->check(CLI::Range(1, 80)),
      app.add_option("--threads", options->threads, "Threads that share the fresh replay")
          ->check(CLI::Range(1, 32)),
      app.add_option("--requests", options->requests_max,
                     "Requests to take from the trace (0 = all)"),
      app.add_flag("!--no-reference", options->references, "Measure pickd alone")};
  app.add_flag("--json", options->json, "Print one JSON object");
  app.callback([options, single] {
    if (options->trace.empty() && std::filesystem::exists(kTraceBeside))
      options->trace = kTraceBeside;
    const bool one = std::any_of(single.begin(), single.end(),
                                 [](const CLI::Option* option) { return option->count() != 0; });
    if (one)
      measure_store(*options);
    else
      measure_standard_set(options->trace, options->json);
  });
}

int run_store(int argc, char** argv) {
  CLI::App app{
      "Measures the prefix table on a trace, beside reference structures and the machine."};
  add_store(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pickd-bench store: %s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace pickd::bench
