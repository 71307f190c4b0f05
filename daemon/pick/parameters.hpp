// Parameters: a plugin's parameters, read by what its description declares. Kind, default and range
// are said once, in PluginInfo; the documents and the schema say the same.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/config/parameters.hpp"
#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

class Parameters {
 public:
  // All must outlive it. Mistakes go to `errors`.
  Parameters(const PluginInfo& info, const config::PluginConfig& plugin, config::Errors& errors);

  // Each is declared for this plugin with this kind; another name is a fault of the program and
  // throws std::logic_error.
  double number(std::string_view name);
  std::uint64_t integer(std::string_view name);
  bool boolean(std::string_view name);
  std::string text(std::string_view name);  // kText, kReference
  std::string choice(std::string_view name);
  std::uint64_t duration_ms(std::string_view name);
  config::Tree tree(std::string_view name);  // null: absent

  bool has(std::string_view name);
  void refuse(std::string_view name, std::string_view what);

  // Reads what the plugin did not ask for, so that it is checked all the same; refuses what is not
  // declared. Returns the references that were given, with the place each stands.
  struct Reference {
    std::string key;
    std::string name;
    config::Place place;
  };
  std::vector<Reference> finish();

 private:
  const ParameterInfo& declared(std::string_view name, ParameterKind kind);
  // The map that holds the last part of a dotted name, and that part.
  config::MapReader& map_of(std::string_view name, std::string_view* last);
  void check_required(const ParameterInfo& info);
  void read_as_declared(const ParameterInfo& info);

  const PluginInfo& info_;
  config::MapReader root_;
  std::map<std::string, config::MapReader, std::less<>> maps_;  // by dotted path
  std::vector<std::string_view> read_;
};

}  // namespace pickd::pick
