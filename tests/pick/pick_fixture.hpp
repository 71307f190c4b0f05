// PickRig: the pick core over plain memory, wired as the daemon wires it, with a tick that the test
// sets. Knows no thread, file or clock.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "daemon/config/load.hpp"
#include "daemon/endpoints/endpoint_table.hpp"
#include "daemon/pick/pick_core.hpp"
#include "daemon/prefix/horizons.hpp"

namespace pickd::pick::test {

// A chain of `blocks` keys that starts with those of `parent` and is its own by `salt` from there
// on.
inline std::vector<std::uint64_t> chain(std::uint64_t salt, std::size_t blocks,
                                        std::vector<std::uint64_t> parent = {}) {
  std::uint64_t key = parent.empty() ? 0x5EED : parent.back();
  for (std::uint64_t at = 0; at < blocks; ++at) {
    key = base::Random(key ^ base::Random(salt * 1'000'003 + at).next()).next();
    parent.push_back(key);
  }
  return parent;
}

struct RigOptions {
  std::string profile = "prefix-load";  // a built-in one, unless `scheduling` is set
  config::SchedulingConfig scheduling{};
  std::uint32_t block_tokens = 64;
  std::uint32_t blocks_min = 1;
  std::uint32_t blocks_max = abi::kKeysMax;
  std::uint64_t lines = 1 << 14;
  std::uint32_t ids = 64;
  std::uint64_t seed = 1;
  bool predicts = true;
};

// Plugins by type and weight, as a scheduling configuration.
struct Use {
  std::string type;
  std::optional<double> weight = std::nullopt;
  std::string parameters{};  // YAML
};
inline config::SchedulingConfig scheduling(const std::vector<Use>& uses) {
  config::SchedulingConfig made;
  config::ProfileConfig profile;
  profile.name = "test";
  for (const Use& use : uses) {
    config::Tree parameters;
    if (!use.parameters.empty()) parameters = *config::parse_tree(use.parameters, "test.yaml");
    made.plugins.push_back({use.type, use.type, parameters, {}});
    profile.plugins.push_back({use.type, use.weight, {}});
  }
  made.profiles.push_back(profile);
  return made;
}

class PickRig {
 public:
  explicit PickRig(const RigOptions& options = {})
      : options_(options),
        words_(static_cast<abi::Word*>(
            ::operator new (options.lines* abi::kCacheLineBytes, std::align_val_t{64}))),
        records_(new abi::EndpointRecord[options.ids]()),
        slots_(new abi::Reservation[kSlots]()),
        table_({words_.get(), options.lines, records_.get(), options.ids, &global_horizon_, 10}),
        reservations_(slots_.get(), kSlots, records_.get()),
        flights_(options.ids, kSlots),
        endpoints_({records_.get(), options.ids, &high_water_, 0}, store_),
        counters_(row_),
        scratch_(std::make_unique<PickScratch>(options.seed)) {
    if (options.predicts) reservations_.observe(flights_);
    for (std::uint64_t at = 0; at < options.lines * abi::kWordsPerLine; ++at) {
      new (words_.get() + at) abi::Word(0);
    }
    config::SchedulingConfig scheduling = options.scheduling;
    if (scheduling.profiles.empty()) scheduling.profile = options.profile;
    auto schedule = Schedule::make(scheduling);
    if (!schedule) throw std::runtime_error(schedule.error().text);
    use(std::move(*schedule));
  }
  void use(std::unique_ptr<const Schedule> schedule) {
    core_ = std::make_unique<PickCore>(
        PickCore::Parts{records_.get(), &table_, &reservations_, options_.block_tokens,
                        options_.blocks_min, options_.blocks_max, 42,
                        options_.predicts ? &flights_ : nullptr},
        std::move(schedule));
    if (scratch_) scratch_->schedule = nullptr;  // of the core before
  }

  endpoints::EndpointSpec spec(const std::string& name) const {
    endpoints::EndpointSpec made;
    made.name = name;
    made.address = name + ":8000";
    return made;
  }
  void add(const endpoints::EndpointSpec& spec) {
    const auto added = endpoints_.add(spec, "test", tick);
    if (!added) throw std::runtime_error(added.error().text);
  }
  // e1, e2, ... in order of id.
  void add_endpoints(std::uint32_t count) {
    for (std::uint32_t at = 1; at <= count; ++at) add(spec("e" + std::to_string(at)));
    tick += 10;  // past the floors
  }

