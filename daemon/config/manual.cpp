// configuration_manual: docs/configuration.md out of the tables, so that it cannot say anything
// else than the code does.
#include "daemon/config/load.hpp"
#include "daemon/config/sections.hpp"
#include "daemon/config/settings.hpp"

namespace pickd::config {
namespace {

constexpr const char* kIntroduction = R"(# Configuration

<!-- Made from the tables in daemon/config; change them and run ./dev manual. -->

`pickd --config FILE` reads one YAML file; without it, the file that `PICKD_CONFIG` names; without
that, the defaults below hold. `pickd --check-config FILE` says all that is wrong with a file, and
`pickd --print-config` shows the configuration in force and where each value came from.

The file is strict: an unknown key, a key that stands twice, a wrong type, a number out of range and
a reference to nothing are refused, each with file, line, key and what would be right; the exit code
is 2. A file has at most 1 MiB; anchors and aliases may be used, merge keys (`<<`) and tags may not.

Every setting with a single value can also be set from the environment, which wins over the file. A
variable that starts with `PICKD_` and is no setting is refused. `PICKD_SOCKET` is another name of
`PICKD_LISTEN_SOCKET`; clients use it too. Lists are set in the file only.

A duration has its unit: `500us`, `500ms`, `45s`, `30min` (or `30m`), `1h`, `1h30min`.
)";

constexpr const char* kEndpointsText = R"(
## endpoints

The static endpoints, a list. Others may be added while the daemon runs.

)";

constexpr const char* kPoolsText = R"(
## pools

Another way to write endpoints: a list of pools with their endpoints, which get the pool's name and,
where they list no models themselves, its models. Endpoints that are found while the daemon runs
come from its `discovery`; [discovery.md](discovery.md) has an example of each source.

)";

constexpr const char* kRanksText = R"(
`ranks`, for its endpoints here and for those that are found:

)";

constexpr const char* kDiscoveryText = R"(
`discovery`, with one of the first three keys:

)";

constexpr const char* kDnsText = R"(
`dns`:

)";

constexpr const char* kKubernetesText = R"(
`kubernetes`, with one of the first two keys:

)";

constexpr const char* kEnginesText = R"(
`scrape.engines` is a list of engines whose metrics have other names than the built-in ones. A
metric is a name, with the labels that a series must carry where it needs some:
`name{label="value"}`.

)";

constexpr const char* kSchedulingText = R"(
The section may instead hold an `EndpointPickerConfig`, or name a file with one; and such a file may
be given to `--config` or `--check-config` as it is: all other sections then have their defaults.
`scheduling.profile`, `schedulingConfigFile` and `plugins` exclude each other; with none of them the
default policy holds. Set in the environment, one of the first two replaces what the file says.
[plugins.md](plugins.md) has the plugins and the profiles by name, and
[scheduling.schema.json](scheduling.schema.json) is a JSON schema for editors and pipelines.

The scheduling is read again when its files change, and on SIGHUP: picks that begin afterwards go by
it, and no pick waits. What is wrong is logged and counted (`pickd_config_reload_failures_total`),
and the configuration before stays in force. Changes of other sections need a restart.

A file that was emptied or cut is no wish for defaults: one that holds nothing any more, or no
longer names `listen`, `state`, `endpoints`, `pools` or `scheduling` which it set before, is refused
in the same way. To go back to the default scheduling write `scheduling: {}`; for the other sections
`{}` (of the two lists `[]`), or restart. `pickd --check-config` takes a file that holds nothing,
and says that all defaults apply.

)";

constexpr const char* kExample = R"(
## Example

```yaml
state:
  size_mib: 512
  ttl: 1h

pools:
  - name: chat
    models: [llama-3-8b]
    endpoints:
      - {name: gpu-0, address: "10.0.0.1:8000"}
      - {name: gpu-1, address: "10.0.0.2:8000", labels: {zone: a}}

scheduling:
  plugins:
    - type: prefix-cache-scorer
    - type: active-request-scorer
  schedulingProfiles:
    - name: default
      plugins:
        - {pluginRef: prefix-cache-scorer, weight: 3}
        - {pluginRef: active-request-scorer, weight: 2}
```
)";

std::string code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

std::string setting_row(const Setting& setting) {
  const std::string variable =
      setting.is_list() ? "only in the file" : code(environment_name(setting.key));
  const std::string absent = setting.is_list()        ? setting.absent
                             : setting.absent.empty() ? "empty"
                                                      : code(setting.absent);
  return "| " + code(setting.key) + " | " + variable + " | " + setting.range_text() + " | " +
         absent + " | " + setting.help + " |\n";
}

std::string item_table(const std::vector<ItemKey>& keys) {
  std::string out = "| key | range | default | meaning |\n|---|---|---|---|\n";
  for (const ItemKey& key : keys) {
    out +=
        "| " + code(key.name) + " | " + key.range + " | " + key.absent + " | " + key.help + " |\n";
  }
  return out;
}

}  // namespace

std::string configuration_manual() {
  std::string out = kIntroduction;
  for (const Section& section : sections()) {
    out += "\n## " + section.name + "\n\n" + section.help +
           "\n\n| setting | environment | range | default | meaning |\n|---|---|---|---|---|\n";
    const bool scheduling = section.name == "scheduling";
    for (const Setting& setting : settings()) {
      if (setting.section() == section.name || (scheduling && setting.section().empty()))
        out += setting_row(setting);
    }
    if (section.name == "scrape") out += kEnginesText + item_table(engine_keys());
    if (scheduling) out += kSchedulingText + item_table(scheduling_keys());
  }
  out += kEndpointsText + item_table(endpoint_keys());
  out += kPoolsText + item_table(pool_keys());
  out += kRanksText + item_table(ranks_keys());
  out += kDiscoveryText + item_table(discovery_keys());
  out += kDnsText + item_table(dns_keys());
  out += kKubernetesText + item_table(kubernetes_keys());
  return out + kExample;
}

}  // namespace pickd::config
