// A plugin of the operator's own at work: called within a pick, timed, judged, switched off when it
// fails too often. What external-scorer and external-filter share.
//
// The only part of the pick core that reads a clock: the time a call took decides nothing of the
// pick it belongs to.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "daemon/pick/external/plugin_library.hpp"
#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

// What happened in the calls of one instance. Workers add, the control thread looks: relaxed, for
// nothing else is published with them.
struct ExternalHealth {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> failures{0};  // it said so, or gave a NaN
  std::atomic<std::uint64_t> slow{0};      // over its budget
  std::atomic<bool> off{false};
};

class ExternalPlugin : public virtual Plugin {
 public:
  static constexpr std::uint64_t kWindowCalls = 1024;

  struct Settings {
    std::string path;
    std::uint64_t budget_ns;
    std::uint64_t failures_max;  // within kWindowCalls; then it is off
  };

  ExternalPlugin(Settings settings, PluginInstanceHandle instance)
      : settings_(std::move(settings)), instance_(std::move(instance)) {}

  ColumnSet columns(ColumnSet) const override {
    return static_cast<ColumnSet>(instance_.functions().columns);
  }
  // What the configuration calls it; set before it is used.
  void set_name(const std::string& name) { name_ = name; }
  const std::string& name() const { return name_; }
  const Settings& settings() const { return settings_; }
  const ExternalHealth& health() const { return health_; }

 protected:
  using Call = bool (*)(const pickd_plugin& functions, void* self, const pickd_plugin_pick& pick,
                        void* out);
  bool off() const { return health_.off.load(std::memory_order_relaxed); }
  // Calls and judges; returns what the call did.
  bool timed(const PickContext& context, Call call, void* out) const;

 private:
  void judge(bool good, std::uint64_t took_ns) const;

  std::string name_;
  Settings settings_;
  PluginInstanceHandle instance_;
  mutable ExternalHealth health_;
  // [ window : 32 ][ bad calls in it : 32 ]
  mutable std::atomic<std::uint64_t> bad_{0};
};

}  // namespace pickd::pick
