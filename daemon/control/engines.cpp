#include "daemon/control/engines.hpp"

#include <utility>

#include "daemon/base/log.hpp"
#include "daemon/base/random.hpp"
#include "daemon/scrape/targets.hpp"

namespace pickd::control {

namespace {

// How soon what workers noted becomes a state.
constexpr std::uint64_t kTurnNs = 100'000'000;

const char* name_of(abi::EndpointState state) {
  switch (state) {
    case abi::EndpointState::kReady: return "ready";
    case abi::EndpointState::kSuspect: return "suspect";
    case abi::EndpointState::kDown: return "down";
    case abi::EndpointState::kDraining: return "draining";
    case abi::EndpointState::kStarting: return "starting";
    case abi::EndpointState::kFree: break;
  }
  return "gone";
}

endpoints::WatchRules watch_rules(const config::Config& config, EngineRoom& room) {
  endpoints::WatchRules rules;
  rules.load.block_tokens = room.segment().header().block_tokens;
  rules.load.capacity_blocks_default = room.capacity_blocks_default();
  rules.load.stale_ticks = scrape::stale_ticks(config.scrape);
  rules.scraped = [scrape = config.scrape](const endpoints::TopologyEndpoint& endpoint) {
    return scrape::is_scraped(scrape, endpoint);
  };
  return rules;
}

}  // namespace

base::Result<std::unique_ptr<Engines>> Engines::create(const config::Config& config,
                                                       net::Reactor& reactor, EngineRoom& room,
                                                       endpoints::EndpointNotes& notes) {
  std::unique_ptr<Engines> engines(new Engines(reactor, room, notes));
  auto resolver = net::Resolver::create(reactor, {});
  if (resolver) {
    engines->resolver_ = std::move(*resolver);
  } else {
    spdlog::warn("names cannot be looked up, only addresses used: {}", resolver.error().text);
  }
  engines->said_.resize(abi::kEndpointIdsMax);
  engines->watch_ = std::make_unique<endpoints::EngineWatch>(
      room.endpoint_table(), room.topologies(), room.segment().endpoints(),
      watch_rules(config, room));
  if (config.scrape.enabled) {
    auto scraper = scrape::Scraper::create(
        config.scrape, {&reactor, engines->resolver_.get(), &room.topologies(), engines.get(),
                        room.segment().endpoints(), room.segment().counters(state::kControlRow),
                        [clock = room.clock()] { return clock.tick(); }, base::random_u64()});
    if (!scraper) return scraper.error();
    engines->scraper_ = std::move(*scraper);
  }
  room.topologies().on_publish([self = engines.get()] { self->follow_soon(); });
  engines->follow_soon();
  engines->turn_later();
  return engines;
}

Engines::~Engines() {
  room_->topologies().on_publish(nullptr);
  if (follow_timer_ != 0) reactor_->cancel(follow_timer_);
  if (turn_timer_ != 0) reactor_->cancel(turn_timer_);
}

// Not from inside: a change may come from the watch itself, in the middle of a scrape.
void Engines::follow_soon() {
  if (follow_timer_ == 0) follow_timer_ = reactor_->after(0, [this] { follow(); });
}

void Engines::follow() {
  follow_timer_ = 0;
  if (scraper_ != nullptr) scraper_->follow();
  turn();
}

void Engines::turn_later() {
  turn_timer_ = reactor_->after(kTurnNs, [this] {
    turn();
    turn_later();
  });
}

void Engines::turn() {
  watch_->turn(room_->clock().tick());
  for (const endpoints::EngineWatch::Change& change : watch_->take_changes()) {
    const endpoints::TopologyEndpoint* endpoint = room_->topologies().current().find(change.id);
    if (endpoint != nullptr) say(change, endpoint->name);
  }
}

void Engines::say(const endpoints::EngineWatch::Change& change, const std::string& name) {
  Said& said = said_[change.id];
  if (!said.lines.take(room_->clock().tick())) {
    ++said.left_out;
    return;
  }
  const std::uint32_t left_out = std::exchange(said.left_out, 0);
  const std::string more =
      left_out == 0 ? "" : "; " + std::to_string(left_out) + " changes before were not told";
  spdlog::info("endpoint \"{}\": {}, was {}{}", name, name_of(change.to), name_of(change.from),
               more);
}

void Engines::scrape_sent(std::uint16_t id) { watch_->scrape_sent(id); }

std::uint32_t Engines::generation_of(std::uint16_t id) const {
  const abi::EndpointRecord& record = room_->segment().endpoints()[id];
  return abi::LifeWord{record.life.load(std::memory_order_relaxed)}.generation();
}

endpoints::LoadNotes Engines::scrape_ok(std::uint16_t id, const endpoints::EngineFacts& facts,
                                        std::string_view engine, std::uint64_t tick) {
  const endpoints::LoadNotes notes = watch_->scrape_ok(id, facts, tick);
  notes_->scrape_ok(id, generation_of(id), std::string(engine));
  return notes;
}

void Engines::scrape_unreadable(std::uint16_t id, const std::string& words, std::uint64_t tick) {
  watch_->scrape_unreadable(id, tick);
  if (words.empty()) {
    notes_->scrape_ok(id, generation_of(id), "");
  } else {
    notes_->scrape_failed(id, generation_of(id), words);
  }
}

void Engines::scrape_failed(std::uint16_t id, const std::string& words, std::uint64_t tick) {
  watch_->scrape_failed(id, tick);
  notes_->scrape_failed(id, generation_of(id), words);
}

std::uint64_t Engines::probe_tick(std::uint16_t id, std::uint64_t last_tick,
                                  std::uint32_t interval_ticks) {
  return watch_->probe_tick(id, last_tick, interval_ticks);
}

}  // namespace pickd::control
