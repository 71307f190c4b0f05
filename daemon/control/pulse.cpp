#include "daemon/control/pulse.hpp"

#include "daemon/base/clock.hpp"

namespace pickd::control {

namespace {

constexpr std::uint64_t kLookNs = 1'000'000'000;
constexpr std::uint64_t kSilentNs = 5'000'000'000;  // from which a thread stands still

admin::Check check_of(std::string name, bool good) {
  return {std::move(name), good, good ? "it works" : "its thread stands still; restart the daemon"};
}

}  // namespace

Pulse::Pulse(net::Reactor& reactor, EngineRoom& room)
    : reactor_(&reactor), room_(&room), asked_(room.worker_count()) {
  look();
}

Pulse::~Pulse() { reactor_->cancel(timer_); }

void Pulse::look() {
  const std::uint64_t now_ns = base::monotonic_ns();
  // This thread itself stood still, with the whole process perhaps: others get their time anew.
  const bool late = now_ns - looked_ns_ > 2 * kLookNs;
  looked_ns_ = now_ns;
  for (std::uint32_t index = 0; index < asked_.size(); ++index) look_at_worker(index, now_ns, late);
  timer_ = reactor_->after(kLookNs, [this] { look(); });
}

// One that is asked answers in its next turn; what is looked at is the question of the time before.
void Pulse::look_at_worker(std::uint32_t index, std::uint64_t now_ns, bool late) {
  constexpr auto kHealth = workers::Worker::Asker::kHealth;
  workers::Worker& worker = room_->worker(index);
  Asked& asked = asked_[index];
  const bool answered = worker.answered(kHealth) == asked.times;
  if (answered || late) asked.at_ns = now_ns;
  asked.good = answered || now_ns - asked.at_ns < kSilentNs;
  if (!answered) return;
  ++asked.times;
  worker.ask(kHealth);
}

admin::Check Pulse::maintenance() const {
  const std::uint64_t beat_ns =
      room_->segment().header().heartbeat_ns.load(std::memory_order_acquire);
  return check_of("maintenance", beat_ns + kSilentNs > base::boot_ns());
}

std::vector<admin::Check> Pulse::threads() const {
  std::vector<admin::Check> checks{maintenance()};
  for (std::size_t index = 0; index < asked_.size(); ++index)
    checks.push_back(check_of("worker " + std::to_string(index), asked_[index].good));
  return checks;
}

}  // namespace pickd::control
