// What a shell may complete on a line of pickctl, collected from the commands and options that
// there are, so that it cannot lag behind. Knows no shell.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace pickd::ctl {

// What may stand at a place of the line.
struct Values {
  enum class Kind { kNone, kAny, kFiles, kEndpoints, kPools, kWords };
  Kind kind = Kind::kNone;
  std::vector<std::string> words;  // of kWords
  bool operator==(const Values&) const = default;
};

struct Flag {
  std::string name;  // "--json"
  std::string help;
  Values values;  // kNone: it takes none
};

struct Words {
  std::string path;  // " config diff"; empty: pickctl itself
  std::vector<std::pair<std::string, std::string>> commands;  // and their help
  std::vector<Flag> flags;
  Values arguments;
};

// pickctl itself first, then its commands.
std::vector<Words> completion_words(const CLI::App& app);

// Scripts on standard output. What a daemon tells is data to them: no shell may expand it.
void print_bash(const std::vector<Words>& all);
void print_zsh(const std::vector<Words>& all);
void print_fish(const std::vector<Words>& all);

// Within single quotes of a shell: the first sentence, or what stands before a semicolon.
std::string quoted_for_shell(const std::string& text);

// The command of pickctl that lists what `kind` stands for; nullptr: it is not asked for.
const char* list_of(Values::Kind kind);

}  // namespace pickd::ctl
