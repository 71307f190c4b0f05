// A profile: filters in order, weighted scorers, one picker. Made from the scheduling
// configuration, never changed afterwards, shared by all workers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/config/config.hpp"
#include "daemon/config/errors.hpp"
#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

class Profile {
 public:
  // Resolves plugin references and parameters. What is wrong goes to `errors`; nullptr then.
  static std::unique_ptr<const Profile> make(const config::ProfileConfig& profile,
                                             const std::vector<config::PluginConfig>& plugins,
                                             config::Errors& errors);

  struct WeightedScorer {
    const Scorer* scorer;
    double weight;
  };

  const std::string& name() const { return name_; }
  const std::vector<const Filter*>& filters() const { return filters_; }
  const std::vector<WeightedScorer>& scorers() const { return scorers_; }
  Picker& picker() const { return *picker_; }
  ColumnSet filter_columns() const { return filter_columns_; }
  ColumnSet columns() const { return columns_; }
  std::uint64_t session_ttl_ms() const {
    return session_ttl_ms_;
  }  // 0: sessions are not remembered

 private:
  friend class ProfileAccess;  // of the tests: scorers that no configuration names

  void use(const PluginInfo& info, Plugin& plugin, double weight);

  std::string name_;
  std::vector<std::unique_ptr<Plugin>> plugins_;
  std::vector<const Filter*> filters_;
  std::vector<WeightedScorer> scorers_;
  Picker* picker_ = nullptr;
  ColumnSet filter_columns_ = 0;
  ColumnSet columns_ = 0;
  std::uint64_t session_ttl_ms_ = 0;
};

}  // namespace pickd::pick
