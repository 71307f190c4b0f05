#include "daemon/endpoints/endpoint_table.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "daemon/base/step.hpp"
#include "daemon/endpoints/count_word.hpp"

namespace pickd::endpoints {

namespace {

TopologyEndpoint* find_entry(std::vector<TopologyEndpoint>& entries, std::string_view name) {
  const auto at =
      std::find_if(entries.begin(), entries.end(),
                   [name](const TopologyEndpoint& entry) { return entry.name == name; });
  return at == entries.end() ? nullptr : &*at;
}

// Whether a spec changes nothing but load.
bool says_the_same(const TopologyEndpoint& entry, const EndpointSpec& spec) {
  return entry.address == spec.address && entry.pool == spec.pool && entry.role == spec.role &&
         entry.models == spec.models && entry.labels == spec.labels &&
         entry.adapters_active == spec.adapters_active && entry.metrics_url == spec.metrics_url &&
         entry.engine == spec.engine && entry.rank == spec.rank &&
         entry.more_ports == spec.more_ports && entry.capacity_blocks == spec.capacity_blocks;
}

// Whether the engine behind an entry is another one than before.
bool is_another(const TopologyEndpoint& entry, const EndpointSpec& spec) {
  return entry.address != spec.address ||
         (!entry.incarnation.empty() && !spec.incarnation.empty() &&
          entry.incarnation != spec.incarnation);
}

base::Error unknown(std::string_view name) {
  return {-ENOENT, "endpoint \"" + std::string(name) + "\": there is none of this name"};
}

void write_words(abi::Word* words, std::size_t count, const std::string& text) {
  for (std::size_t at = 0; at < count; ++at) {
    std::uint64_t value = 0;
    const std::size_t from = at * sizeof value;
    if (from < text.size()) {
      std::memcpy(&value, text.data() + from, std::min(sizeof value, text.size() - from));
    }
    words[at].store(value, std::memory_order_relaxed);
  }
}

// Whether the words of a record hold `text`.
bool holds_text(const abi::Word (&words)[16], const std::string& text) {
  char held[sizeof words];
  for (std::size_t at = 0; at < std::size(words); ++at) {
    const std::uint64_t value = words[at].load(std::memory_order_relaxed);
    std::memcpy(held + at * sizeof value, &value, sizeof value);
  }
  return text.size() < sizeof held && std::memcmp(held, text.c_str(), text.size() + 1) == 0;
}

// Nothing that was told of the engine before, or happened to it, holds for the next.
void forget_told(abi::EndpointRecord& record, std::uint32_t generation) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  for (abi::HalfWord* word :
       {&record.waiting, &record.running, &record.kv_use_ppm, &record.foreign_requests}) {
    word->store(abi::kUnknown32, kRelaxed);
  }
  record.told_ticks_max.store(0, kRelaxed);
  record.engine_start_ms.store(0, kRelaxed);
  record.failures.store(abi::FailureWord::make(generation, 0, 0).bits, kRelaxed);
  for (abi::Word& load : record.model_load) load.store(0, kRelaxed);
  for (auto* list : {&record.adapters_active, &record.adapters_waiting, &record.adapters_recent}) {
    for (abi::HalfWord& adapter : *list) adapter.store(0, kRelaxed);
  }
}

void write_adapters(abi::HalfWord* words, const std::vector<std::string>& names) {
  for (std::size_t at = 0; at < abi::kEndpointAdaptersMax; ++at) {
    const std::uint32_t hash =
        at < names.size() ? adapter_hash(names[at].data(), names[at].size()) : 0;
    words[at].store(hash, std::memory_order_relaxed);
  }
}

}  // namespace

EndpointTable::IdSet EndpointTable::ids_of(const std::vector<TopologyEndpoint>& entries) {
  std::bitset<abi::kEndpointIdsMax> used;
  for (const TopologyEndpoint& entry : entries) used.set(entry.id);
  return used;
}

base::Result<std::uint16_t> EndpointTable::free_id(const IdSet& used) const {
  const auto high_water =
      static_cast<std::uint32_t>(parts_.high_water->load(std::memory_order_relaxed));
  // A fresh id first, a used one only when there is none: its generation tells old words apart, but
  // an id that was never used has no old words at all.
  if (high_water < parts_.ids) return static_cast<std::uint16_t>(high_water);
  for (std::uint32_t id = 1; id < parts_.ids; ++id) {
    if (!used.test(id)) return static_cast<std::uint16_t>(id);
  }
  return base::Error{-E2BIG, "the endpoint table is full: " + std::to_string(parts_.ids - 1) +
                                 " endpoints; raise state.endpoints_max"};
}

