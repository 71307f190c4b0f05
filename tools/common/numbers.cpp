#include "tools/common/numbers.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

namespace pickd::tools {

namespace {

// Empty when `text` is such a number; otherwise what would be right.
std::string mistake(const std::string& text) {
  const bool hexadecimal = text.rfind("0x", 0) == 0 || text.rfind("0X", 0) == 0;
  const char* begin = text.data() + (hexadecimal ? 2 : 0);
  const char* end = text.data() + text.size();
  std::uint64_t number = 0;
  const auto [read_to, error] = std::from_chars(begin, end, number, hexadecimal ? 16 : 10);
  const bool octal = !hexadecimal && text.size() > 1 && text[0] == '0';
  if (error == std::errc() && read_to == end && !octal) return "";
  return "must be a whole number from 0 to 18446744073709551615, is " + text;
}

// A range does not refuse what is neither below nor above it.
std::string not_a_number(const std::string& text) {
  double number = 0;
  if (!CLI::detail::lexical_cast(text, number) || !std::isnan(number)) return "";
  return "must be a number, is " + text;
}

}  // namespace

void read_numbers_strictly(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type.rfind("UINT", 0) == 0) option->check(CLI::Validator(mistake, ""));
    if (type.rfind("FLOAT", 0) == 0) option->check(CLI::Validator(not_a_number, ""));
  }
  for (CLI::App* subcommand : app.get_subcommands([](CLI::App*) { return true; }))
    read_numbers_strictly(*subcommand);
}

}  // namespace pickd::tools
