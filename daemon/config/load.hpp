// Loading: one strict YAML file and the environment make one Config; and the texts made from it.
//
// Reads the file (and the one that schedulingConfigFile names); no other I/O, no clock, no globals:
// the environment comes in as an argument. Start-up and reload only; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/base/result.hpp"
#include "daemon/config/config.hpp"

namespace pickd::config {

// What a file says of one of its sections, where it says anything: a key without a value is none.
struct FileSection {
  Place place;
  bool holds = false;  // more than `{}` or `[]`
};
// By name; a file that schedulingConfigFile names, and an EndpointPickerConfig, are `scheduling`.
using FileSections = std::map<std::string, FileSection>;

struct Loaded {
  Config config;
  std::map<std::string, Place> origins;  // key path -> where it was set; absent: the default
  std::string path;                      // of the file; empty: there is none
  FileSections sections;
};

// `path` empty: the file that PICKD_CONFIG names, else no file at all, which is valid: all
// defaults. `environment`: "NAME=value" each, as in environ; what does not start with PICKD_ is
// ignored, but for RUNTIME_DIRECTORY, the default place of the state. Every PICKD_ variable must be
// a setting. Errors: the text lists everything found, a line each with file, line and key (code
// -EINVAL); or why the file could not be read (-ENOENT, -EACCES, -EFBIG...).
base::Result<Loaded> load_config(const std::string& path,
                                 const std::vector<std::string>& environment);

// For a file that is read again while `running` is in force: -EINVAL where it holds nothing any
// more, or no longer names listen, state, endpoints, pools or scheduling, which `running` set. The
// text has a line each, with file, key and what to write where that was meant.
base::Result<void> check_kept(const FileSections& running, const Loaded& next);

// The whole configuration as YAML, each value with a comment on where it came from. Loading it
// again gives an equal Config.
std::string print_config(const Loaded& loaded);

// docs/configuration.md, made from the table.
std::string configuration_manual();

// packaging/pickd.yaml: the same as a file of comments, for /etc.
std::string example_file();

}  // namespace pickd::config
