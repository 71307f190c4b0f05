// check_kept: whether a file that is read again still names what it set before. One that was
// emptied or cut at a line's end is valid YAML, and defaults in place of what it said would be
// taken without a word.
#include "daemon/config/errors.hpp"
#include "daemon/config/load.hpp"

namespace pickd::config {
namespace {

struct Kept {
  const char* name;
  const char* nothing;  // as the value of a section that is to be without content
};
// Those that decide where clients and picks go; the others tune.
constexpr Kept kKept[] = {
    {"listen", "{}"}, {"state", "{}"}, {"endpoints", "[]"}, {"pools", "[]"}, {"scheduling", "{}"}};

std::string names_of_set(const FileSections& sections) {
  std::string names;
  for (const auto& [name, section] : sections) {
    if (section.holds) names += (names.empty() ? "`" : ", `") + name + "`";
  }
  return names;
}

}  // namespace

base::Result<void> check_kept(const FileSections& running, const Loaded& next) {
  if (next.path.empty()) return {};
  const Place file{std::make_shared<const std::string>(next.path), 0, 0};
  Errors errors;
  const std::string set = names_of_set(running);
  if (next.sections.empty() && !set.empty()) {
    errors.add(file, "",
               "holds nothing, while the configuration in force sets " + set +
                   "; write the file again, or restart pickd to have the defaults");
    return base::Error{-EINVAL, errors.text()};
  }
  for (const Kept& kept : kKept) {
    const auto before = running.find(kept.name);
    if (before == running.end() || !before->second.holds || next.sections.contains(kept.name))
      continue;
    errors.add(file, kept.name,
               "was set at " + before->second.place.text() + " and is missing; write `" +
                   kept.name + ": " + kept.nothing + "` to go back to the default");
  }
  if (errors.empty()) return {};
  return base::Error{-EINVAL, errors.text()};
}

}  // namespace pickd::config
