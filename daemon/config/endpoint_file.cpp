#include "daemon/config/endpoint_file.hpp"

#include "abi/limits.hpp"
#include "daemon/config/map_reader.hpp"
#include "daemon/config/sections.hpp"

namespace pickd::config {

base::Result<std::vector<EndpointConfig>> read_endpoint_file(const std::string& path,
                                                             const std::string& pool) {
  const auto tree = read_tree(path);
  if (!tree) return tree.error();
  const Node& root = *tree.value();
  Errors errors;
  std::vector<EndpointConfig> endpoints;
  const Node* list = root.is_map() ? root.find("endpoints") : &root;
  if (root.is_map()) {
    MapReader read(&root, "", root.place, errors);
    (void)read.tree("endpoints");
    read.finish();
  }
  if (list == nullptr || !list->is_list()) {
    errors.add(list == nullptr ? root.place : list->place, "endpoints",
               "must be a list (`- name: ...`); write `endpoints: []` when there are none");
  } else if (list->items.size() >= abi::kEndpointIdsMax) {
    errors.add(list->place, "endpoints",
               "there are " + std::to_string(list->items.size()) + "; at most " +
                   std::to_string(abi::kEndpointIdsMax - 1) + " are allowed");
  } else {
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      endpoints.push_back(
          read_endpoint(*list->items[i], "endpoints[" + std::to_string(i) + "]", &pool, errors));
    }
    check_endpoints(endpoints, abi::kEndpointIdsMax, errors);
  }
  if (!errors.empty()) return base::Error{-EINVAL, errors.text()};
  return endpoints;
}

}  // namespace pickd::config