void EndpointTable::begin_generation(std::uint16_t id, std::uint64_t tick,
                                     abi::EndpointState state) {
  abi::EndpointRecord& record = parts_.records[id];
  const abi::LifeWord old{record.life.load(std::memory_order_relaxed)};
  const std::uint32_t generation = old.generation() + 1;
  const std::uint32_t floor = abi::floor_after(old, tick);
  // What goes is not to be picked from here on; partner: the acquire of the state word in
  // gather_state(). What stays may be picked all the while: a reset fails no pick.
  if (state == abi::EndpointState::kFree) {
    record.state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
  }
  // The counts first: who reserves for the new generation must find its counts there.
  reset_count(record.inflight_requests, generation);
  reset_count(record.inflight_tokens, generation);
  reset_count(record.inflight_prompts, generation);
  forget_told(record, generation);
  // Each ends every word of its kind of the old generation, for every reader. The confirmed ones
  // first: who sees the new `life` must not find confirmed words of the old generation alive.
  record.confirmed_life.store(abi::LifeWord::make(generation, floor, floor).bits,
                              std::memory_order_release);
  PICKD_STEP("reset: half of the life words");
  record.life.store(abi::LifeWord::make(generation, floor, floor).bits, std::memory_order_release);
  PICKD_STEP("reset: before the clock is looked at again");
  raise_floors(record, tick);
  record.live_blocks.store(0, std::memory_order_relaxed);
  record.state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
}

// A pick that still saw the old generation read the clock before the store of the new one, so at a
// tick that is not after the one read here. If the clock moved since `tick`, the floor must lie
// above that.
void EndpointTable::raise_floors(abi::EndpointRecord& record, std::uint64_t tick) {
  if (!parts_.tick_now) return;
  // Between the store of the life words and the look at the clock. Partner: a pick reads the clock,
  // then the life word.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint64_t now = parts_.tick_now();
  PICKD_STEP("reset: the clock was looked at again");
  if (now <= tick) return;
  const auto stamp = static_cast<std::uint32_t>(now) & abi::kStampMask;
  const std::uint32_t floor = (stamp + 1) & abi::kStampMask;
  for (abi::Word* word : {&record.confirmed_life, &record.life}) {
    std::uint64_t seen = word->load(std::memory_order_relaxed);
    while (true) {  // against the maintenance thread, which raises horizons
      const abi::LifeWord life{seen};
      const auto raised =
          abi::LifeWord::make(life.generation(), abi::newer_stamp(floor, life.floor(), stamp),
                              abi::newer_stamp(floor, life.horizon(), stamp));
      if (word->compare_exchange_weak(seen, raised.bits, std::memory_order_release)) break;
    }
    PICKD_STEP("reset: a floor was raised");
  }
}

abi::EndpointState EndpointTable::joins_as(const EndpointSpec& spec,
                                           std::string_view source) const {
  return parts_.scraped && parts_.scraped(spec, source) ? abi::EndpointState::kStarting
                                                        : abi::EndpointState::kReady;
}

void EndpointTable::write_text(abi::EndpointRecord& record, const EndpointSpec& spec) {
  // Sequence lock: odd while the words change. Partner: read_endpoint_text() of readers.
  const std::uint32_t version = record.text_version.load(std::memory_order_relaxed);
  record.text_version.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  write_words(record.name, std::size(record.name), spec.name);
  write_words(record.address, std::size(record.address), spec.address);
  record.text_version.store(version + 2, std::memory_order_release);
}

