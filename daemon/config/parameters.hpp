// ParameterReader: the parameters of one plugin, read with everything a MapReader can.
//
//   ParameterReader read(plugin, errors);
//   ttl_ms_ = read.duration_ms("ttl", 30 * 60'000, 1'000, 12 * 3'600'000);
//   read.finish();  // refuses what was not asked for
#pragma once

#include "daemon/config/config.hpp"
#include "daemon/config/map_reader.hpp"

namespace pickd::config {

class ParameterReader : public MapReader {
 public:
  // Both must outlive the reader. Keys in messages read "plugins[NAME].parameters.KEY".
  ParameterReader(const PluginConfig& plugin, Errors& errors)
      : MapReader(plugin.parameters.get(), "plugins[" + plugin.name + "].parameters", plugin.place,
                  errors) {}
};

}  // namespace pickd::config
