#include "daemon/pick/manual.hpp"

#include "daemon/config/values.hpp"
#include "daemon/pick/builtin_profiles.hpp"
#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

namespace {

constexpr const char* kIntroduction = R"(# Plugins

<!-- Made from the registry in daemon/pick; change a plugin's description and run ./dev manual. -->

A profile is a list of plugins: filters drop candidates, in order; scorers give each that is left a
score of 0 to 1, which is multiplied with the scorer's weight (any finite number, 1 where it is left
out) and added up (weights whose magnitudes sum to more than 3.4e38 are divided by a common power of
two first, here and in what `explain` shows); the picker orders the candidates by their sums. A
score that is no number leaves its scorer out of that pick and is counted
(`pickd_plugin_failures_total`). A candidate that a scorer does not know keeps its sum. When the
filters leave nobody the pick is shed (-EBUSY).

Profile handlers, deciders, saturation detectors and data sources stand under `plugins` and not in a
profile (a detector may stand there too, as a filter). Requests of negative priority are shed while
the detector says that the pool is saturated; `saturationDetector: {pluginRef: NAME}` chooses it,
and `utilization-detector` is the default.

"Taken" parameters are those of Endpoint Picker files that have nothing to set here.
)";

std::string code(std::string_view text) { return "`" + std::string(text) + "`"; }

std::string words(ColumnSet columns) {
  std::string out;
  for (std::uint32_t at = 0; at < kColumns; ++at) {
    if ((columns >> at & 1) != 0)
      out += (out.empty() ? "" : ", ") + std::string(column_name(static_cast<Column>(at)));
  }
  return out;
}

std::string choices(std::string_view choices) {
  std::string out;
  for (std::size_t at = 0; at <= choices.size();) {
    const std::size_t end = std::min(choices.find('|', at), choices.size());
    out += (out.empty() ? "" : ", ") + std::string(choices.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string duration(double ms) {
  return config::format_duration(static_cast<std::uint64_t>(ms) * 1'000'000);
}

std::string range(const ParameterInfo& info) {
  switch (info.kind) {
    case ParameterKind::kNumber:
      return config::format_number(info.low) + " to " + config::format_number(info.high);
    case ParameterKind::kInteger:
      return std::to_string(static_cast<std::uint64_t>(info.low)) + " to " +
             std::to_string(static_cast<std::uint64_t>(info.high));
    case ParameterKind::kBoolean: return "true, false";
    case ParameterKind::kText: return "text";
    case ParameterKind::kChoice: return choices(info.choices);
    case ParameterKind::kDuration: return duration(info.low) + " to " + duration(info.high);
    case ParameterKind::kReference: return "name of a plugin";
    case ParameterKind::kTree: return "list or map";
  }
  return "";
}

std::string row(const ParameterInfo& info) {
  const std::string absent = info.required         ? "required"
                             : info.absent.empty() ? "none"
                                                   : code(info.absent);
  return "| " + code(info.name) + " | " + range(info) + " | " + absent + " | " +
         std::string(info.help) + " |\n";
}

std::string section(const PluginInfo& info) {
  std::string out = "\n### " + std::string(info.type) + "\n\n" + std::string(info.summary) + "\n";
  if (!info.formula.empty()) out += "\n    " + std::string(info.formula) + "\n";
  if (const std::string read = words(info.columns); !read.empty())
    out += "\nReads: " + read + ".\n";
  if (!info.parameters.empty()) {
    out += "\n| parameter | range | default | meaning |\n|---|---|---|---|\n";
    for (const ParameterInfo& parameter : info.parameters) out += row(parameter);
  }
  return out;
}

}  // namespace

std::string plugins_manual() {
  std::string out = kIntroduction;
  out += "\n## Profiles by name\n\n`scheduling.profile`, or `pickd --profile`.\n\n";
  out += "| profile | what it does |\n|---|---|\n";
  for (const BuiltinProfile& profile : builtin_profiles())
    out += "| " + code(profile.name) + " | " + std::string(profile.summary) + " |\n";
  constexpr std::pair<PluginKind, const char*> kSections[] = {
      {PluginKind::kScorer, "Scorers"},     {PluginKind::kFilter, "Filters"},
      {PluginKind::kPicker, "Pickers"},     {PluginKind::kHandler, "Profile handlers"},
      {PluginKind::kDecider, "Deciders"},   {PluginKind::kDetector, "Saturation detectors"},
      {PluginKind::kAdmitter, "Admitters"}, {PluginKind::kSource, "Data sources"},
  };
  for (const auto& [kind, title] : kSections) {
    out += "\n## " + std::string(title) + "\n";
    for (const PluginInfo& info : plugin_infos()) {
      if (info.kind == kind) out += section(info);
    }
  }
  return out;
}

}  // namespace pickd::pick
