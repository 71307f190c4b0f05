#include "daemon/control/external_watch.hpp"

#include "daemon/base/log.hpp"

namespace pickd::control {

namespace {

constexpr std::uint64_t kLookNs = 1'000'000'000;

}  // namespace

ExternalWatch::ExternalWatch(net::Reactor& reactor, EngineRoom& room, state::Counters& counters)
    : reactor_(reactor), room_(room), counters_(counters) {
  arm();
}

ExternalWatch::~ExternalWatch() { reactor_.cancel(timer_); }

void ExternalWatch::arm() {
  timer_ = reactor_.after(kLookNs, [this] {
    look();
    arm();
  });
}

void ExternalWatch::leave() {
  look();
  seen_.clear();  // another instance may get the address of one that goes
}

void ExternalWatch::look() {
  for (const pick::ExternalPlugin* plugin : room_.schedule().externals()) {
    Seen& seen = seen_[plugin];
    const pick::ExternalHealth& health = plugin->health();
    // Relaxed: workers add to them, and nothing else hangs on them.
    const std::uint64_t failures = health.failures.load(std::memory_order_relaxed);
    const std::uint64_t slow = health.slow.load(std::memory_order_relaxed);
    counters_.add(abi::Counter::external_failures, failures - seen.failures);
    counters_.add(abi::Counter::external_slow, slow - seen.slow);
    const bool off = health.off.load(std::memory_order_relaxed);
    if (off && !seen.off) {
      counters_.add(abi::Counter::external_off);
      spdlog::error(
          "plugin {} ({}) is off until the configuration is loaded anew: {} calls failed or gave "
          "no number and {} took longer than {} us, of {}",
          plugin->name(), plugin->settings().path, failures, slow,
          plugin->settings().budget_ns / 1000, health.calls.load(std::memory_order_relaxed));
    }
    seen = {failures, slow, off};
  }
}

}  // namespace pickd::control
