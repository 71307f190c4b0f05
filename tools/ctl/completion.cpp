// pickctl completion: scripts for shells, and what they are made of.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tools/ctl/commands.hpp"
#include "tools/ctl/completion_words.hpp"

namespace pickd::ctl {

namespace {

// "TEXT:{bash,fish,zsh}" of an option whose values are a list.
std::vector<std::string> words_of_type(const std::string& type) {
  std::vector<std::string> words;
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return words;
  for (std::size_t at = begin + 1; at < end;) {
    const std::size_t comma = std::min(type.find(',', at), end);
    words.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

Values values_of(const CLI::Option& option, const std::string& name) {
  using Kind = Values::Kind;
  if (option.get_expected_max() == 0) return {Kind::kNone, {}};
  if (auto words = words_of_type(option.get_type_name()); !words.empty())
    return {Kind::kWords, std::move(words)};
  for (const char* file : {"--request", "--socket", "--output", "FILE", "TRACE"}) {
    if (name == file) return {Kind::kFiles, {}};
  }
  if (name == "NAME" && option.get_expected_max() > 1) return {Kind::kEndpoints, {}};
  if (name == "--pool") return {Kind::kPools, {}};
  return {Kind::kAny, {}};
}

// Options of the group `of`, which CLI11 keeps as a nameless subcommand, belong to `words`.
void add_flags(const CLI::App& of, Words& words) {
  for (const CLI::Option* option : of.get_options()) {
    if (option->get_lnames().empty()) {
      words.arguments = values_of(*option, option->get_name(true));
      continue;
    }
    const std::string name = "--" + option->get_lnames().front();
    const bool known = std::any_of(words.flags.begin(), words.flags.end(),
                                   [&](const Flag& flag) { return flag.name == name; });
    if (!known) words.flags.push_back({name, option->get_description(), values_of(*option, name)});
  }
}

void collect(const CLI::App& app, const std::string& path, std::vector<Words>& all) {
  Words words;
  words.path = path;
  add_flags(app, words);
  std::vector<const CLI::App*> below;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name().empty()) {
      add_flags(*command, words);
    } else {
      words.commands.emplace_back(command->get_name(), command->get_description());
      below.push_back(command);
    }
  }
  all.push_back(words);
  for (const CLI::App* command : below) collect(*command, path + " " + command->get_name(), all);
}

}  // namespace

std::vector<Words> completion_words(const CLI::App& app) {
  std::vector<Words> all;
  collect(app, "", all);
  return all;
}

std::string quoted_for_shell(const std::string& text) {
  std::string out;
  for (const char letter : text.substr(0, text.find_first_of(";\n"))) {
    if (letter == '\'') {
      out += "'\\''";
    } else {
      out += letter;
    }
  }
  return out;
}

const char* list_of(Values::Kind kind) {
  if (kind == Values::Kind::kEndpoints) return "--names";
  if (kind == Values::Kind::kPools) return "--pools";
  return nullptr;
}

Run make_completion(CLI::App& app, const Common& common) {
  (void)common;
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [shell, &app] {
    const std::vector<Words> all = completion_words(*app.get_parent());
    if (*shell == "bash") print_bash(all);
    if (*shell == "zsh") print_zsh(all);
    if (*shell == "fish") print_fish(all);
    return 0;
  };
}

}  // namespace pickd::ctl
