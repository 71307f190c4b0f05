#include "daemon/config/errors.hpp"

#include <algorithm>
#include <cstdio>

#include "daemon/base/printable.hpp"

namespace pickd::config {
namespace {

// Edits (insert, drop, replace, swap of neighbours) that turn one word into the other.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] =
          std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

// Case and the choice of - or _ are no difference that a person sees.
std::string folded(std::string_view word) {
  std::string out(word);
  for (char& letter : out) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    if (letter == '-') letter = '_';
  }
  return out;
}

}  // namespace

void Errors::add(const Place& place, std::string_view key, std::string_view what) {
  std::string line = place.text() + ": ";
  if (!key.empty()) line.append(key).append(": ");
  add(line.append(what));
}

void Errors::add(std::string line) {
  if (++count_ <= kErrorsShownMax) lines_.push_back(std::move(line));
}

std::string Errors::text() const {
  std::string out;
  for (const std::string& line : lines_) {
    if (!out.empty()) out += '\n';
    out += line;
  }
  if (count_ > lines_.size()) out += "\nand " + std::to_string(count_ - lines_.size()) + " more";
  return out;
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  if (word.size() > 100) return "";  // nobody's typo, and the comparison is quadratic
  std::string best;
  std::size_t best_edits = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t count = edits(folded(word), folded(candidate));
    if (count < best_edits) {
      best_edits = count;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  if (!near.empty()) return " (did you mean `" + near + "`?)";
  std::string list;
  constexpr std::size_t kListed = 16;
  for (std::size_t i = 0; i < known.size() && i < kListed; ++i)
    list += (i == 0 ? "" : ", ") + known[i];
  if (known.size() > kListed) list += ", ...";
  return known.empty() ? "" : "; known: " + list;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (!base::is_control(letter)) {
      out += letter;
      continue;
    }
    char code[8];
    std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned char>(letter));
    out += code;
  }
  return out;
}

std::string shown(std::string_view value) {
  constexpr std::size_t kShownBytes = 60;
  return "`" + escaped(value.substr(0, kShownBytes)) + (value.size() > kShownBytes ? "...`" : "`");
}

}  // namespace pickd::config