void EndpointTable::write_told(abi::EndpointRecord& record, const EndpointSpec& spec,
                               std::uint64_t tick) {
  record.role.store(static_cast<std::uint32_t>(spec.role), std::memory_order_relaxed);
  // What a scrape told holds until the next one, whatever a source that tells no load repeats.
  const bool scraped = record.told_ticks_max.load(std::memory_order_relaxed) != 0;
  const bool tells_load = spec.waiting != abi::kUnknown32 || spec.running != abi::kUnknown32 ||
                          spec.kv_use_ppm != abi::kUnknown32;
  if (tells_load || !scraped) {
    record.waiting.store(spec.waiting, std::memory_order_relaxed);
    record.running.store(spec.running, std::memory_order_relaxed);
    record.kv_use_ppm.store(spec.kv_use_ppm, std::memory_order_relaxed);
    record.foreign_requests.store(abi::kUnknown32, std::memory_order_relaxed);
    record.told_ticks_max.store(0, std::memory_order_relaxed);
    record.scrape_tick.store(static_cast<std::uint32_t>(tick), std::memory_order_release);
  }
  const bool tells_adapters =
      spec.adapters_max != 0 || !spec.adapters_active.empty() || !spec.adapters_waiting.empty();
  if (tells_adapters || !scraped) {
    record.adapters_max.store(spec.adapters_max, std::memory_order_relaxed);
    write_adapters(record.adapters_active, spec.adapters_active);
    write_adapters(record.adapters_waiting, spec.adapters_waiting);
  }
}

// A capacity that a source told counts before the engine's own word, and that before the configured
// one, which stands only until somebody knows better.
void EndpointTable::write_capacity(abi::EndpointRecord& record, std::uint64_t told,
                                   std::uint64_t told_before) {
  const bool scraped = record.told_ticks_max.load(std::memory_order_relaxed) != 0;
  if (told == 0 && told_before == 0 && scraped) return;
  record.capacity_blocks.store(told != 0 ? told : parts_.capacity_blocks_default,
                               std::memory_order_relaxed);
}

void EndpointTable::add_one(std::vector<TopologyEndpoint>& entries, const EndpointSpec& spec,
                            std::uint16_t id, const std::string& source, std::uint64_t tick) {
  abi::EndpointRecord& record = parts_.records[id];
  write_text(record, spec);
  begin_generation(id, tick, joins_as(spec, source));
  if (parts_.high_water->load(std::memory_order_relaxed) <= id) {
    parts_.high_water->store(id + 1U, std::memory_order_release);
  }
  TopologyEndpoint entry;
  entry.id = id;
  entry.source = source;
  entry.name = spec.name;
  update_one(entry, spec, tick);
  entries.push_back(std::move(entry));
}

void EndpointTable::update_one(TopologyEndpoint& entry, const EndpointSpec& spec,
                               std::uint64_t tick) {
  abi::EndpointRecord& record = parts_.records[entry.id];
  if (!entry.address.empty() && is_another(entry, spec)) {
    // Nothing that is known of the old engine holds for this one.
    // Whether it may be picked is an operator's word and stays.
    const bool draining = record.state.load(std::memory_order_relaxed) ==
                          static_cast<std::uint32_t>(abi::EndpointState::kDraining);
    write_text(record, spec);
    begin_generation(entry.id, tick,
                     draining ? abi::EndpointState::kDraining : joins_as(spec, entry.source));
  }
  write_told(record, spec, tick);
  write_capacity(record, spec.capacity_blocks, entry.capacity_blocks);
  entry.capacity_blocks = spec.capacity_blocks;
  write_draining(entry, spec);
  entry.generation = abi::LifeWord{record.life.load(std::memory_order_relaxed)}.generation();
  entry.text_version = record.text_version.load(std::memory_order_relaxed);
  entry.address = spec.address;
  entry.pool = spec.pool;
  entry.role = spec.role;
  entry.models = spec.models;
  entry.labels = spec.labels;
  entry.adapters_active = spec.adapters_active;
  entry.metrics_url = spec.metrics_url;
  entry.engine = spec.engine;
  entry.rank = spec.rank;
  entry.more_ports = spec.more_ports;
  if (!spec.incarnation.empty()) entry.incarnation = spec.incarnation;
}

// Only a change of the source's word: an operator who drained what the source takes for ready is
// not overruled by the next set.
void EndpointTable::write_draining(TopologyEndpoint& entry, const EndpointSpec& spec) {
  if (!spec.draining || entry.draining == spec.draining) return;
  entry.draining = spec.draining;
  abi::HalfWord& state = parts_.records[entry.id].state;
  const auto now = static_cast<abi::EndpointState>(state.load(std::memory_order_relaxed));
  if (!*spec.draining && now != abi::EndpointState::kDraining) return;
  const auto next = *spec.draining ? abi::EndpointState::kDraining : abi::EndpointState::kReady;
  // Partner: the acquire of the state word in gather_state().
  state.store(static_cast<std::uint32_t>(next), std::memory_order_release);
}

