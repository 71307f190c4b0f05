// scheduling_schema: see manual.hpp. Editors and pipelines check a file with it; pickd itself
// checks more (references, what a plugin needs), see `pickd --check-config`.
#include <nlohmann/json.hpp>

#include "daemon/pick/manual.hpp"
#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

namespace {

using Json = nlohmann::ordered_json;

Json choices(std::string_view words) {
  Json out = Json::array();
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find('|', at), words.size());
    out.push_back(words.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Json value_schema(const ParameterInfo& info) {
  Json out;
  switch (info.kind) {
    case ParameterKind::kNumber:
      out = {{"type", "number"}, {"minimum", info.low}, {"maximum", info.high}};
      break;
    case ParameterKind::kInteger:
      out = {{"type", "integer"},
             {"minimum", static_cast<std::uint64_t>(info.low)},
             {"maximum", static_cast<std::uint64_t>(info.high)}};
      break;
    case ParameterKind::kBoolean: out = {{"type", "boolean"}}; break;
    case ParameterKind::kChoice: out = {{"enum", choices(info.choices)}}; break;
    case ParameterKind::kDuration:
      out = {{"type", "string"}, {"pattern", "^([0-9.]+(ns|us|ms|s|min|m|h))+$"}};
      break;
    case ParameterKind::kText:
    case ParameterKind::kReference: out = {{"type", "string"}}; break;
    case ParameterKind::kTree: out = {{"type", {"array", "object"}}}; break;
  }
  out["description"] = info.help;
  return out;
}

// Puts `schema` under a dotted name, with the maps between.
void put(Json& map, std::string_view name, const Json& schema, bool required) {
  const std::size_t dot = name.find('.');
  const std::string first(name.substr(0, dot));
  if (required) {
    Json& names = map["required"];
    if (std::find(names.begin(), names.end(), first) == names.end()) names.push_back(first);
  }
  if (dot == std::string_view::npos) {
    map["properties"][first] = schema;
    return;
  }
  Json& below = map["properties"][first];
  if (below.is_null()) below = {{"type", "object"}, {"additionalProperties", false}};
  put(below, name.substr(dot + 1), schema, required);
}

Json plugin_schema(const PluginInfo& info) {
  Json parameters = {{"type", {"object", "null"}},
                     {"additionalProperties", false},
                     {"properties", Json::object()}};
  bool required = false;
  for (const ParameterInfo& parameter : info.parameters) {
    put(parameters, parameter.name, value_schema(parameter), parameter.required);
    required |= parameter.required;
  }
  Json out = {{"description", info.summary},
              {"type", "object"},
              {"additionalProperties", false},
              {"required", required ? Json{"type", "parameters"} : Json{"type"}},
              {"properties",
               {{"type", {{"const", info.type}}},
                {"name", {{"type", "string"}, {"minLength", 1}, {"maxLength", 127}}},
                {"parameters", parameters}}}};
  return out;
}

Json closed(Json properties, const Json& required = Json::array()) {
  return {{"type", "object"},
          {"additionalProperties", false},
          {"required", required},
          {"properties", std::move(properties)}};
}

}  // namespace

std::string scheduling_schema() {
  const Json name = {{"type", "string"}, {"minLength", 1}, {"maxLength", 127}};
  Json plugins = Json::array();
  for (const PluginInfo& info : plugin_infos()) plugins.push_back(plugin_schema(info));
  const Json use =
      closed({{"pluginRef", name}, {"weight", {{"type", {"number", "null"}}}}}, {"pluginRef"});
  const Json profile = closed(
      {{"name", name}, {"plugins", {{"type", {"array", "null"}}, {"items", use}}}}, {"name"});
  Json schema = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "EndpointPickerConfig as pickd takes it"},
      {"description", "Made from the plugins of daemon/pick; ./dev manual writes it."},
      {"type", "object"},
      {"additionalProperties", false},
      {"required", {"apiVersion", "kind"}},
      {"properties",
       {{"apiVersion", {{"enum", {"llm-d.ai/v1alpha1", "inference.networking.x-k8s.io/v1alpha1"}}}},
        {"kind", {{"const", "EndpointPickerConfig"}}},
        {"metadata", {{"type", {"object", "null"}}}},
        {"featureGates", {{"type", {"array", "null"}}, {"items", {{"type", "string"}}}}},
        {"plugins",
         {{"type", {"array", "null"}}, {"maxItems", 128}, {"items", {{"oneOf", plugins}}}}},
        {"schedulingProfiles", {{"type", {"array", "null"}}, {"maxItems", 16}, {"items", profile}}},
        {"saturationDetector",
         closed({{"pluginRef", name},
                 {"queueDepthThreshold", {{"type", "integer"}, {"minimum", 1}}},
                 {"kvCacheUtilThreshold", {{"type", "number"}}},
                 {"metricsStalenessThreshold", {{"type", "string"}}},
                 {"headroom", {{"type", "number"}}}})},
        {"flowControl",
         closed({{"saturationDetector", closed({{"pluginRef", name}}, {"pluginRef"})}})}}}};
  return schema.dump(2) + "\n";
}

}  // namespace pickd::pick
