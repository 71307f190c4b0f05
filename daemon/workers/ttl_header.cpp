#include "daemon/workers/ttl_header.hpp"

#include <charconv>

namespace pickd::workers {

namespace {

// 0: no unit that there is.
std::uint64_t unit_ms(std::string_view unit) {
  if (unit.empty() || unit == "s") return 1000;
  if (unit == "ms") return 1;
  if (unit == "m" || unit == "min") return 60'000;
  return unit == "h" ? 3'600'000 : 0;
}

}  // namespace

std::uint64_t parse_ttl_ms(std::string_view text, std::uint32_t* ignored) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const std::uint64_t ttl_ms = error == std::errc() ? number * unit_ms(unit) : 0;
  if (ttl_ms != 0 && ttl_ms <= kAffinityTtlMsMax) return ttl_ms;
  ++*ignored;
  return 0;
}

void read_affinity_ttl(pick::PickRequest& request, std::uint32_t* ignored) {
  if (const std::string_view* text = request.attribute(kAffinityTtlName); text != nullptr)
    request.affinity_ttl_ms = parse_ttl_ms(*text, ignored);
}

}  // namespace pickd::workers