void EndpointTable::retire(std::uint16_t id, std::uint64_t tick) {
  begin_generation(id, tick, abi::EndpointState::kFree);
}

base::Result<void> EndpointTable::check_room(std::vector<TopologyEndpoint> entries,
                                             const std::vector<EndpointSpec>& specs,
                                             const std::string& source) const {
  if (parts_.routing.version == nullptr) return {};
  std::unordered_set<std::string_view> names;
  for (const EndpointSpec& spec : specs) names.insert(spec.name);
  std::erase_if(entries, [&names](const auto& entry) { return names.contains(entry.name); });
  for (const EndpointSpec& spec : specs) {
    TopologyEndpoint entry;
    entry.name = spec.name;
    entry.address = spec.address;
    entry.pool = spec.pool;
    entry.source = source;
    entry.models = spec.models;
    entry.labels = spec.labels;
    entry.adapters_active = spec.adapters_active;
    entry.metrics_url = spec.metrics_url;
    entry.engine = spec.engine;
    entry.rank = spec.rank;
    entry.more_ports = spec.more_ports;
    entries.push_back(std::move(entry));
  }
  const std::uint64_t bytes = routing_bytes(entries);
  if (bytes <= parts_.routing.bytes) return {};
  return base::Error{-E2BIG, "names, models and labels of all endpoints together take " +
                                 std::to_string(bytes) + " bytes, " +
                                 std::to_string(parts_.routing.bytes) +
                                 " are there; raise state.endpoints_max, which makes room"};
}

std::uint16_t EndpointTable::latency_class_of(const TopologyEndpoint& entry) {
  std::string name = entry.pool;
  if (const std::string* hardware = entry.label("hardware"); hardware != nullptr) {
    name += '/' + *hardware;
  }
  return latency_classes_.number_of(name);
}

void EndpointTable::publish(std::vector<TopologyEndpoint> entries) {
  std::sort(entries.begin(), entries.end(),
            [](const TopologyEndpoint& a, const TopologyEndpoint& b) { return a.id < b.id; });
  for (TopologyEndpoint& entry : entries) entry.latency_class = latency_class_of(entry);
  store_->publish(std::make_unique<const Topology>(std::move(entries)));
  if (parts_.routing.version != nullptr) write_routing(parts_.routing, store_->current());
}

namespace {

// Whether `stamp` is ahead of the clock by more than a floor may be. No horizon is as old as what
// counts as future: the longest TTL and the longest time away together are shorter.
bool in_the_future(std::uint32_t stamp, std::uint64_t tick) {
  const std::uint32_t ahead = (stamp - static_cast<std::uint32_t>(tick)) & abi::kStampMask;
  return ahead > abi::kClockSlackTicks && ahead <= abi::kAheadTicks;
}

bool lies_in_the_future(const abi::EndpointRecord& record, std::uint64_t tick) {
  const abi::LifeWord life{record.life.load(std::memory_order_relaxed)};
  const abi::LifeWord confirmed{record.confirmed_life.load(std::memory_order_relaxed)};
  return in_the_future(life.horizon(), tick) || in_the_future(life.floor(), tick) ||
         in_the_future(confirmed.horizon(), tick) || in_the_future(confirmed.floor(), tick);
}

}  // namespace

std::size_t EndpointTable::restore(std::uint64_t tick, std::vector<std::string>* damaged) {
  std::vector<TopologyEndpoint> entries;
  IdSet kept;
  std::unordered_set<std::string> names;
  for (TopologyEndpoint& entry :
       read_routing(parts_.routing).value_or(std::vector<TopologyEndpoint>{})) {
    if (entry.id == 0 || entry.id >= parts_.ids || kept.test(entry.id)) continue;
    abi::EndpointRecord& record = parts_.records[entry.id];
    const auto state = record.state.load(std::memory_order_relaxed);
    const bool there = state > static_cast<std::uint32_t>(abi::EndpointState::kFree) &&
                       state <= static_cast<std::uint32_t>(abi::EndpointState::kStarting);
    // The snapshot is written after the record: a generation may be newer there, the name may not
    // differ.
    if (!there || !holds_text(record.name, entry.name) ||
        !holds_text(record.address, entry.address) || !names.insert(entry.name).second) {
      continue;
    }
    if (lies_in_the_future(record, tick)) {
      if (damaged != nullptr) damaged->push_back(entry.name);
      // A floor of the future must not be what the next one is made from.
      const abi::LifeWord life{record.life.load(std::memory_order_relaxed)};
      const auto now = static_cast<std::uint32_t>(tick) & abi::kStampMask;
      record.life.store(abi::LifeWord::make(life.generation(), now, now).bits);
      begin_generation(entry.id, tick, static_cast<abi::EndpointState>(state));
    }
    entry.generation = abi::LifeWord{record.life.load(std::memory_order_relaxed)}.generation();
    entry.text_version = record.text_version.load(std::memory_order_relaxed);
    reset_count(record.inflight_requests, entry.generation);
    reset_count(record.inflight_tokens, entry.generation);
    reset_count(record.inflight_prompts, entry.generation);
    kept.set(entry.id);
    entries.push_back(std::move(entry));
  }
  const auto high_water =
      std::min<std::uint64_t>(parts_.high_water->load(std::memory_order_relaxed), parts_.ids);
  for (std::uint32_t id = 1; id < high_water; ++id) {
    if (!kept.test(id)) retire(static_cast<std::uint16_t>(id), tick);
  }
  const std::size_t count = entries.size();
  publish(std::move(entries));
  return count;
}

