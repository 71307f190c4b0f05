// pickctl config show, config diff: what the daemon runs with, and how a file differs from it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "daemon/config/load.hpp"
#include "daemon/config/settings.hpp"
#include "tools/common/child.hpp"
#include "tools/common/control_client.hpp"
#include "tools/ctl/commands.hpp"
#include "tools/ctl/daemon_view.hpp"

namespace pickd::ctl {

namespace {

struct Difference {
  std::string key;
  std::string running;  // as one would write it
  std::string file;
  bool reload = false;  // taken as soon as the file is; else at the next start
};

config::Loaded load(const std::string& path) {
  auto loaded = config::load_config(path, {});
  if (!loaded) throw std::runtime_error(loaded.error().text);
  return std::move(*loaded);
}

// The daemon's own text, as a configuration.
config::Loaded load_text(const std::string& text) {
  auto directory = tools::TempDir::make("pickctl-config");
  if (!directory) throw std::runtime_error(directory.error().text);
  const std::string path = directory->path() + "/running.yaml";
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) throw std::runtime_error(path + ": cannot be written");
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) throw std::runtime_error(path + ": cannot be written");
  return load(path);
}

// A text in which the places of things do not count.
std::string without_comments(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t at = line.find("  # "); at != std::string::npos) line.resize(at);
    if (!line.empty()) out += line + "\n";
  }
  return out;
}

// Whether a printed line is a single setting's, which is compared by itself.
bool is_setting(const std::string& section, const std::string& line) {
  const auto& settings = config::settings();
  return std::any_of(settings.begin(), settings.end(), [&](const config::Setting& setting) {
    return setting.section() == section && line.starts_with("  " + setting.name() + ":");
  });
}

// What of `loaded` is no single setting, by the section's name: it is compared as a whole.
std::string part_of(const config::Loaded& loaded, const std::string& name) {
  std::istringstream lines(without_comments(config::print_config(loaded)));
  std::string out;
  bool within = false;
  for (std::string line; std::getline(lines, line);) {
    if (line[0] != ' ') within = line.starts_with(name + ":");
    if (within && !is_setting(name, line)) out += line + "\n";
  }
  return out;
}

// Of the running daemon: whether somebody set it, by the comment behind it.
bool is_default(const std::string& running_text, const config::Setting& setting) {
  std::istringstream lines(running_text);
  bool within = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != ' ') within = line.starts_with(setting.section() + ":");
    if (!within) continue;
    const bool named = line.starts_with("  " + setting.name() + ":") ||
                       line.starts_with("  # " + setting.name() + ":");
    if (named) return line.ends_with("# default");
  }
  return false;
}

std::vector<Difference> compare(const ConfigView& view, const config::Loaded& file) {
  config::Loaded running = load_text(view.text);
  config::Config running_values = running.config;
  config::Config file_values = file.config;
  std::vector<Difference> differences;
  for (const config::Setting& setting : config::settings()) {
    // A default may depend on the machine: two defaults are no difference.
    if (!file.origins.contains(setting.key) && is_default(view.text, setting)) continue;
    const std::string now = config::print_setting(setting, running_values);
    const std::string then = config::print_setting(setting, file_values);
    if (now != then)
      differences.push_back({setting.key, now, then, setting.section() == "scheduling"});
  }
  for (const char* name : {"scheduling", "scrape", "endpoints", "pools"}) {
    const std::string now = part_of(running, name);
    const std::string then = part_of(file, name);
    if (now != then) differences.push_back({name, now, then, std::string(name) == "scheduling"});
  }
  return differences;
}

void print(const Difference& difference) {
  const char* when = difference.reload ? "taken by a reload" : "needs a restart";
  const bool block = difference.running.find('\n') != std::string::npos ||
                     difference.file.find('\n') != std::string::npos;
  if (!block) {
    std::printf("%s: %s -> %s  (%s)\n", difference.key.c_str(), difference.running.c_str(),
                difference.file.c_str(), when);
    return;
  }
  std::printf("%s: (%s)\n", difference.key.c_str(), when);
  const auto lines_of = [](const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  };
  const std::vector<std::string> now = lines_of(difference.running);
  const std::vector<std::string> then = lines_of(difference.file);
  for (const std::string& line : now) {
    if (std::find(then.begin(), then.end(), line) == then.end())
      std::printf("- %s\n", line.c_str());
  }
  for (const std::string& line : then) {
    if (std::find(now.begin(), now.end(), line) == now.end()) std::printf("+ %s\n", line.c_str());
  }
}

int show(const Common& common) {
  tools::ControlClient control(common.socket, "pickctl");
  const ConfigView view = ask_config(control);
  if (common.json) {
    const nlohmann::ordered_json out = {{"path", view.path}, {"text", view.text}};
    std::printf("%s\n", out.dump(2).c_str());
  } else {
    std::fputs(view.text.c_str(), stdout);
  }
  return 0;
}

int diff(const Common& common, const std::string& named) {
  tools::ControlClient control(common.socket, "pickctl");
  const ConfigView view = ask_config(control);
  const std::string path = named.empty() ? view.path : named;
  if (path.empty())
    throw std::runtime_error("the daemon runs without a configuration file: name one to compare");
  const std::vector<Difference> differences = compare(view, load(path));
  if (common.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Difference& difference : differences) {
      list.push_back({{"key", difference.key},
                      {"running", difference.running},
                      {"file", difference.file},
                      {"taken_by", difference.reload ? "reload" : "restart"}});
    }
    std::printf("%s\n",
                nlohmann::ordered_json{{"path", path}, {"differences", list}}.dump(2).c_str());
  } else if (differences.empty()) {
    std::printf("%s: the daemon runs with this\n", path.c_str());
  } else {
    for (const Difference& difference : differences) print(difference);
  }
  return differences.empty() ? 0 : kExitFound;
}

}  // namespace

Run make_config(CLI::App& app, const Common& common) {
  struct Which {
    CLI::App* diff = nullptr;
    std::string path;
  };
  auto which = std::make_shared<Which>();
  app.require_subcommand(1);
  app.fallthrough();
  app.add_subcommand("show", "What the daemon runs with, and where each value was set");
  which->diff = app.add_subcommand(
      "diff", "How a file differs from what the daemon runs with; exit code 3 when it does");
  which->diff->add_option("FILE", which->path, "Default: the file the daemon was started with");
  return
      [which, &common] { return which->diff->parsed() ? diff(common, which->path) : show(common); };
}

}  // namespace pickd::ctl
