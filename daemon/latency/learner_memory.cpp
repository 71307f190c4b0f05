// What a learner takes from the one before it, and leaves to the next.
#include <cmath>

#include "daemon/latency/learner.hpp"

namespace pickd::latency {

namespace {

constexpr double kSumMax = 1e18;

bool is_sum(double value) { return std::isfinite(value) && value >= 0 && value < kSumMax; }

}  // namespace

ClassMemory Learner::memory(std::uint32_t class_id) const {
  const Class& of = classes_[class_id];
  return {of.ttft.memory(),
          of.itl.memory(),
          of.output_sum,
          of.output_weight,
          of.pick_weight,
          of.uncached_sum,
          of.work_sum,
          of.kv_sum,
          of.accuracy.ttft.memory(),
          of.accuracy.itl.memory(),
          of.accuracy.itl_given.memory()};
}

bool Learner::restore(std::uint32_t class_id, const ClassMemory& kept) {
  for (const double sum : {kept.output_sum, kept.output_weight, kept.pick_weight, kept.uncached_sum,
                           kept.work_sum, kept.kv_sum}) {
    if (!is_sum(sum)) return false;
  }
  // All or nothing: into another class first.
  Class restored(options_);
  const bool sound = restored.ttft.restore(kept.ttft) && restored.itl.restore(kept.itl) &&
                     restored.accuracy.ttft.restore(kept.ttft_accuracy) &&
                     restored.accuracy.itl.restore(kept.itl_accuracy) &&
                     restored.accuracy.itl_given.restore(kept.itl_given_accuracy);
  if (!sound) return false;
  restored.output_sum = kept.output_sum;
  restored.output_weight = kept.output_weight;
  restored.pick_weight = kept.pick_weight;
  restored.uncached_sum = kept.uncached_sum;
  restored.work_sum = kept.work_sum;
  restored.kv_sum = kept.kv_sum;
  class_at(class_id) = restored;
  return true;
}

std::optional<Learner::EndpointKnown> Learner::endpoint_memory(std::uint32_t id, double now_s) {
  Endpoint& endpoint = endpoints_[id];
  if (!endpoint.seen || endpoint.slowness.samples() == 0) return std::nullopt;
  return EndpointKnown{endpoint.generation,
                       {endpoint.slowness.log_ratio(), endpoint.slowness.evidence_s(),
                        endpoint.history.queued_share(now_s)}};
}

void Learner::restore_endpoint(std::uint32_t id, std::uint16_t class_id, std::uint32_t generation,
                               const EndpointMemory& kept, double now_s) {
  if (id >= endpoints_.size() || class_id >= kClassesMax || endpoints_[id].seen) return;
  Endpoint& endpoint = endpoints_[id];
  class_at(class_id);
  endpoint.seen = true;
  endpoint.class_id = class_id;
  endpoint.generation = generation;
  endpoint.slowness.restore(kept.log_ratio, kept.evidence_s, now_s);
  endpoint.history.restore_share(now_s, kept.queued_share);
}

}  // namespace pickd::latency