base::Result<void> EndpointTable::add(const EndpointSpec& spec, const std::string& source,
                                      std::uint64_t tick) {
  if (auto checked = check_spec(spec); !checked) return checked;
  std::vector<TopologyEndpoint> entries = store_->current().endpoints();
  if (find_entry(entries, spec.name) != nullptr) {
    return base::Error{-EEXIST,
                       "endpoint \"" + spec.name + "\": there is one of this name already"};
  }
  auto id = free_id(ids_of(entries));
  if (!id) return id.error();
  if (auto room = check_room(entries, {spec}, source); !room) return room;
  add_one(entries, spec, *id, source, tick);
  publish(std::move(entries));
  return {};
}

base::Result<void> EndpointTable::update(const EndpointSpec& spec, std::uint64_t tick) {
  if (auto checked = check_spec(spec); !checked) return checked;
  const TopologyEndpoint* now = store_->current().find_name(spec.name);
  if (now == nullptr) return unknown(spec.name);
  if (says_the_same(*now, spec)) {
    // Only its load: words of the record. What many sources tell every second must not cost a
    // topology.
    write_told(parts_.records[now->id], spec, tick);
    return {};
  }
  std::vector<TopologyEndpoint> entries = store_->current().endpoints();
  TopologyEndpoint* entry = find_entry(entries, spec.name);
  if (auto room = check_room(entries, {spec}, entry->source); !room) return room;
  update_one(*entry, spec, tick);
  publish(std::move(entries));
  return {};
}

base::Result<void> EndpointTable::remove(std::string_view name, std::uint64_t tick) {
  std::vector<TopologyEndpoint> entries = store_->current().endpoints();
  TopologyEndpoint* entry = find_entry(entries, name);
  if (entry == nullptr) return unknown(name);
  retire(entry->id, tick);
  entries.erase(entries.begin() + (entry - entries.data()));
  publish(std::move(entries));
  return {};
}

base::Result<void> EndpointTable::drain(std::string_view name, bool on) {
  const TopologyEndpoint* entry = store_->current().find_name(name);
  if (entry == nullptr) return unknown(name);
  parts_.records[entry->id].state.store(
      static_cast<std::uint32_t>(on ? abi::EndpointState::kDraining : abi::EndpointState::kReady),
      std::memory_order_release);
  return {};
}

base::Result<void> EndpointTable::reset(std::string_view name, std::uint64_t tick) {
  std::vector<TopologyEndpoint> entries = store_->current().endpoints();
  TopologyEndpoint* entry = find_entry(entries, name);
  if (entry == nullptr) return unknown(name);
  abi::EndpointRecord& record = parts_.records[entry->id];
  const auto state = static_cast<abi::EndpointState>(record.state.load(std::memory_order_relaxed));
  begin_generation(entry->id, tick, state);
  entry->generation = abi::LifeWord{record.life.load(std::memory_order_relaxed)}.generation();
  publish(std::move(entries));
  return {};
}

std::size_t EndpointTable::count_ready() const {
  const auto& all = store_->current().endpoints();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [this](const auto& endpoint) {
        return parts_.records[endpoint.id].state.load(std::memory_order_relaxed) ==
               static_cast<std::uint32_t>(abi::EndpointState::kReady);
      }));
}

}  // namespace pickd::endpoints
