// Messages about endpoints: ChangeEndpoint, ReplaceEndpoints, AskEndpoints.
#include <cerrno>

#include "daemon/base/log.hpp"
#include "daemon/control/handlers.hpp"

namespace pickd::control {

namespace {

std::string text_of(const flatbuffers::String* text) {
  return text == nullptr ? std::string() : text->str();
}

std::vector<std::string> texts_of(
    const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* list) {
  std::vector<std::string> texts;
  if (list == nullptr) return texts;
  for (const flatbuffers::String* text : *list) texts.push_back(text->str());
  return texts;
}

endpoints::EndpointSpec spec_of(const fb::Endpoint& endpoint) {
  endpoints::EndpointSpec spec;
  spec.name = text_of(endpoint.name());
  spec.address = text_of(endpoint.address());
  if (endpoint.pool() != nullptr && endpoint.pool()->size() != 0)
    spec.pool = endpoint.pool()->str();
  spec.role = static_cast<abi::Role>(endpoint.role());
  spec.models = texts_of(endpoint.models());
  if (endpoint.labels() != nullptr) {
    for (const fb::Label* label : *endpoint.labels()) {
      spec.labels.emplace_back(text_of(label->key()), text_of(label->value()));
    }
  }
  spec.capacity_blocks = endpoint.capacity_blocks();
  if (const fb::Load* load = endpoint.load(); load != nullptr) {
    spec.waiting = load->waiting();
    spec.running = load->running();
    spec.kv_use_ppm = load->kv_use_ppm();
  }
  if (const fb::Adapters* adapters = endpoint.adapters(); adapters != nullptr) {
    spec.adapters_max = adapters->max();
    spec.adapters_active = texts_of(adapters->active());
    spec.adapters_waiting = texts_of(adapters->waiting());
  }
  spec.metrics_url = text_of(endpoint.metrics_url());
  spec.engine = text_of(endpoint.engine());
  spec.rank = endpoint.rank();
  if (endpoint.more_ports() != nullptr)
    spec.more_ports.assign(endpoint.more_ports()->begin(), endpoint.more_ports()->end());
  return spec;
}

const char* name_of(fb::EndpointOp op) { return fb::EnumNameEndpointOp(op); }

flatbuffers::Offset<fb::EndpointStatus> status_of(flatbuffers::FlatBufferBuilder& builder,
                                                  const endpoints::TopologyEndpoint& endpoint,
                                                  const abi::EndpointRecord& record,
                                                  const endpoints::EndpointNote& note,
                                                  const endpoints::EngineFacts* facts,
                                                  std::uint64_t tick) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const auto models = builder.CreateVectorOfStrings(endpoint.models);
  const bool tells_adapters = facts != nullptr && facts->tells_adapters;
  const auto adapters = builder.CreateVectorOfStrings(tells_adapters ? facts->adapters_active
                                                                     : endpoint.adapters_active);
  const auto name = builder.CreateString(endpoint.name);
  const auto address = builder.CreateString(endpoint.address);
  const auto pool = builder.CreateString(endpoint.pool);
  const auto source = builder.CreateString(endpoint.source);
  const auto state = static_cast<abi::EndpointState>(record.state.load(kRelaxed));
  const auto why = builder.CreateString(endpoints::why_not_ready(state, note));
  const auto engine = builder.CreateString(endpoint.engine.empty() ? note.engine : endpoint.engine);
  const std::uint32_t told_tick = record.scrape_tick.load(kRelaxed);
  // The tick is also stored when somebody tells of an endpoint without a load.
  const bool told = !note.engine.empty() || record.waiting.load(kRelaxed) != abi::kUnknown32 ||
                    record.running.load(kRelaxed) != abi::kUnknown32 ||
                    record.kv_use_ppm.load(kRelaxed) != abi::kUnknown32;
  const auto age_ticks = static_cast<std::uint32_t>(tick) - told_tick;
  fb::EndpointStatusBuilder status(builder);
  status.add_id(endpoint.id);
  status.add_name(name);
  status.add_address(address);
  status.add_pool(pool);
  status.add_source(source);
  status.add_role(static_cast<std::uint8_t>(endpoint.role));
  status.add_state(static_cast<std::uint8_t>(state));
  status.add_generation(endpoint.generation);
  status.add_inflight_requests(abi::CountWord{record.inflight_requests.load(kRelaxed)}.count());
  status.add_inflight_tokens(abi::CountWord{record.inflight_tokens.load(kRelaxed)}.count());
  status.add_waiting(record.waiting.load(kRelaxed));
  status.add_running(record.running.load(kRelaxed));
  status.add_kv_use_ppm(record.kv_use_ppm.load(kRelaxed));
  status.add_live_blocks(record.live_blocks.load(kRelaxed));
  status.add_capacity_blocks(record.capacity_blocks.load(kRelaxed));
  status.add_models(models);
  status.add_adapters_active(adapters);
  status.add_load_told(told);
  if (told) status.add_load_age_ms(age_ticks * (abi::kTickNs / 1'000'000));
  status.add_why_not_ready(why);
  status.add_scrape_failures(note.scrape_failures);
  status.add_engine(engine);
  status.add_rank(endpoint.rank);
  if (facts != nullptr) status.add_block_tokens(facts->block_tokens);
  return status.Finish();
}

}  // namespace

