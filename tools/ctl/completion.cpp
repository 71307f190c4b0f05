// pickctl completion: scripts for shells, made from the commands and options that there are, so
// that they cannot lag behind.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tools/ctl/commands.hpp"

namespace pickd::ctl {

namespace {

struct Flag {
  std::string name;  // "--json"
  std::string help;
  bool takes_value = false;
  bool takes_file = false;
};

struct Words {
  std::string path;  // " config diff"; empty: pickctl itself
  std::vector<std::pair<std::string, std::string>> commands;  // and their help
  std::vector<Flag> flags;
  bool endpoints = false;  // its arguments are names of endpoints
  bool files = false;      // its arguments are files
};

// Options of the group `of`, which CLI11 keeps as a nameless subcommand, belong to `words`.
void add_flags(const CLI::App& of, Words& words) {
  for (const CLI::Option* option : of.get_options()) {
    if (option->get_lnames().empty()) {
      const std::string& name = option->get_name(true);
      words.endpoints |= name == "NAME" && option->get_expected_max() > 1;
      words.files |= name == "FILE";
      continue;
    }
    const std::string name = "--" + option->get_lnames().front();
    const bool file = name == "--request" || name == "--socket" || name == "--output";
    words.flags.push_back({name, option->get_description(), option->get_expected_max() > 0, file});
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

// Within single quotes of a shell; the first sentence, or what stands before a semicolon.
std::string quoted(const std::string& text) {
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

constexpr char kNames[] = "pickctl endpoints --names 2>/dev/null";

void print_paths(const std::vector<Words>& all) {
  std::printf("    case \"$path $word\" in\n");
  for (const Words& words : all) {
    if (!words.path.empty())
      std::printf("      \"%s\") path=\"%s\" ;;\n", words.path.c_str(), words.path.c_str());
  }
  std::printf("    esac\n");
}

void print_bash(const std::vector<Words>& all) {
  std::printf(
      "# Completion of pickctl for bash; made by `pickctl completion bash`.\n"
      "# Names of endpoints and files are somebody's text: compared and quoted, never expanded.\n"
      "_pickctl_lines() {\n"
      "  local line\n"
      "  COMPREPLY=()\n"
      "  while IFS= read -r line; do\n"
      "    if [[ $line == \"$1\"* ]]; then COMPREPLY+=(\"$(printf '%%q' \"$line\")\"); fi\n"
      "  done\n"
      "}\n"
      "_pickctl() {\n"
      "  local word path= words= current=${COMP_WORDS[COMP_CWORD]}\n"
      "  local before=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n");
  print_paths(all);
  std::printf("  done\n  case \"$before\" in\n");
  std::string files;
  std::string values;
  for (const Words& words : all) {
    for (const Flag& flag : words.flags) {
      std::string& list = flag.takes_file ? files : values;
      const std::string entry = (list.empty() ? "" : "|") + flag.name;
      if (flag.takes_value && ("|" + list + "|").find("|" + flag.name + "|") == std::string::npos)
        list += entry;
    }
  }
  std::printf("    %s) _pickctl_lines \"$current\" < <(compgen -f -- \"$current\"); return ;;\n",
              files.c_str());
  std::printf("    %s) COMPREPLY=(); return ;;\n", values.c_str());
  std::printf("  esac\n  case \"$path\" in\n");
  for (const Words& words : all) {
    std::printf("    \"%s\") words=\"", words.path.c_str());
    for (const auto& [name, help] : words.commands) std::printf("%s ", name.c_str());
    for (const Flag& flag : words.flags) std::printf("%s ", flag.name.c_str());
    std::printf("\"");
    const char* lines = words.endpoints ? kNames : words.files ? "compgen -f -- \"$current\"" : "";
    if (*lines != '\0') {
      std::printf("; [[ $current == -* ]] || { _pickctl_lines \"$current\" < <(%s); return; }",
                  lines);
    }
    std::printf(" ;;\n");
  }
  std::printf(
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "}\n"
      "complete -F _pickctl pickctl\n");
}

void print_zsh(const std::vector<Words>& all) {
  std::printf(
      "#compdef pickctl\n"
      "# Completion of pickctl for zsh; made by `pickctl completion zsh`.\n"
      "_pickctl() {\n"
      "  local word path_=\n"
      "  local -a choices\n"
      "  for word in \"${words[@]:1:$((CURRENT-2))}\"; do\n");
  for (const Words& words : all) {
    if (!words.path.empty())
      std::printf("    [[ \"$path_ $word\" == \"%s\" ]] && path_=\"%s\"\n", words.path.c_str(),
                  words.path.c_str());
  }
  std::printf("  done\n  case \"$path_\" in\n");
  for (const Words& words : all) {
    std::printf("    \"%s\") choices=(", words.path.c_str());
    for (const auto& [name, help] : words.commands)
      std::printf(" '%s:%s'", name.c_str(), quoted(help).c_str());
    for (const Flag& flag : words.flags)
      std::printf(" '%s:%s'", flag.name.c_str(), quoted(flag.help).c_str());
    std::printf(")");
    if (words.endpoints) std::printf("; compadd -- ${(f)\"$(%s)\"}", kNames);
    if (words.files) std::printf("; _files");
    std::printf(" ;;\n");
  }
  std::printf(
      "  esac\n"
      "  _describe pickctl choices\n"
      "}\n"
      "[[ $funcstack[1] == _pickctl ]] && _pickctl \"$@\" || compdef _pickctl pickctl\n");
}

void print_fish(const std::vector<Words>& all) {
  std::printf("# Completion of pickctl for fish; made by `pickctl completion fish`.\n");
  for (const Words& words : all) {
    const std::string last = words.path.substr(words.path.find_last_of(' ') + 1);
    const std::string when =
        words.path.empty() ? "__fish_use_subcommand" : "__fish_seen_subcommand_from " + last;
    for (const auto& [name, help] : words.commands)
      std::printf("complete -c pickctl -f -n '%s' -a %s -d '%s'\n", when.c_str(), name.c_str(),
                  quoted(help).c_str());
    for (const Flag& flag : words.flags) {
      std::printf("complete -c pickctl %s-l %s%s -d '%s'\n",
                  words.path.empty() ? "" : ("-n '" + when + "' ").c_str(), flag.name.c_str() + 2,
                  flag.takes_value ? (flag.takes_file ? " -r -F" : " -x") : "",
                  quoted(flag.help).c_str());
    }
    if (words.endpoints)
      std::printf("complete -c pickctl -f -n '%s' -a '(%s)'\n", when.c_str(), kNames);
  }
}

}  // namespace

Run make_completion(CLI::App& app, const Common& common) {
  (void)common;
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [shell, &app] {
    std::vector<Words> all;
    collect(*app.get_parent(), "", all);
    if (*shell == "bash") print_bash(all);
    if (*shell == "zsh") print_zsh(all);
    if (*shell == "fish") print_fish(all);
    return 0;
  };
}

}  // namespace pickd::ctl
