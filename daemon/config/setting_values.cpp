// How one setting of the table is read from text or a tree, and written back, by its kind.
#include <algorithm>
#include <bit>
#include <iterator>

#include "daemon/config/settings.hpp"

namespace pickd::config {
namespace {

constexpr std::uint64_t kMicrosecondNs = 1000;
constexpr std::uint64_t kMillisecondNs = 1'000'000;
constexpr std::size_t kIntegersMax = 1024;

template <typename T>
T& member(const Setting& setting, Config& config) {
  return std::get<T& (*)(Config&)>(setting.field)(config);
}

// What a setting of a kind that is one of a few words may be; nullptr for any other kind.
const char* words_of(Kind kind) {
  switch (kind) {
    case Kind::kLogLevel: return "trace, debug, info, warn, error";
    case Kind::kReactor: return "auto, io_uring, epoll";
    default: return nullptr;
  }
}

bool is_one_of(std::string_view words, std::string_view text) {
  constexpr std::string_view kBetween = ", ";
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(kBetween));
    if (word == text) return true;
    words.remove_prefix(std::min(words.size(), word.size() + kBetween.size()));
  }
  return false;
}

bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char letter) {
    return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F;
  });
}

base::Error must(const std::string& what, std::string_view text) {
  return {-EINVAL, "must " + what + ", is " + (text.empty() ? "empty" : shown(text))};
}

base::Result<std::string> parse_text(const Setting& setting, std::string_view text) {
  if (text.size() < setting.range.low || text.size() > setting.range.high) {
    return must("have " + setting.range_text(), text);
  }
  if (has_control_characters(text)) return must("not hold control characters", text);
  if (setting.kind == Kind::kPath && text[0] != '/')
    return must("be an absolute path, starting with /", text);
  const char* words = words_of(setting.kind);
  if (words != nullptr && !is_one_of(words, text)) {
    return must(std::string("be one of ") + words, text);
  }
  return std::string(text);
}

base::Result<std::uint64_t> parse_count(const Setting& setting, std::string_view text) {
  switch (setting.kind) {
    case Kind::kMode: return parse_mode(text);
    case Kind::kMicroseconds: return parse_duration(text, kMicrosecondNs, setting.range);
    case Kind::kMilliseconds: return parse_duration(text, kMillisecondNs, setting.range);
    default: return parse_integer(text, setting.range, setting.unit);
  }
}

bool is_number(Kind kind) {
  return kind == Kind::kInteger || kind == Kind::kPowerOfTwo || kind == Kind::kMode ||
         kind == Kind::kMicroseconds || kind == Kind::kMilliseconds;
}

void set_integers(const Setting& setting, const Node& node, Config& config, Errors& errors) {
  if (!node.is_list() || node.items.size() > kIntegersMax) {
    const std::string most = std::to_string(kIntegersMax);
    errors.add(node.place, setting.key,
               "must be a list of at most " + most + " numbers, such as [0, 1000]");
    return;
  }
  Integers integers;
  for (const Tree& item : node.items) {
    if (!item->is_scalar() || item->quoted) {
      errors.add(item->place, setting.key, "must be a list of numbers, such as [0, 1000]");
      continue;
    }
    const auto value = parse_integer(item->scalar, setting.range, setting.unit);
    if (!value) errors.add(item->place, setting.key, value.error().text);
    if (value) integers.push_back(static_cast<std::uint32_t>(value.value()));
  }
  if (setting.kind == Kind::kIntegers) {
    member<Integers>(setting, config) = std::move(integers);
  } else {
    member<std::optional<Integers>>(setting, config) = std::move(integers);
  }
}

std::string print_integers(const Integers& integers) {
  std::string out = "[";
  for (const std::uint32_t value : integers)
    out += (out.size() > 1 ? ", " : "") + std::to_string(value);
  return out + "]";
}

}  // namespace

