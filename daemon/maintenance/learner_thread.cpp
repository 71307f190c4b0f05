#include "daemon/maintenance/learner_thread.hpp"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <chrono>

namespace pickd::maintenance {

namespace {

// How old coefficients may be while requests run, and while nothing happens.
constexpr std::chrono::milliseconds kTurn{50};
constexpr std::uint64_t kIdlePublishNs = 1'000'000'000;
constexpr std::uint64_t kDrawDownNs = 1'000'000'000;
constexpr std::uint64_t kWriteNs = 1'000'000'000;

}  // namespace

LearnerThread::LearnerThread(pick::Flights& flights, const state::TickClock& clock,
                             std::uint32_t endpoint_ids, std::uint32_t flight_count,
                             const latency::LearnerOptions& options)
    : flights_(&flights), clock_(clock), learner_(endpoint_ids, flight_count, options) {}

LearnerThread::~LearnerThread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LearnerThread::keep(std::unique_ptr<ModelStore> store,
                         const endpoints::LatencyClasses& classes,
                         const endpoints::Topology& topology, abi::Word* counters_row) {
  counters_.emplace(counters_row);
  store_ = std::move(store);
  classes_ = &classes;
  restore_classes();
  const double now_s = static_cast<double>(clock_.now_ns()) * 1e-9;
  for (const endpoints::TopologyEndpoint& endpoint : topology.endpoints()) {
    if (endpoint.id == 0) continue;
    if (const auto kept = store_->endpoint(endpoint.id, endpoint.generation); kept)
      learner_.restore_endpoint(endpoint.id, endpoint.latency_class, endpoint.generation, *kept,
                                now_s);
  }
  publish(now_s);
}

// Classes get their number when the first of their endpoints joins, which may be late.
void LearnerThread::restore_classes() {
  for (; restored_ < endpoints::LatencyClasses::kMax; ++restored_) {
    const std::uint64_t key = classes_->key(restored_);
    if (key == 0) return;
    const auto kept = store_->take(key);
    if (!kept) continue;
    const bool sound = learner_.restore(restored_, *kept);
    counters_->add(sound ? abi::Counter::models_restored : abi::Counter::models_broken);
    if (!sound)
      spdlog::warn("what was learned of latency class {} makes no sense: it begins from nothing",
                   restored_);
  }
}

void LearnerThread::count() {
  const latency::LearnerCounts now = learner_.counts();
  counters_->add(abi::Counter::latency_samples,
                 now.ttft_samples + now.itl_samples - counted_.ttft_samples - counted_.itl_samples);
  counters_->add(abi::Counter::latency_refused, now.refused - counted_.refused);
  counters_->add(abi::Counter::models_broken, now.broken - counted_.broken);
  counted_ = now;
  const std::uint64_t dropped = flights_->events_dropped();
  counters_->add(abi::Counter::latency_dropped, dropped - dropped_counted_);
  dropped_counted_ = dropped;
}

void LearnerThread::write(std::uint64_t now_ns) {
  const auto classes = static_cast<std::uint16_t>(learner_.class_count());
  for (std::uint16_t id = 0; id < classes; ++id) {
    if (const std::uint64_t key = classes_->key(id); key != 0)
      store_->write(id, key, learner_.memory(id));
  }
  const double now_s = static_cast<double>(now_ns) * 1e-9;
  for (std::uint32_t id = 1; id < learner_.endpoint_ids(); ++id) {
    if (const auto known = learner_.endpoint_memory(id, now_s); known)
      store_->write_endpoint(id, known->generation, known->memory);
  }
  counters_->add(abi::Counter::models_written);
}

void LearnerThread::start() {
  thread_ = std::thread([this] { run(); });
}

std::vector<LatencySummary> LearnerThread::summary() const {
  const std::lock_guard lock(mutex_);
  return summary_;
}

latency::LearnerCounts LearnerThread::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void LearnerThread::run() {
  ::pthread_setname_np(::pthread_self(), "pickd-learner");
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    turn();
    lock.lock();
    changed_.wait_for(lock, kTurn, [this] { return stop_; });
  }
}

void LearnerThread::turn() {
  const std::size_t events = flights_->teach(learner_);
  const std::uint64_t now_ns = clock_.now_ns();
  if (now_ns - drawn_down_ns_ >= kDrawDownNs) {
    drawn_down_ns_ = now_ns;
    flights_->draw_down(learner_, now_ns);
  }
  if (store_ != nullptr) {
    count();
    restore_classes();
    if (learned_ && now_ns - written_ns_ >= kWriteNs) {
      written_ns_ = now_ns;
      learned_ = false;
      write(now_ns);
    }
  }
  learned_ = learned_ || events != 0;
  if (events == 0 && now_ns - published_ns_ < kIdlePublishNs) return;
  published_ns_ = now_ns;
  publish(static_cast<double>(now_ns) * 1e-9);
}

void LearnerThread::publish(double now_s) {
  const latency::Coefficients& newest = learner_.coefficients(now_s);
  flights_->publish(newest);
  std::vector<LatencySummary> summary;
  for (std::uint32_t id = 0; id < learner_.class_count(); ++id) {
    summary.push_back({newest.classes[id], learner_.accuracy(id)});
  }
  const std::lock_guard lock(mutex_);
  summary_ = std::move(summary);
  counts_ = learner_.counts();
}

}  // namespace pickd::maintenance
