#include "daemon/control/engine_room.hpp"

#include <algorithm>

#include "abi/model_layout.hpp"
#include "daemon/admin/listen.hpp"
#include "daemon/base/log.hpp"
#include "daemon/base/random.hpp"
#include "daemon/discovery/ranks.hpp"
#include "daemon/endpoints/configured_spec.hpp"
#include "daemon/net/socket_file.hpp"
#include "daemon/prefix/horizons.hpp"
#include "daemon/scrape/scraper.hpp"
#include "daemon/scrape/targets.hpp"

namespace pickd::control {

namespace {

constexpr std::uint64_t kTickMs = abi::kTickNs / 1'000'000;

state::StateParameters state_parameters(const config::Config& config, bool virtual_clock) {
  state::StateParameters parameters;
  parameters.bytes = config.state.size_mib << 20;
  parameters.block_tokens = static_cast<std::uint32_t>(config.state.block_tokens);
  parameters.endpoints_max = static_cast<std::uint32_t>(config.state.endpoints_max);
  parameters.reservations_max = static_cast<std::uint32_t>(config.reservations.max);
  parameters.workers = static_cast<std::uint32_t>(config.workers.count);
  parameters.keys_max = static_cast<std::uint32_t>(config.listen.keys_max);
  parameters.blocks_min = static_cast<std::uint32_t>(config.state.prefix_blocks_min);
  parameters.blocks_max = static_cast<std::uint32_t>(config.state.prefix_blocks_max);
  parameters.ttl_ticks = std::max<std::uint64_t>(1, config.state.ttl_ms / kTickMs);
  parameters.clock_mode = virtual_clock ? abi::ClockMode::kVirtual : abi::ClockMode::kBoot;
  return parameters;
}

latency::LearnerOptions learner_options(const config::LatencyConfig& config) {
  latency::LearnerOptions options;
  options.memory_samples = static_cast<double>(config.memory_samples);
  options.samples_min = config.samples_min;
  options.output_tokens = static_cast<double>(config.output_tokens);
  options.percentile = static_cast<double>(config.percentile);
  return options;
}

}  // namespace

base::Result<void> check_config(const config::Config& config) {
  if (auto schedule = pick::Schedule::make(config.scheduling, config.latency.enabled); !schedule)
    return schedule.error();
  if (auto layout = state::lay_out(state_parameters(config, false)); !layout) return layout.error();
  if (auto scrape = scrape::check_scrape(config.scrape); !scrape) return scrape;
  if (auto admin = admin::check(config.admin); !admin) return admin;
  for (const config::EndpointConfig& endpoint : config.endpoints) {
    const auto spec = endpoints::spec_of(endpoint, config.state.block_tokens);
    if (auto checked = endpoints::check_spec(spec); !checked) return checked;
  }
  return net::check_group(config.listen.group);
}

base::Result<std::unique_ptr<EngineRoom>> EngineRoom::create(const config::Config& config,
                                                             bool virtual_clock,
                                                             ChannelGone channel_gone) {
  std::unique_ptr<EngineRoom> room(new EngineRoom());
  auto schedule = pick::Schedule::make(config.scheduling, config.latency.enabled);
  if (!schedule) return schedule.error();
  const std::uint64_t capacity_tokens =
      (*schedule)->sources().capacity_tokens.value_or(config.state.capacity_tokens);

  auto segment = state::StateSegment::open_or_create(
      config.state.path, state_parameters(config, virtual_clock), &room->origin_);
  if (!segment) return segment.error();
  room->segment_ = std::move(*segment);
  abi::StateHeader& header = room->segment_->header();
  room->clock_ = std::make_unique<state::TickClock>(header);

  const prefix::TableParts table{room->segment_->prefix_words(), header.prefix_lines,
                                 room->segment_->endpoints(),    header.endpoint_ids,
                                 &header.global_horizon,         header.hot_holders};
  room->ages_ = std::make_unique<prefix::Ages>(header.endpoint_ids);
  room->prefix_table_ = std::make_unique<prefix::PrefixTable>(table, room->ages_.get());
  room->reservations_ = std::make_unique<endpoints::Reservations>(
      room->segment_->reservations(), header.reservation_slots, room->segment_->endpoints(),
      header.reservation_slots - header.reservation_slots / 4,
      base::SipKey{base::random_u64(), base::random_u64()});
  if (config.latency.enabled) {
    room->flights_ = std::make_unique<pick::Flights>(header.endpoint_ids, header.reservation_slots);
    room->reservations_->observe(*room->flights_);
    room->learner_ = std::make_unique<maintenance::LearnerThread>(
        *room->flights_, *room->clock_, header.endpoint_ids, header.reservation_slots,
        learner_options(config.latency));
  }
  room->capacity_blocks_default_ = endpoints::blocks_of(capacity_tokens, config.state.block_tokens);
  room->endpoint_table_ = std::make_unique<endpoints::EndpointTable>(
      endpoints::EndpointTable::Parts{
          room->segment_->endpoints(), header.endpoint_ids, &header.endpoint_high_water,
          room->capacity_blocks_default_,
          endpoints::RoutingParts{
              {room->segment_->routing_buffer(0), room->segment_->routing_buffer(1)},
              header.routing_bytes,
              &header.routing_version},
          [clock = *room->clock_] { return clock.tick(); },
          [scrape = config.scrape](const endpoints::EndpointSpec& spec, std::string_view source) {
            return scrape::is_scraped(scrape, spec.address, spec.metrics_url, source);
          }},
      room->topologies_);
  room->core_ = std::make_unique<pick::PickCore>(
      pick::PickCore::Parts{room->segment_->endpoints(), room->prefix_table_.get(),
                            room->reservations_.get(), header.block_tokens, header.blocks_min,
                            header.blocks_max, base::random_u64(), room->flights_.get()},
      std::move(*schedule));
  room->maintenance_ = std::make_unique<maintenance::Maintenance>(maintenance::MaintenanceParts{
      table, room->ages_.get(), room->reservations_.get(), &header,
      room->segment_->counters(state::kMaintenanceRow), *room->clock_,
      std::max<std::uint64_t>(1, config.reservations.lease_ms / kTickMs)});
  if (room->segment_->warm()) {
    if (room->clock_->tick() + abi::kClockSlackTicks < header.global_horizon.load()) {
      // No marker would be seen until then. One too low harms nobody: holders have their own.
      spdlog::warn("store: the global horizon is damaged, it lies in the future; it is made anew");
      header.global_horizon.store(room->clock_->tick() -
                                  std::min(room->clock_->tick(), prefix::kTtlTicksMax));
    }
    std::vector<std::string> damaged;
    room->endpoint_table_->restore(room->clock_->tick(), &damaged);
    for (const std::string& name : damaged) {
      spdlog::warn(
          "store: what {} held is forgotten: its horizon is damaged, it lies in the future", name);
    }
    room->reservations_->recover(header.endpoint_ids);
  }
  if (auto added = room->add_endpoints(config); !added) return added.error();
  if (room->learner_ != nullptr) {
    auto* models = room->segment_->models();
    room->learner_->keep(std::make_unique<maintenance::ModelStore>(maintenance::ModelStore::Parts{
                             reinterpret_cast<abi::ModelRecord*>(models),
                             reinterpret_cast<abi::Word*>(models + abi::kModelRecordsBytes),
                             abi::kModelClasses, header.endpoint_ids}),
                         room->endpoint_table_->latency_classes(), room->topologies_.current(),
                         room->segment_->counters(state::kLearnerRow));
  }
  if (auto made = room->make_workers(config, channel_gone); !made) return made.error();
  return room;
}

base::Result<void> EngineRoom::add_endpoints(const config::Config& config) {
  std::vector<endpoints::EndpointSpec> specs;
  for (const config::EndpointConfig& endpoint : config.endpoints) {
    const auto spec = endpoints::spec_of(endpoint, config.state.block_tokens);
    const auto pool =
        std::find_if(config.pools.begin(), config.pools.end(), [&endpoint](const auto& candidate) {
          return candidate.ranks && candidate.name == endpoint.pool;
        });
    if (pool == config.pools.end()) {
      specs.push_back(spec);
      continue;
    }
    const auto ranks = discovery::expand_ranks({spec}, *pool->ranks);
    specs.insert(specs.end(), ranks.begin(), ranks.end());
  }
  // A name that a client gave before the restart is the file's now: an operator's word holds.
  return endpoint_table_->replace(specs, "file", clock_->tick(),
                                  endpoints::EndpointTable::NameTaken::kTakeOver);
}

workers::PickLimits EngineRoom::pick_limits() const {
  const abi::StateHeader& header = segment_->header();
  workers::PickLimits limits{header.keys_max, {}};
  std::transform(std::begin(header.key_algorithms), std::end(header.key_algorithms),
                 std::begin(limits.key_algorithms),
                 [](const abi::KeyAlgorithm& algorithm) { return algorithm.id; });
  return limits;
}

base::Result<void> EngineRoom::make_workers(const config::Config& config,
                                            const ChannelGone& channel_gone) {
  workers::WorkerParts parts{core_.get(),
                             &topologies_,
                             reservations_.get(),
                             segment_->endpoints(),
                             nullptr,
                             nullptr,
                             *clock_,
                             {},
                             0,
                             config.explain.picks_per_s,
                             config.explain.memory_kib << 10};
  parts.limits = pick_limits();
  parts.ends = &channel_ends_;
  parts.inflight_per_uid_max = static_cast<std::uint32_t>(config.reservations.per_uid_max);
  const config::WorkersConfig& workers = config.workers;
  for (std::uint32_t index = 0; index < workers.count; ++index) {
    parts.counters_row = segment_->counters(index);
    parts.word = &segment_->worker_word(index);
    workers::WorkerOptions options;
    options.index = index;
    options.spin_ns = workers.spin_us * 1000;
    options.busy_poll = workers.busy_poll;
    if (!workers.cpus.empty())
      options.cpu = static_cast<int>(workers.cpus[index % workers.cpus.size()]);
    auto worker = workers::Worker::create(options, parts, channel_gone);
    if (!worker) return worker.error();
    workers_.push_back(std::move(*worker));
  }
  return {};
}

EngineRoom::~EngineRoom() {
  workers_.clear();  // they use everything below
  learner_.reset();
  maintenance_.reset();
}

void EngineRoom::start() {
  slow_wakes_.start();
  channel_ends_.start();
  maintenance_->start();
  if (learner_ != nullptr) learner_->start();
  for (const auto& worker : workers_) worker->start();
}

}  // namespace pickd::control