  // A request with a fresh ticket; 64 tokens a key unless `tokens` says otherwise.
  PickRequest request(std::span<const std::uint64_t> keys = {}, std::uint32_t tokens = 0) {
    PickRequest made;
    made.keys = keys;
    made.prompt_tokens =
        tokens != 0 ? tokens : static_cast<std::uint32_t>(keys.size()) * options_.block_tokens;
    made.ticket = {7, ++sequence_};
    made.uid = kUid;
    made.now_ns = tick * abi::kTickNs;
    return made;
  }
  PickResult pick_only(const PickRequest& request) {
    PickResult result;
    // Held until the next pick, as a worker holds it while it serves: results point into it.
    core_->pick(request, store_.acquire(0), tick, *scratch_, counters_, result);
    return result;
  }
  void remember(const PickRequest& request, const PickResult& result) {
    core_->remember(request, result, tick, counters_);
  }
  // As a worker does it: answered, then remembered.
  PickResult pick(const PickRequest& request) {
    const PickResult result = pick_only(request);
    remember(request, result);
    return result;
  }
  // The name of the winner; the request runs on.
  std::string winner(const PickRequest& request) { return name(pick(request)); }
  // The same, and it ends at once.
  std::string served(const PickRequest& request) {
    const std::string name = winner(request);
    reservations_.end(request.ticket, kUid);
    return name;
  }
  static std::string name(const PickResult& result, std::uint32_t at = 0) {
    return result.count <= at ? "status " + std::to_string(result.status)
                              : result.endpoints[at].endpoint->name;
  }
  static std::vector<std::string> names(const PickResult& result) {
    std::vector<std::string> all;
    for (std::uint32_t at = 0; at < result.count; ++at) all.push_back(name(result, at));
    return all;
  }
  // Score by endpoint name, of up to eight endpoints.
  std::map<std::string, float> scores(const PickRequest& request) {
    const PickResult result = pick_only(request);
    std::map<std::string, float> found;
    for (std::uint32_t at = 0; at < result.count; ++at) {
      found[name(result, at)] = result.endpoints[at].score;
    }
    return found;
  }

  abi::EndpointRecord& record(std::string_view endpoint) {
    return records_[store_.current().find_name(endpoint)->id];
  }
  std::uint32_t generation(std::string_view endpoint) {
    return store_.current().find_name(endpoint)->generation;
  }
  std::uint64_t inflight(std::string_view endpoint) {
    return abi::CountWord{record(endpoint).inflight_requests.load()}.count();
  }
  std::uint64_t inflight_tokens(std::string_view endpoint) {
    return abi::CountWord{record(endpoint).inflight_tokens.load()}.count();
  }
  void set_load(std::string_view endpoint, std::uint64_t requests, std::uint64_t tokens) {
    record(endpoint).inflight_requests.store(
        abi::CountWord::make(generation(endpoint), requests).bits);
    record(endpoint).inflight_tokens.store(abi::CountWord::make(generation(endpoint), tokens).bits);
  }
  void set_state(std::string_view endpoint, abi::EndpointState state) {
    record(endpoint).state.store(static_cast<std::uint32_t>(state));
  }
  std::uint64_t counted(abi::Counter counter) const {
    return row_[static_cast<std::uint32_t>(counter)].load();
  }

  Flights& flights() { return flights_; }
  endpoints::TopologyStore& store() { return store_; }
  endpoints::EndpointTable& endpoint_table() { return endpoints_; }
  endpoints::Reservations& reservations() { return reservations_; }
  prefix::PrefixTable& table() { return table_; }
  PickCore& core() { return *core_; }
  PickScratch& scratch() { return *scratch_; }
  state::Counters& counters() { return counters_; }
  const endpoints::Topology& topology() { return store_.current(); }

  static constexpr std::uint32_t kUid = 1000;
  static constexpr std::uint32_t kSlots = 8192;
  std::uint64_t tick = 1000;

 private:
  struct Free {
    void operator()(abi::Word* words) const { ::operator delete (words, std::align_val_t{64}); }
  };

  RigOptions options_;
  std::unique_ptr<abi::Word, Free> words_;
  std::unique_ptr<abi::EndpointRecord[]> records_;
  std::unique_ptr<abi::Reservation[]> slots_;
  abi::Word global_horizon_{0};
  abi::Word high_water_{1};
  abi::Word row_[abi::kCountersMax]{};
  prefix::PrefixTable table_;
  endpoints::Reservations reservations_;
  Flights flights_;
  endpoints::TopologyStore store_;
  endpoints::EndpointTable endpoints_;
  state::Counters counters_;
  std::unique_ptr<PickCore> core_;
  std::unique_ptr<PickScratch> scratch_;
  std::uint64_t sequence_ = 0;
};

// How often each name won.
using Tally = std::map<std::string, std::uint32_t>;

}  // namespace pickd::pick::test
