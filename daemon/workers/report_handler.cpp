#include "daemon/workers/report_handler.hpp"

#include <cerrno>

#include "daemon/endpoints/failure_word.hpp"

namespace pickd::workers {

namespace {

using endpoints::ReportOutcome;

endpoints::Usage usage_of(const DecodedReport& report) {
  return {report.prompt_tokens, report.cached_tokens, report.output_tokens};
}

void count_usage(const endpoints::Usage& usage, state::Counters& counters) {
  const auto add = [&counters](abi::Counter counter, std::uint32_t tokens) {
    if (tokens != abi::kUnknown32) counters.add(counter, tokens);
  };
  add(abi::Counter::reported_prompt_tokens, usage.prompt_tokens);
  add(abi::Counter::reported_cached_tokens, usage.cached_tokens);
  add(abi::Counter::output_tokens, usage.output_tokens);
}

}  // namespace

ReportOutcome ReportHandler::move(const DecodedReport& report, std::uint32_t uid,
                                  std::uint64_t now_ns, const endpoints::Topology& topology,
                                  std::uint64_t* from, bool* found) const {
  const endpoints::TopologyEndpoint* endpoint = nullptr;
  topology.for_each_named(report.fallback, [&](std::uint16_t id) { endpoint = topology.find(id); });
  *found = endpoint != nullptr;
  if (endpoint == nullptr) return ReportOutcome::kUnknownTicket;
  const abi::LifeWord life{records_[endpoint->id].life.load(std::memory_order_acquire)};
  const ReportOutcome outcome = reservations_->move(
      report.ticket, uid, abi::endpoint_handle(endpoint->id, life.generation()), from, now_ns);
  if (abi::handle_endpoint(*from) == endpoint->id) *from = 0;  // it stayed: nobody failed
  return outcome;
}

// What a report says of the endpoint that held the ticket. A caller that went away says nothing.
void ReportHandler::note(abi::ReportKind kind, std::uint64_t handle) const {
  if (handle == 0) return;
  abi::EndpointRecord& record = records_[abi::handle_endpoint(handle)];
  const std::uint32_t generation = abi::handle_generation(handle);
  if (kind == abi::ReportKind::kDone) endpoints::note_success(record, generation);
  if (kind == abi::ReportKind::kFailed || kind == abi::ReportKind::kFallback)
    endpoints::note_failure(record, generation);
}

int ReportHandler::apply(DecodedReport& report, std::uint32_t uid, std::uint64_t now_ns,
                         const endpoints::Topology& topology, state::Counters& counters) const {
  const std::uint64_t tick = now_ns / abi::kTickNs;
  ReportOutcome outcome = ReportOutcome::kUnknownTicket;
  bool known_endpoint = true;
  std::uint64_t held = 0;  // the endpoint that this report is about
  endpoints::Usage usage = usage_of(report);
  switch (report.kind) {
    case abi::ReportKind::kFirstToken:
      if (usage.is_told()) reservations_->tell(report.ticket, uid, usage);
      outcome = reservations_->first_token(report.ticket, uid, now_ns);
      if (outcome == ReportOutcome::kApplied) reservations_->touch(report.ticket, uid, tick);
      break;
    case abi::ReportKind::kProgress:
      if (usage.is_told()) reservations_->tell(report.ticket, uid, usage);
      outcome = reservations_->touch(report.ticket, uid, tick);
      break;
    case abi::ReportKind::kDone:
    case abi::ReportKind::kFailed:
    case abi::ReportKind::kCancelled:
      outcome = reservations_->end(report.ticket, uid, &held, now_ns,
                                   {report.kind == abi::ReportKind::kDone, usage}, &usage);
      report.prompt_tokens = usage.prompt_tokens;
      report.cached_tokens = usage.cached_tokens;
      report.output_tokens = usage.output_tokens;
      break;
    case abi::ReportKind::kFallback:
      outcome = move(report, uid, now_ns, topology, &held, &known_endpoint);
      break;
  }
  if (outcome == ReportOutcome::kApplied) note(report.kind, held);
  if (!known_endpoint) {
    counters.add(abi::Counter::reports_unknown);
    return -ENOENT;
  }
  if (outcome == ReportOutcome::kUnknownTicket) {
    counters.add(abi::Counter::reports_unknown);
    return -ESTALE;
  }
  if (outcome == ReportOutcome::kOtherUser) {
    counters.add(abi::Counter::reports_unknown);
    return -EPERM;
  }
  counters.add(abi::Counter::reports);
  if (report.kind == abi::ReportKind::kDone) {
    counters.add(abi::Counter::requests_done);
    count_usage(usage, counters);
  }
  if (report.kind == abi::ReportKind::kFailed) counters.add(abi::Counter::requests_failed);
  if (report.kind == abi::ReportKind::kFallback) counters.add(abi::Counter::requests_fallback);
  if (outcome == ReportOutcome::kStaleGeneration) {
    counters.add(abi::Counter::reports_stale_generation);
    return -ESTALE;
  }
  return 0;
}

}  // namespace pickd::workers
