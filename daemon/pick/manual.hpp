// Documents made from the registry, so that they cannot say anything else than the code does.
#pragma once

#include <string>

namespace pickd::pick {

// docs/plugins.md.
std::string plugins_manual();
// docs/scheduling.schema.json: the EndpointPickerConfig as pickd takes it, as JSON schema.
std::string scheduling_schema();

}  // namespace pickd::pick