void Handlers::change_endpoint(ControlServer& server, Session& session,
                               const fb::Message& message) {
  const fb::ChangeEndpoint& change = *message.body_as_ChangeEndpoint();
  if (change.endpoint() == nullptr) {
    return server.send_outcome(session, message.number(), -EINVAL, "the change names no endpoint");
  }
  endpoints::EndpointTable& table = server.room_->endpoint_table();
  const endpoints::EndpointSpec spec = spec_of(*change.endpoint());
  const std::uint64_t tick = server.room_->clock().tick();
  base::Result<void> result = base::Error{-EINVAL, "this daemon does not know that change"};
  switch (change.op()) {
    case fb::EndpointOp::Add: result = table.add(spec, session.source(), tick); break;
    case fb::EndpointOp::Update: result = table.update(spec, tick); break;
    case fb::EndpointOp::Remove: result = table.remove(spec.name, tick); break;
    case fb::EndpointOp::Drain: result = table.drain(spec.name, true); break;
    case fb::EndpointOp::Undrain: result = table.drain(spec.name, false); break;
    case fb::EndpointOp::Reset: result = table.reset(spec.name, tick); break;
  }
  if (result.ok())
    spdlog::debug("endpoint \"{}\": {} by client {}", spec.name, name_of(change.op()), session.id);
  server.send_outcome(session, message.number(), result);
}

void Handlers::replace_endpoints(ControlServer& server, Session& session,
                                 const fb::Message& message) {
  std::vector<endpoints::EndpointSpec> specs;
  if (const auto* list = message.body_as_ReplaceEndpoints()->endpoints(); list != nullptr) {
    for (const fb::Endpoint* endpoint : *list) specs.push_back(spec_of(*endpoint));
  }
  server.send_outcome(session, message.number(),
                      server.room_->endpoint_table().replace(specs, session.source(),
                                                             server.room_->clock().tick()));
}

void Handlers::ask_endpoints(ControlServer& server, Session& session, const fb::Message& message) {
  const std::uint32_t from = message.body_as_AskEndpoints()->from_id();
  const std::uint64_t tick = server.room_->clock().tick();
  const abi::EndpointRecord* records = server.room_->segment().endpoints();
  MessageBuilder reply;
  std::vector<flatbuffers::Offset<fb::EndpointStatus>> page;
  std::uint32_t next = 0;
  for (const endpoints::TopologyEndpoint& endpoint :
       server.room_->topologies().current().endpoints()) {
    if (endpoint.id < from) continue;
    // By count and by size: names may be long, and a packet is bounded.
    if (page.size() == abi::kEndpointsPerPage ||
        reply.builder().GetSize() > abi::kControlMessageBytesMax / 2) {
      next = endpoint.id;
      break;
    }
    page.push_back(status_of(reply.builder(), endpoint, records[endpoint.id],
                             server.notes_.note(endpoint.id, endpoint.generation),
                             server.engines_->watch().facts(endpoint.id), tick));
  }
  const auto list = reply.builder().CreateVector(page);
  server.send(session, reply.finish(message.number(),
                                    fb::CreateEndpointsAnswer(reply.builder(), list, next)));
}

}  // namespace pickd::control
