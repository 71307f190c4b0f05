#include "daemon/pick/parameters.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "daemon/config/values.hpp"

namespace pickd::pick {

namespace {

std::vector<std::string> split(std::string_view words) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find('|', at), words.size());
    out.emplace_back(words.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

double as_number(std::string_view text) { return std::strtod(std::string(text).c_str(), nullptr); }

std::uint64_t as_ms(std::string_view text) {
  if (text.empty()) return 0;
  constexpr std::uint64_t kMsInNs = 1'000'000;
  const auto parsed = config::parse_duration(std::string(text), kMsInNs, {0, ~0ULL >> 1, false});
  if (!parsed) throw std::logic_error("a default that is no duration: " + std::string(text));
  return parsed.value();
}

}  // namespace

Parameters::Parameters(const PluginInfo& info, const config::PluginConfig& plugin,
                       config::Errors& errors)
    : info_(info), root_(config::ParameterReader(plugin, errors)) {}

const ParameterInfo& Parameters::declared(std::string_view name, ParameterKind kind) {
  const auto at =
      std::find_if(info_.parameters.begin(), info_.parameters.end(),
                   [name](const ParameterInfo& parameter) { return parameter.name == name; });
  if (at == info_.parameters.end() || at->kind != kind) {
    throw std::logic_error(std::string(info_.type) + " does not declare " + std::string(name));
  }
  read_.push_back(at->name);
  check_required(*at);
  return *at;
}

config::MapReader& Parameters::map_of(std::string_view name, std::string_view* last) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) {
    *last = name;
    return root_;
  }
  *last = name.substr(dot + 1);
  const std::string_view path = name.substr(0, dot);
  if (const auto known = maps_.find(path); known != maps_.end()) return known->second;
  std::string_view part;
  config::MapReader& above = map_of(path, &part);
  return maps_.emplace(std::string(path), above.map(part)).first->second;
}

void Parameters::check_required(const ParameterInfo& info) {
  if (info.required && !has(info.name)) {
    refuse(info.name, std::string("is missing; a ") + std::string(info_.type) + " needs it");
  }
}

bool Parameters::has(std::string_view name) {
  std::string_view last;
  const config::MapReader& map = map_of(name, &last);
  return map.has(last);
}

void Parameters::refuse(std::string_view name, std::string_view what) {
  std::string_view last;
  map_of(name, &last).refuse(last, what);
}

double Parameters::number(std::string_view name) {
  const ParameterInfo& info = declared(name, ParameterKind::kNumber);
  std::string_view last;
  config::MapReader& map = map_of(name, &last);
  return map.number(last, as_number(info.absent), info.low, info.high);
}

std::uint64_t Parameters::integer(std::string_view name) {
  const ParameterInfo& info = declared(name, ParameterKind::kInteger);
  std::string_view last;
  config::MapReader& map = map_of(name, &last);
  return map.integer(last, static_cast<std::uint64_t>(as_number(info.absent)),
                     static_cast<std::uint64_t>(info.low), static_cast<std::uint64_t>(info.high));
}

bool Parameters::boolean(std::string_view name) {
  const ParameterInfo& info = declared(name, ParameterKind::kBoolean);
  std::string_view last;
  config::MapReader& map = map_of(name, &last);
  return map.boolean(last, info.absent == "true");
}

std::string Parameters::text(std::string_view name) {
  const bool reference =
      std::any_of(info_.parameters.begin(), info_.parameters.end(), [name](const auto& parameter) {
        return parameter.name == name && parameter.kind == ParameterKind::kReference;
      });
  const ParameterInfo& info =
      declared(name, reference ? ParameterKind::kReference : ParameterKind::kText);
  std::string_view last;
  config::MapReader& map = map_of(name, &last);
  return map.text(last, info.absent, static_cast<std::size_t>(info.low),
                  info.high == 0 ? config::kTextBytesMax : static_cast<std::size_t>(info.high));
}

std::string Parameters::choice(std::string_view name) {
  const ParameterInfo& info = declared(name, ParameterKind::kChoice);
  std::string_view last;
  config::MapReader& map = map_of(name, &last);
  return map.choice(last, info.absent, split(info.choices));
}

std::uint64_t Parameters::duration_ms(std::string_view name) {
  const ParameterInfo& info = declared(name, ParameterKind::kDuration);
  std::string_view last;
  config::MapReader& map = map_of(name, &last);
  return map.duration_ms(last, as_ms(info.absent), static_cast<std::uint64_t>(info.low),
                         static_cast<std::uint64_t>(info.high));
}

config::Tree Parameters::tree(std::string_view name) {
  declared(name, ParameterKind::kTree);
  std::string_view last;
  config::MapReader& map = map_of(name, &last);
  return map.tree(last);
}

void Parameters::read_as_declared(const ParameterInfo& info) {
  switch (info.kind) {
    case ParameterKind::kNumber: number(info.name); break;
    case ParameterKind::kInteger: integer(info.name); break;
    case ParameterKind::kBoolean: boolean(info.name); break;
    case ParameterKind::kText:
    case ParameterKind::kReference: text(info.name); break;
    case ParameterKind::kChoice: choice(info.name); break;
    case ParameterKind::kDuration: duration_ms(info.name); break;
    case ParameterKind::kTree: tree(info.name); break;
  }
}

std::vector<Parameters::Reference> Parameters::finish() {
  std::vector<Reference> references;
  for (const ParameterInfo& info : info_.parameters) {
    if (std::find(read_.begin(), read_.end(), info.name) == read_.end()) read_as_declared(info);
    if (info.kind != ParameterKind::kReference || !has(info.name)) continue;
    std::string_view last;
    config::MapReader& map = map_of(info.name, &last);
    const std::string given = map.text(last, "", 0, config::kTextBytesMax);
    if (!given.empty()) references.push_back({map.path(last), given, map.place_of(last)});
  }
  root_.finish();
  for (auto& [path, map] : maps_) map.finish();
  return references;
}

}  // namespace pickd::pick
