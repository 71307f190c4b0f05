// Questions about the daemon itself, and the virtual clock: AskStatus, SetClock.
#include <cerrno>

#include "abi/counters.hpp"
#include "daemon/base/clock.hpp"
#include "daemon/control/handlers.hpp"
#include "daemon/control/version.hpp"

namespace pickd::control {

namespace {

constexpr std::uint64_t kTickMs = abi::kTickNs / 1'000'000;
// Far beyond any replay, and far below where ages, which are signed, would overflow.
constexpr std::uint64_t kVirtualTickMax = std::uint64_t{1} << 48;

flatbuffers::Offset<fb::LatencyModel> model_of(flatbuffers::FlatBufferBuilder& builder,
                                               const latency::Accuracy& accuracy) {
  return fb::CreateLatencyModel(builder, accuracy.samples(), accuracy.mape(), accuracy.bias(),
                                accuracy.coverage(), accuracy.ready(), accuracy.drifting());
}

// Empty where nothing is learned.
std::vector<flatbuffers::Offset<fb::LatencyClass>> latency_of(
    EngineRoom& room, flatbuffers::FlatBufferBuilder& builder) {
  std::vector<flatbuffers::Offset<fb::LatencyClass>> classes;
  if (room.learner() == nullptr) return classes;
  std::uint16_t number = 0;
  for (const maintenance::LatencySummary& summary : room.learner()->summary()) {
    const auto name = builder.CreateString(room.endpoint_table().latency_classes().name(number++));
    const auto ttft = model_of(builder, summary.accuracy.ttft);
    const auto itl = model_of(builder, summary.accuracy.itl);
    classes.push_back(
        fb::CreateLatencyClass(builder, name, summary.coefficients.output_tokens, ttft, itl));
  }
  return classes;
}

}  // namespace

void Handlers::ask_status(ControlServer& server, Session& session, const fb::Message& message) {
  EngineRoom& room = *server.room_;
  const abi::StateHeader& header = room.segment().header();
  const maintenance::StoreSummary store = room.maintenance().summary();
  MessageBuilder reply;
  flatbuffers::FlatBufferBuilder& builder = reply.builder();
  std::vector<flatbuffers::Offset<fb::Counter>> counters;
  for (std::uint32_t at = 0; at < static_cast<std::uint32_t>(abi::Counter::kCount); ++at) {
    const auto name = builder.CreateString(abi::kCounterInfos[at].metric);
    counters.push_back(fb::CreateCounter(
        builder, name, state::sum_counter(room.segment(), static_cast<abi::Counter>(at))));
  }
  // No total, but a number that who reads the list understands as well: by its name.
  std::uint64_t standing_still = 0;
  for (const admin::Check& check : server.pulse_->threads()) standing_still += check.good ? 0 : 1;
  const auto name = builder.CreateString("pickd_threads_standing_still");
  counters.push_back(fb::CreateCounter(builder, name, standing_still));
  const auto counter_list = builder.CreateVector(counters);
  const auto latency = builder.CreateVector(latency_of(room, builder));
  const auto version = builder.CreateString(kVersion);
  const auto socket = builder.CreateString(server.config_.listen.socket);
  const auto reactor = builder.CreateString(server.reactor_->name());
  const auto reactor_why = builder.CreateString(server.why_not_io_uring_);
  const auto profile = builder.CreateString(room.schedule().name());
  const auto started = builder.CreateString(room.origin());
  const auto state_path = builder.CreateString(server.config_.state.path);
  fb::StatusAnswerBuilder status(builder);
  status.add_version(version);
  status.add_pid(header.daemon_pid);
  status.add_socket(socket);
  status.add_uptime_ms((base::monotonic_ns() - server.started_ns_) / 1'000'000);
  status.add_daemon_epoch(header.segment.daemon_epoch);
  status.add_instance(header.instance_id);
  status.add_reactor(reactor);
  status.add_profile(profile);
  status.add_state_bytes(room.segment().bytes());
  status.add_block_tokens(header.block_tokens);
  status.add_ttl_ms(header.ttl_ticks * (abi::kTickNs / 1'000'000));
  status.add_tick(room.clock().tick());
  status.add_clients(static_cast<std::uint32_t>(server.sessions_.size()));
  status.add_channels(static_cast<std::uint32_t>(server.channels_.size()));
  status.add_workers(room.worker_count());
  status.add_endpoints(static_cast<std::uint32_t>(room.endpoint_table().count()));
  status.add_endpoints_ready(static_cast<std::uint32_t>(room.endpoint_table().count_ready()));
  status.add_reservations(room.reservations().count_held());
  status.add_prefix_words(store.words);
  status.add_prefix_live(store.live);
  status.add_started(started);
  status.add_counters(counter_list);
  status.add_reactor_why(reactor_why);
  status.add_latency(latency);
  status.add_state_path(state_path);
  status.add_virtual_clock(header.clock_mode ==
                           static_cast<std::uint32_t>(abi::ClockMode::kVirtual));
  status.add_scrape_interval_ms(server.config_.scrape.enabled ? server.config_.scrape.interval_ms
                                                              : 0);
  status.add_reservations_max(server.config_.reservations.max);
  server.send(session, reply.finish(message.number(), status.Finish()));
}

void Handlers::ask_store(ControlServer& server, Session& session, const fb::Message& message) {
  EngineRoom& room = *server.room_;
  const abi::StateHeader& header = room.segment().header();
  const maintenance::StoreReport store = room.maintenance().report();
  const std::uint32_t from = message.body_as_AskStore()->from_id();
  MessageBuilder reply;
  flatbuffers::FlatBufferBuilder& builder = reply.builder();
  std::vector<flatbuffers::Offset<fb::StoreEndpoint>> page;
  std::uint32_t next = 0;
  for (const endpoints::TopologyEndpoint& endpoint : room.topologies().current().endpoints()) {
    if (endpoint.id < from || endpoint.id >= store.endpoints.size()) continue;
    if (page.size() == abi::kEndpointsPerPage) {
      next = endpoint.id;
      break;
    }
    const maintenance::StoreReport::Endpoint& held = store.endpoints[endpoint.id];
    const auto name = builder.CreateString(endpoint.name);
    const auto rule = builder.CreateString(held.rule);
    page.push_back(fb::CreateStoreEndpoint(
        builder, endpoint.id, name, held.live,
        room.segment().endpoints()[endpoint.id].capacity_blocks.load(std::memory_order_relaxed),
        held.horizon_age_ticks * kTickMs, rule));
  }
  const auto list = builder.CreateVector(page);
  const auto started = builder.CreateString(room.origin());
  fb::StoreAnswerBuilder answer(builder);
  answer.add_started(started);
  answer.add_state_bytes(room.segment().bytes());
  answer.add_block_tokens(header.block_tokens);
  answer.add_ttl_ms(header.ttl_ticks * kTickMs);
  answer.add_words(store.words);
  answer.add_live_words(store.live);
  answer.add_hot_blocks(store.last_pass.markers);
  answer.add_confirmed_words(store.last_pass.confirmed);
  answer.add_cleared_words(state::sum_counter(room.segment(), abi::Counter::swept_words));
  answer.add_oldest_age_ms(store.last_pass.oldest_age_ticks * kTickMs);
  answer.add_sweep_passes(store.last_pass.passes);
  answer.add_replaced_words(state::sum_counter(room.segment(), abi::Counter::replaced_words));
  answer.add_global_cuts(store.global_cuts);
  answer.add_global_horizon_age_ms(store.global_horizon_age_ticks * kTickMs);
  answer.add_endpoints(list);
  answer.add_next_id(next);
  answer.add_dead_words(store.last_pass.dead);
  server.send(session, reply.finish(message.number(), answer.Finish()));
}

void Handlers::set_clock(ControlServer& server, Session& session, const fb::Message& message) {
  const fb::SetClock& set = *message.body_as_SetClock();
  if (set.tick() > kVirtualTickMax) {
    return server.send_outcome(session, message.number(), -EINVAL,
                               "a tick is at most " + std::to_string(kVirtualTickMax));
  }
  if (!server.room_->clock().set_virtual_tick(set.tick())) {
    return server.send_outcome(session, message.number(), -EINVAL,
                               server.room_->clock().is_virtual()
                                   ? "the clock cannot go back"
                                   : "the clock is real; start the daemon with --virtual-clock");
  }
  server.room_->maintenance().run_now(set.sweep());
  server.send_outcome(session, message.number(), 0, "");
}

}  // namespace pickd::control
