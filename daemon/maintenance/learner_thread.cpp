#include "daemon/maintenance/learner_thread.hpp"

#include <pthread.h>

#include <chrono>

namespace pickd::maintenance {

namespace {

// How old coefficients may be while requests run, and while nothing happens.
constexpr std::chrono::milliseconds kTurn{50};
constexpr std::uint64_t kIdlePublishNs = 1'000'000'000;
constexpr std::uint64_t kDrawDownNs = 1'000'000'000;

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
  if (events == 0 && now_ns - published_ns_ < kIdlePublishNs) return;
  published_ns_ = now_ns;
  const latency::Coefficients& newest = learner_.coefficients(static_cast<double>(now_ns) * 1e-9);
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
