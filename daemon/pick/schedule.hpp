// A schedule: everything the scheduling configuration says, ready to pick by: profiles, the handler
// that chooses among them, the saturation detector, settings of the producers.
//
// Never changed after it is made. A reload makes another and publishes it (PickCore::set_schedule).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/base/result.hpp"
#include "daemon/config/config.hpp"
#include "daemon/pick/admitter.hpp"
#include "daemon/pick/detector.hpp"
#include "daemon/pick/external/external_plugin.hpp"
#include "daemon/pick/handler.hpp"
#include "daemon/pick/profile.hpp"
#include "daemon/pick/source.hpp"

namespace pickd::pick {

class Schedule {
 public:
  // The named built-in profile, the configured ones, or the default: where nothing is predicted
  // (`predicts`), that of the Endpoint Picker; what goes by predictions alone is refused there. The
  // error's text lists everything that is wrong, a line each.
  static base::Result<std::unique_ptr<const Schedule>> make(
      const config::SchedulingConfig& scheduling, bool predicts = true);
  // One profile, run always.
  static std::unique_ptr<const Schedule> of(std::unique_ptr<const Profile> profile);

  // What operators know it by: the profile's name, or the names of all.
  const std::string& name() const { return name_; }

  // nullptr: the request names a profile that there is not.
  const Profile* primary(const PickRequest& request) const {
    if (handler_ == nullptr) return profiles_.front().get();
    return at(handler_->primary(request));
  }
  // nullptr: no endpoint is wanted that encodes.
  const Profile* encode(const PickRequest& request, std::uint32_t uncached_tokens) const {
    return handler_ == nullptr ? nullptr : at(handler_->encode(request, uncached_tokens));
  }
  // nullptr: no prefill endpoint is wanted.
  const Profile* prefill(const PickRequest& request, std::uint32_t uncached_tokens) const {
    return handler_ == nullptr ? nullptr : at(handler_->prefill(request, uncached_tokens));
  }
  const Detector& detector() const { return *detector_; }
  ColumnSet detector_columns() const { return detector_columns_; }
  const std::vector<const Admitter*>& admitters() const { return admitters_; }
  ColumnSet admitter_columns() const { return admitter_columns_; }
  const SourceSettings& sources() const { return sources_; }
  // The operator's own plugins, to be watched.
  const std::vector<const ExternalPlugin*>& externals() const { return externals_; }

 private:
  friend class ScheduleMaker;
  Schedule() = default;
  const Profile* at(std::size_t index) const {
    return index < profiles_.size() ? profiles_[index].get() : nullptr;
  }

  std::string name_;
  std::vector<std::unique_ptr<const Profile>> profiles_;
  std::vector<std::shared_ptr<Plugin>> plugins_;  // that no profile holds
  std::vector<const ExternalPlugin*> externals_;
  const ProfileHandler* handler_ = nullptr;  // nullptr: the only profile, always
  const Detector* detector_ = nullptr;
  ColumnSet detector_columns_ = 0;
  std::vector<const Admitter*> admitters_;
  ColumnSet admitter_columns_ = 0;
  SourceSettings sources_;
};

}  // namespace pickd::pick