std::string Setting::section() const {
  const std::size_t dot = key.find('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

std::string Setting::name() const {
  const std::size_t dot = key.find('.');
  return dot == std::string::npos ? key : key.substr(dot + 1);
}

std::string environment_name(std::string_view key) {
  std::string out = "PICKD_";
  for (const char letter : key) {
    const bool capital = letter >= 'A' && letter <= 'Z';
    if (capital) out += '_';  // schedulingConfigFile -> SCHEDULING_CONFIG_FILE
    if (letter == '.') out += '_';
    if (letter != '.')
      out += letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  return out;
}

std::string Setting::range_text() const {
  const auto span = [this](const std::string& low, const std::string& high) {
    return std::string(range.or_zero ? "0 or " : "") + low + " to " + high;
  };
  switch (kind) {
    case Kind::kBoolean: return "true or false";
    case Kind::kLogLevel:
    case Kind::kReactor: return words_of(kind);
    case Kind::kMode: return "octal, 0000 to 0777";
    case Kind::kMicroseconds:
      return span(format_duration(range.low * kMicrosecondNs),
                  format_duration(range.high * kMicrosecondNs));
    case Kind::kMilliseconds:
      return span(format_duration(range.low * kMillisecondNs),
                  format_duration(range.high * kMillisecondNs));
    case Kind::kIntegers:
    case Kind::kOptionalIntegers:
      return "list of " + span(std::to_string(range.low), std::to_string(range.high));
    default: break;
  }
  return span(std::to_string(range.low), std::to_string(range.high)) +
         (unit.empty() ? "" : " " + unit);
}

base::Result<void> set_from_text(const Setting& setting, std::string_view text, Config& config) {
  if (setting.is_list()) return base::Error{-EINVAL, "is a list; lists are set in the file only"};
  if (setting.kind == Kind::kBoolean) {
    const auto value = parse_boolean(text);
    if (!value) return value.error();
    member<bool>(setting, config) = value.value();
    return {};
  }
  if (is_number(setting.kind)) {
    const auto value = parse_count(setting, text);
    if (!value) return value.error();
    const bool round = setting.kind == Kind::kPowerOfTwo;
    member<std::uint64_t>(setting, config) = round ? std::bit_ceil(value.value()) : value.value();
    return {};
  }
  auto value = parse_text(setting, text);
  if (!value) return value.error();
  member<std::string>(setting, config) = std::move(value.value());
  return {};
}

void set_from_node(const Setting& setting, const Node& node, Config& config, Errors& errors) {
  if (node.is_null()) {
    errors.add(node.place, setting.key, "has no value; leave the key out for the default");
    return;
  }
  if (setting.is_list()) return set_integers(setting, node, config, errors);
  if (!node.is_scalar()) {
    errors.add(node.place, setting.key,
               std::string("must be a single value (") + setting.range_text() + "), is a " +
                   (node.is_list() ? "list" : "map"));
    return;
  }
  const bool digits = node.scalar.find_first_not_of("0123456789") == std::string::npos;
  const bool plain_only = setting.kind == Kind::kInteger || setting.kind == Kind::kPowerOfTwo;
  if (plain_only && node.quoted && digits) {
    errors.add(node.place, setting.key,
               "is text, " + shown(node.scalar) + "; write the number without quotes");
    return;
  }
  const auto done = set_from_text(setting, node.scalar, config);
  if (!done) errors.add(node.place, setting.key, done.error().text);
}

std::string print_setting(const Setting& setting, Config& config) {
  switch (setting.kind) {
    case Kind::kMode: return format_mode(member<std::uint64_t>(setting, config));
    case Kind::kInteger:
    case Kind::kPowerOfTwo: return std::to_string(member<std::uint64_t>(setting, config));
    case Kind::kMicroseconds:
      return format_duration(member<std::uint64_t>(setting, config) * kMicrosecondNs);
    case Kind::kMilliseconds:
      return format_duration(member<std::uint64_t>(setting, config) * kMillisecondNs);
    case Kind::kBoolean: return member<bool>(setting, config) ? "true" : "false";
    case Kind::kLogLevel:
    case Kind::kReactor: return member<std::string>(setting, config);
    case Kind::kIntegers: return print_integers(member<Integers>(setting, config));
    case Kind::kOptionalIntegers:
      return print_integers(member<std::optional<Integers>>(setting, config).value_or(Integers{}));
    default: return format_text(member<std::string>(setting, config));
  }
}

}  // namespace pickd::config
