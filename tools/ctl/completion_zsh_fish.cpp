// Completion of pickctl for zsh and for fish. Both quote what they put on the line themselves, and
// neither expands it, as long as it comes as a list and not as text of a script.
#include <cstdio>

#include "tools/ctl/completion_words.hpp"

namespace pickd::ctl {

namespace {

void print_zsh_values(const Values& values) {
  switch (values.kind) {
    case Values::Kind::kFiles: std::printf("_files"); return;
    case Values::Kind::kWords:
      std::printf("compadd --");
      for (const std::string& word : values.words) std::printf(" %s", word.c_str());
      return;
    case Values::Kind::kEndpoints:
    case Values::Kind::kPools: std::printf("_pickctl_ask %s", list_of(values.kind)); return;
    case Values::Kind::kNone:
    case Values::Kind::kAny: std::printf(":"); return;
  }
}

std::string fish_values(const Values& values) {
  switch (values.kind) {
    case Values::Kind::kFiles: return " -r -F";
    case Values::Kind::kWords: {
      std::string list;
      for (const std::string& word : values.words) list += (list.empty() ? "" : " ") + word;
      return " -x -a '" + list + "'";
    }
    case Values::Kind::kEndpoints:
    case Values::Kind::kPools:
      return std::string(" -x -a '(__pickctl_ask ") + list_of(values.kind) + ")'";
    case Values::Kind::kAny: return " -x";
    case Values::Kind::kNone: break;
  }
  return "";
}

}  // namespace

void print_zsh(const std::vector<Words>& all) {
  std::printf(R"sh(#compdef pickctl
# Completion of pickctl for zsh; made by `pickctl completion zsh`.
_pickctl_ask() {
  local -a socket names
  local at=${words[(I)--socket]}
  (( at > 0 && at + 1 < CURRENT )) && socket=(--socket "${(Q)words[at+1]}")
  at=${words[(I)--socket=*]}
  (( at > 0 )) && socket=(--socket "${(Q)words[at]#--socket=}")
  names=("${(@f)$(pickctl $socket endpoints $1 2>/dev/null </dev/null)}")
  compadd -- ${names:#*[[:cntrl:]]*}
}
_pickctl() {
  local word path_=
  local -a choices
  for word in "${words[@]:1:$((CURRENT-2))}"; do
)sh");
  for (const Words& words : all) {
    if (!words.path.empty())
      std::printf("    [[ \"$path_ $word\" == \"%s\" ]] && path_=\"%s\"\n", words.path.c_str(),
                  words.path.c_str());
  }
  std::printf("  done\n  case \"$path_ ${words[CURRENT-1]}\" in\n");
  for (const Words& words : all) {
    for (const Flag& flag : words.flags) {
      if (flag.values.kind == Values::Kind::kNone) continue;
      std::printf("    \"%s %s\") ", words.path.c_str(), flag.name.c_str());
      print_zsh_values(flag.values);
      std::printf("; return ;;\n");
    }
  }
  std::printf("  esac\n  case \"$path_\" in\n");
  for (const Words& words : all) {
    std::printf("    \"%s\") choices=(", words.path.c_str());
    for (const auto& [name, help] : words.commands)
      std::printf(" '%s:%s'", name.c_str(), quoted_for_shell(help).c_str());
    for (const Flag& flag : words.flags)
      std::printf(" '%s:%s'", flag.name.c_str(), quoted_for_shell(flag.help).c_str());
    std::printf("); ");
    print_zsh_values(words.arguments);
    std::printf(" ;;\n");
  }
  std::printf(
      "  esac\n"
      "  _describe pickctl choices\n"
      "}\n"
      "[[ $funcstack[1] == _pickctl ]] && _pickctl \"$@\" || compdef _pickctl pickctl\n");
}

void print_fish(const std::vector<Words>& all) {
  std::printf(R"sh(# Completion of pickctl for fish; made by `pickctl completion fish`.
function __pickctl_ask
  set -l socket
  set -l before
  for word in (commandline -opc)
    test "$before" = --socket; and set socket --socket $word
    string match -q -- '--socket=*' $word; and set socket $word
    set before $word
  end
  pickctl $socket endpoints $argv[1] 2>/dev/null </dev/null
end
)sh");
  for (const Words& words : all) {
    const std::string last = words.path.substr(words.path.find_last_of(' ') + 1);
    const std::string when =
        words.path.empty() ? "__fish_use_subcommand" : "__fish_seen_subcommand_from " + last;
    for (const auto& [name, help] : words.commands)
      std::printf("complete -c pickctl -f -n '%s' -a %s -d '%s'\n", when.c_str(), name.c_str(),
                  quoted_for_shell(help).c_str());
    for (const Flag& flag : words.flags) {
      std::printf("complete -c pickctl %s-l %s%s -d '%s'\n",
                  words.path.empty() ? "" : ("-n '" + when + "' ").c_str(), flag.name.c_str() + 2,
                  fish_values(flag.values).c_str(), quoted_for_shell(flag.help).c_str());
    }
    if (words.arguments.kind == Values::Kind::kNone) continue;
    std::printf("complete -c pickctl -n '%s'%s\n", when.c_str(),
                words.arguments.kind == Values::Kind::kAny
                    ? " -f"
                    : (words.arguments.kind == Values::Kind::kFiles
                           ? " -F"
                           : " -f" + fish_values(words.arguments).substr(3))
                          .c_str());
  }
}

}  // namespace pickd::ctl
