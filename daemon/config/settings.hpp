// Settings: the table of every setting that is one value or a plain list of numbers.
//
// One line a setting. Parsing, the environment, defaults, --print-config and docs/configuration.md
// all come from it: a new setting is a member in config.hpp and a line in settings.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "daemon/config/config.hpp"
#include "daemon/config/errors.hpp"
#include "daemon/config/values.hpp"

namespace pickd::config {

enum class Kind : std::uint8_t {
  kText,
  kPath,  // absolute
  kFile,  // absolute, or relative to the configuration file
  kMode,  // octal
  kInteger,
  kPowerOfTwo,    // an integer, rounded up
  kMicroseconds,  // a duration with its unit
  kMilliseconds,
  kBoolean,
  kLogLevel,
  kReactor,
  kIntegers,          // a list
  kOptionalIntegers,  // a list whose absence is not the empty list
};

using Integers = std::vector<std::uint32_t>;
using Field =
    std::variant<std::uint64_t& (*)(Config&), std::string& (*)(Config&), bool& (*)(Config&),
                 Integers& (*)(Config&), std::optional<Integers>& (*)(Config&)>;

struct Setting {
  std::string key;  // "section.name", or a name at the top
  Field field;
  Kind kind;
  std::string absent;  // the default, as one would write it; for lists: in words
  Range
      // of the number, of each list item, of the bytes of text; durations in the field's unit
      range;
  std::string unit;  // for people
  std::string help;  // one sentence or two

  std::string section() const;
  std::string name() const;        // the last part of the key
  std::string range_text() const;  // "8 to 1048576 MiB"
  bool is_list() const { return kind == Kind::kIntegers || kind == Kind::kOptionalIntegers; }
};

struct Section {
  std::string name;
  std::string help;
};

const std::vector<Setting>& settings();  // in the order of printing
const std::vector<Section>& sections();
const Setting* find_setting(std::string_view key);
std::string environment_name(std::string_view key);  // "state.size_mib" -> "PICKD_STATE_SIZE_MIB"

// Sets one setting from text, by the rules of its kind; an error says what would be right.
base::Result<void> set_from_text(const Setting& setting, std::string_view text, Config& config);
// The same from a value of the file, lists too.
void set_from_node(const Setting& setting, const Node& node, Config& config, Errors& errors);
// As one would write it in the file. Changes nothing; the table has only accessors that could.
std::string print_setting(const Setting& setting, Config& config);

}  // namespace pickd::config
