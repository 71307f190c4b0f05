// A profile: filters in order, weighted scorers, one picker. Made from the scheduling
// configuration, never changed afterwards, shared by all workers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/config/config.hpp"
#include "daemon/config/errors.hpp"
#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

// The plugins of a configuration, by name. One instance each, whatever profiles use it.
struct PluginInstance {
  const PluginInfo* info;
  std::shared_ptr<Plugin> plugin;
};
using PluginInstances = std::map<std::string, PluginInstance, std::less<>>;

class Profile {
 public:
  // What is wrong goes to `errors`; nullptr then. `instances` lacks plugins that could not be made:
  // their mistakes are said already.
  static std::unique_ptr<const Profile> make(const config::ProfileConfig& profile,
                                             const PluginInstances& instances,
                                             config::Errors& errors);

  struct WeightedScorer {
    const Scorer* scorer;
    double weight;
  };

  const std::string& name() const { return name_; }
  const std::vector<const Filter*>& filters() const { return filters_; }
  const std::vector<WeightedScorer>& scorers() const { return scorers_; }
  // What the configuration calls them, in the order of filters() and of scorers().
  const std::string& filter_name(std::size_t at) const { return filter_names_[at]; }
  const std::string& scorer_name(std::size_t at) const { return scorer_names_[at]; }
  const std::vector<PickMemory*>& memories() const { return memories_; }
  Picker& picker() const { return *picker_; }
  ColumnSet filter_columns() const { return filter_columns_; }
  ColumnSet columns() const { return columns_; }
  // 0: sessions are not remembered.
  std::uint64_t session_ttl_ms() const { return session_ttl_ms_; }
  // The request attribute that holds the session id where the request names none; empty: none does.
  const std::string& session_header() const { return session_header_; }

 private:
  friend class ProfileAccess;  // of the tests: scorers that no configuration names

  void use(const PluginInstance& instance, const std::string& name, double weight);

  std::string name_;
  std::vector<std::shared_ptr<Plugin>> plugins_;
  std::vector<const Filter*> filters_;
  std::vector<WeightedScorer> scorers_;
  std::vector<std::string> filter_names_;
  std::vector<std::string> scorer_names_;
  std::vector<PickMemory*> memories_;
  Picker* picker_ = nullptr;
  ColumnSet filter_columns_ = 0;
  ColumnSet columns_ = 0;
  std::uint64_t session_ttl_ms_ = 0;
  std::string session_header_;
};

}  // namespace pickd::pick
