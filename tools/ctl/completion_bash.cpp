// Completion of pickctl for bash.
//
// bash expands what `compgen -W` is given and what stands unquoted in an array: `$(...)` in the
// name of an endpoint would run as whoever pressed TAB. So words are read line by line, compared,
// and quoted before they come on the line.
#include <cstdio>
#include <map>

#include "tools/ctl/completion_words.hpp"

namespace pickd::ctl {

namespace {

// Words that the line may hold are taken as they were typed, split at blanks alone: readline's own
// words end at ':' and '@' too, which stand in names and addresses.
constexpr char kBegin[] = R"sh(# Completion of pickctl for bash; made by `pickctl completion bash`.
_pickctl_ask() {
  if [[ -n $socket ]]; then
    pickctl --socket "$socket" endpoints "$1" 2>/dev/null </dev/null
  else
    pickctl endpoints "$1" 2>/dev/null </dev/null
  fi
}
# Offers the lines of its input that begin as the word under the cursor does.
_pickctl_offer() {
  local word quoted before= at
  for ((at = ${#current} - 1; at >= 0; --at)); do
    if [[ $COMP_WORDBREAKS == *"${current:at:1}"* && ${current:at:1} == [:=@] ]]; then
      before=${current:0:at+1}
      break
    fi
  done
  while IFS= read -r word; do
    [[ -z $word || $word == *[[:cntrl:]]* ]] && continue
    printf -v quoted %q "$word"
    [[ $quoted == "$current"* ]] && COMPREPLY+=("${quoted#"$before"}")
  done
}
_pickctl_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$current")
}
_pickctl() {
  local word path= socket= current= before= typed at
  COMPREPLY=()
  read -ra typed <<< "${COMP_LINE:0:COMP_POINT}"
  if [[ ${COMP_LINE:0:COMP_POINT} != *[[:blank:]] ]]; then
    current=${typed[-1]}
    unset "typed[-1]"
  fi
  for ((at = 1; at < ${#typed[@]}; ++at)); do
    before=${typed[at]}
    [[ ${typed[at]} == --socket=* ]] && socket=${typed[at]#--socket=}
    [[ ${typed[at-1]} == --socket ]] && socket=${typed[at]}
)sh";

void print_values(const Values& values) {
  switch (values.kind) {
    case Values::Kind::kFiles: std::printf("_pickctl_files"); return;
    case Values::Kind::kWords:
      std::printf("_pickctl_offer < <(printf '%%s\\n'");
      for (const std::string& word : values.words) std::printf(" %s", word.c_str());
      std::printf(")");
      return;
    case Values::Kind::kEndpoints:
    case Values::Kind::kPools:
      std::printf("_pickctl_offer < <(_pickctl_ask %s)", list_of(values.kind));
      return;
    case Values::Kind::kNone:
    case Values::Kind::kAny: std::printf(":"); return;
  }
}

void print_paths(const std::vector<Words>& all) {
  std::printf("    case \"$path ${typed[at]}\" in\n");
  for (const Words& words : all) {
    if (!words.path.empty())
      std::printf("      \"%s\") path=\"%s\" ;;\n", words.path.c_str(), words.path.c_str());
  }
  std::printf("    esac\n  done\n");
}

// What the word before the cursor asks for: an option means the same wherever it stands.
void print_options(const std::vector<Words>& all) {
  std::map<std::string, Values> options;
  for (const Words& words : all) {
    for (const Flag& flag : words.flags) {
      if (flag.values.kind != Values::Kind::kNone) options[flag.name] = flag.values;
    }
  }
  std::printf("  case \"$before\" in\n");
  for (const auto& [name, values] : options) {
    std::printf("    %s) ", name.c_str());
    print_values(values);
    std::printf("; return ;;\n");
  }
  std::printf("  esac\n");
}

}  // namespace

void print_bash(const std::vector<Words>& all) {
  std::printf("%s", kBegin);
  print_paths(all);
  print_options(all);
  std::printf("  case \"$path\" in\n");
  for (const Words& words : all) {
    std::printf(
        "    \"%s\")\n      if [[ $current == -* ]]; then _pickctl_offer < <(printf '%%s\\n'",
        words.path.c_str());
    for (const Flag& flag : words.flags) std::printf(" %s", flag.name.c_str());
    std::printf(")\n      else ");
    if (words.commands.empty()) {
      print_values(words.arguments);
    } else {
      Values commands{Values::Kind::kWords, {}};
      for (const auto& [name, help] : words.commands) commands.words.push_back(name);
      print_values(commands);
    }
    std::printf("; fi ;;\n");
  }
  std::printf("  esac\n}\ncomplete -F _pickctl pickctl\n");
}

}  // namespace pickd::ctl
