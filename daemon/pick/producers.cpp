#include "daemon/pick/producers.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "daemon/endpoints/endpoint_spec.hpp"
#include "daemon/pick/predictions.hpp"
#include "daemon/pick/slo_columns.hpp"
#include "daemon/pick/told.hpp"

namespace pickd::pick {

namespace {

struct Inputs {
  ColumnSet wanted;
  const ProducerSources& sources;
  const SourceSettings& settings;
  const PickRequest& request;
  std::uint64_t tick;
  const latency::Coefficients* coefficients;
  std::uint64_t session_ttl_ticks;
  prefix::MatchScratch& scratch;
  Candidates& candidates;

  const abi::EndpointRecord& record(std::size_t at) const {
    return sources.records[candidates.ids()[at]];
  }
};

void produce_match(const Inputs& in) {
  const auto keys = in.request.keys;
  const auto blocks = in.candidates.match_blocks();
  const std::span<const std::uint16_t> ids(in.candidates.ids(), in.candidates.count);
  const std::span<const std::uint64_t> lives(in.candidates.lives(), in.candidates.count);
  in.sources.table->match(keys, static_cast<std::uint32_t>(in.tick) & abi::kStampMask, ids, lives,
                          blocks, in.scratch);
  const auto column = in.candidates.column(Column::kMatchBlocks);
  const auto uncached = in.candidates.column(Column::kUncachedTokens);
  // Signed: the baseline's vectors turn no others into floats. Fewer blocks than 2^31 by far.
  const auto blocks_min = static_cast<std::int32_t>(in.sources.blocks_min);
  const auto block_tokens = static_cast<float>(in.sources.block_tokens);
  const auto prompt_tokens = static_cast<float>(in.request.prompt_tokens);
  for (std::size_t at = 0; at < blocks.size(); ++at) {
    const auto matched = static_cast<std::int32_t>(blocks[at]);
    const std::int32_t counted = matched < blocks_min ? 0 : matched;  // too short to count
    const float left = prompt_tokens - static_cast<float>(counted) * block_tokens;
    blocks[at] = static_cast<std::uint32_t>(counted);
    column[at] = static_cast<float>(counted);
    uncached[at] = left > 0 ? left : 0;
  }
}

// Partner: change_count() of all workers; a count of another generation is nobody's load.
float own_count(const abi::Word& word, std::uint32_t generation) {
  const abi::CountWord count{word.load(std::memory_order_relaxed)};
  return count.generation() == generation ? static_cast<float>(count.count()) : 0.0F;
}

// A value of the model at hand where the engine tells its models apart; nothing where it does not.
std::optional<std::uint32_t> told_of_model(const abi::EndpointRecord& record, std::uint32_t hash,
                                           std::uint32_t (abi::ModelLoadWord::*value)() const) {
  for (const abi::Word& load : record.model_load) {
    const abi::ModelLoadWord word{load.load(std::memory_order_relaxed)};
    if (word.bits == 0) break;
    if (word.hash() != hash) continue;
    const std::uint32_t told = (word.*value)();
    return told == abi::ModelLoadWord::kUnknown ? abi::kUnknown32 : told;
  }
  return std::nullopt;
}

constexpr ColumnSet kRecordColumns =
    columns_of(Column::kInflightRequests, Column::kInflightTokens, Column::kInflightPrompts,
               Column::kWaiting, Column::kRunning, Column::kKvUse);

// What the records say, all of it in one pass: they take more cache than all columns.
void produce_records(const Inputs& in) {
  const auto wants = [&in](Column column) { return (in.wanted & column_bit(column)) != 0; };
  const bool requests = wants(Column::kInflightRequests);
  const bool tokens = wants(Column::kInflightTokens);
  const bool prompts = wants(Column::kInflightPrompts);
  const bool waiting = wants(Column::kWaiting);
  const bool running = wants(Column::kRunning);
  const bool kv_use = wants(Column::kKvUse);
  const auto own_requests = in.candidates.column(Column::kInflightRequests);
  const auto own_tokens = in.candidates.column(Column::kInflightTokens);
  const auto own_prompts = in.candidates.column(Column::kInflightPrompts);
  const auto told_waiting = in.candidates.column(Column::kWaiting);
  const auto told_running = in.candidates.column(Column::kRunning);
  const auto told_kv_use = in.candidates.column(Column::kKvUse);
  const std::string_view model = in.request.model;
  const std::uint32_t hash = model.empty() || !(waiting || running)
                                 ? 0
                                 : endpoints::adapter_hash(model.data(), model.size());
  float most = 0;
  bool all_told = true;
  for (std::size_t at = 0; at < in.candidates.count; ++at) {
    const abi::EndpointRecord& record = in.record(at);
    const std::uint32_t generation = abi::LifeWord{in.candidates.lives()[at]}.generation();
    const bool stale = told_is_stale(record, in.tick);
    if (requests) {
      // Our own requests, and on top of them those of others that the engine told of. Where it
      // tells nothing the count is kept with its sign turned, 0 as -0, until the worst of the
      // others is known.
      const float own = own_count(record.inflight_requests, generation);
      const std::uint32_t told = record.foreign_requests.load(std::memory_order_relaxed);
      const bool known = told != abi::kUnknown32 && !stale;
      const float foreign = known ? static_cast<float>(told) : 0;
      all_told &= known;
      most = foreign > most ? foreign : most;
      own_requests[at] = known ? own + foreign : -own;
    }
    if (tokens) own_tokens[at] = own_count(record.inflight_tokens, generation);
    if (prompts) own_prompts[at] = own_count(record.inflight_prompts, generation);
    const auto known_or_nan = [stale](std::uint32_t told, float scale) {
      return told == abi::kUnknown32 || stale ? kUnknown : static_cast<float>(told) * scale;
    };
    if (waiting) {
      std::uint32_t told = record.waiting.load(std::memory_order_relaxed);
      if (hash != 0)
        told = told_of_model(record, hash, &abi::ModelLoadWord::waiting).value_or(told);
      told_waiting[at] = known_or_nan(told, 1);
    }
    if (running) {
      std::uint32_t told = record.running.load(std::memory_order_relaxed);
      if (hash != 0)
        told = told_of_model(record, hash, &abi::ModelLoadWord::running).value_or(told);
      told_running[at] = known_or_nan(told, 1);
    }
    if (kv_use)
      told_kv_use[at] = known_or_nan(record.kv_use_ppm.load(std::memory_order_relaxed), 1e-6F);
  }
  if (!requests || all_told) return;
  // As many as with the worst of those that tell: unknown is not idle.
  for (float& value : own_requests) {
    if (std::signbit(value)) value = most - value;
  }
}

bool listed(const abi::HalfWord (&adapters)[abi::kEndpointAdaptersMax], std::uint32_t hash) {
  return std::any_of(std::begin(adapters), std::end(adapters),
                     [hash](const abi::HalfWord& adapter) {
                       return adapter.load(std::memory_order_relaxed) == hash;
                     });
}

std::uint32_t count_listed(const abi::HalfWord (&adapters)[abi::kEndpointAdaptersMax]) {
  return static_cast<std::uint32_t>(std::count_if(
      std::begin(adapters), std::end(adapters),
      [](const abi::HalfWord& adapter) { return adapter.load(std::memory_order_relaxed) != 0; }));
}

// The scores of the Endpoint Picker's lora-affinity-scorer. An adapter that we sent there before
// counts as loaded although an idle engine does not list it any more.
float adapter_value(const abi::EndpointRecord& record, std::uint32_t hash) {
  const std::uint32_t room = record.adapters_max.load(std::memory_order_relaxed);
  const std::uint32_t active = count_listed(record.adapters_active);
  const std::uint32_t waiting = count_listed(record.adapters_waiting);
  if (listed(record.adapters_active, hash) || listed(record.adapters_recent, hash)) return 1.0F;
  if (room == 0 && active == 0 && waiting == 0) return kUnknown;  // this engine tells no adapters
  if (active + waiting < room) return 0.8F;
  return listed(record.adapters_waiting, hash) ? 0.6F : 0.0F;
}

void produce_adapter(const Inputs& in) {
  const auto values = in.candidates.column(Column::kAdapter);
  const std::string_view adapter = in.request.adapter;
  const std::uint32_t hash =
      adapter.empty() ? 0 : endpoints::adapter_hash(adapter.data(), adapter.size());
  for (std::size_t at = 0; at < values.size(); ++at) {
    values[at] = adapter.empty() ? kUnknown : adapter_value(in.record(at), hash);
  }
}

void produce_session(const Inputs& in) {
  const auto values = in.candidates.column(Column::kSession);
  std::fill(values.begin(), values.end(), 0.0F);
  if (in.request.session.empty()) return;
  const std::uint32_t endpoint = in.sources.sessions->find(
      in.request.session, in.tick, in.session_ttl_ticks, [&in](std::uint32_t id) {
        return abi::LifeWord{in.sources.records[id].life.load(std::memory_order_relaxed)}
            .generation();
      });
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (endpoint != 0 && in.candidates.ids()[at] == endpoint) values[at] = 1.0F;
  }
}

void produce_predicted(const Inputs& in) {
  if (in.sources.flights != nullptr && in.coefficients != nullptr) {
    return produce_predictions({*in.sources.flights, *in.coefficients, in.sources.records,
                                in.sources.block_tokens, in.tick},
                               in.request, in.candidates);
  }
  for (const Column column : {Column::kPredictedTtft, Column::kPredictedItl, Column::kCost}) {
    const auto values = in.candidates.column(column);
    std::fill(values.begin(), values.end(), kUnknown);
  }
}

void produce_slo_columns(const Inputs& in) {
  if (in.sources.flights != nullptr && in.coefficients != nullptr) {
    return produce_slo(*in.sources.flights, *in.coefficients, in.request, in.settings,
                       in.candidates);
  }
  for (const Column column :
       {Column::kTtftPercentile, Column::kItlPercentile, Column::kTtftHeadroom,
        Column::kItlHeadroom, Column::kMissesOfOthers}) {
    const auto values = in.candidates.column(column);
    std::fill(values.begin(), values.end(), kUnknown);
  }
}

struct Producer {
  ColumnSet columns;
  void (*run)(const Inputs&);
};

const Producer kProducers[] = {
    {column_bit(Column::kMatchBlocks) | column_bit(Column::kUncachedTokens), produce_match},
    {kRecordColumns, produce_records},
    {column_bit(Column::kAdapter), produce_adapter},
    {column_bit(Column::kSession), produce_session},
    {kPredictionColumns, produce_predicted},  // after the match: it reads what is not cached
    {kSloColumns, produce_slo_columns},       // after the predictions that they are made of
};

}  // namespace

// What is left of a wish depends on what is predicted, and that on what is cached.
ColumnSet with_made_of(ColumnSet columns) {
  if ((columns & kSloColumns) != 0) columns |= kSloColumns | kPredictionColumns;
  if ((columns & kPredictionColumns) != 0)
    columns |= kPredictionColumns | columns_of(Column::kMatchBlocks, Column::kUncachedTokens);
  return columns;
}

void produce(ColumnSet wanted, const ProducerSources& sources, const SourceSettings& settings,
             const PickRequest& request, std::uint64_t tick,
             const latency::Coefficients* coefficients, std::uint64_t session_ttl_ticks,
             prefix::MatchScratch& scratch, Candidates& candidates) {
  const Inputs in{wanted,       sources,           settings, request,   tick,
                  coefficients, session_ttl_ticks, scratch,  candidates};
  for (const Producer& producer : kProducers) {
    if ((producer.columns & wanted) != 0) producer.run(in);
  }
}

std::uint32_t match_tokens_of(const PickRequest& request, std::uint32_t match_blocks,
                              std::uint32_t block_tokens) {
  const std::uint64_t tokens = static_cast<std::uint64_t>(match_blocks) * block_tokens;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(tokens, request.prompt_tokens));
}

}  // namespace pickd::pick
