#include "daemon/workers/slo_headers.hpp"

#include <charconv>
#include <optional>
#include <span>

namespace pickd::workers {

namespace {

constexpr float kSloMsMax = 24.0F * 3600 * 1000;

constexpr std::string_view kTtftNames[] = {"x-llm-d-slo-ttft-ms", "x-slo-ttft-ms"};
constexpr std::string_view kItlNames[] = {"x-llm-d-slo-itl-ms", "x-slo-itl-ms",
                                          "x-llm-d-slo-tpot-ms", "x-slo-tpot-ms"};
constexpr std::string_view kOffName = "x-prediction-based-scheduling-off";
constexpr std::string_view kOnName = "x-prediction-based-scheduling";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t";
  const std::size_t from = text.find_first_not_of(kSpaces);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kSpaces) - from + 1);
}

bool says_no(std::string_view value) {
  value = trimmed(value);
  return value == "0" || pick::PickRequest::same_header(value, "false");
}

enum class Found : std::uint8_t { kNo, kOne, kContradiction };

Found find_header(const pick::PickRequest& request, std::string_view name,
                  std::string_view* value) {
  Found found = Found::kNo;
  for (const pick::Attribute& attribute : request.attributes) {
    if (!pick::PickRequest::same_header(attribute.key, name)) continue;
    if (found == Found::kOne && attribute.value != *value) return Found::kContradiction;
    *value = attribute.value;
    found = Found::kOne;
  }
  return found;
}

float slo_of(const pick::PickRequest& request, std::span<const std::string_view> names,
             std::uint32_t* ignored) {
  for (const std::string_view name : names) {
    std::string_view value;
    switch (find_header(request, name, &value)) {
      case Found::kNo: continue;
      case Found::kOne: return parse_slo_ms(value, ignored);
      case Found::kContradiction: ++*ignored; return 0;
    }
  }
  return 0;
}

}  // namespace

float checked_slo_ms(float slo_ms, std::uint32_t* ignored) {
  if (slo_ms == 0.0F) return 0.0F;
  if (slo_ms > 0.0F && slo_ms <= kSloMsMax) return slo_ms;  // false for NaN
  ++*ignored;
  return 0.0F;
}

float parse_slo_ms(std::string_view text, std::uint32_t* ignored) {
  text = trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    ++*ignored;
    return 0;
  }
  return checked_slo_ms(static_cast<float>(value), ignored);
}

void read_slos(pick::PickRequest& request, std::uint32_t* ignored) {
  const auto read = [&](float told_ms, std::span<const std::string_view> names) {
    // What the request says itself holds, nonsense too: that is counted and not replaced.
    return told_ms == 0 ? slo_of(request, names, ignored) : checked_slo_ms(told_ms, ignored);
  };
  request.slo_ttft_ms = read(request.slo_ttft_ms, kTtftNames);
  request.slo_itl_ms = read(request.slo_itl_ms, kItlNames);
  if (request.attributes.empty()) return;
  const std::string_view* off = request.attribute(kOffName);
  const std::string_view* on = request.attribute(kOnName);
  if ((off != nullptr && !says_no(*off)) || (on != nullptr && says_no(*on)))
    request.predict = false;
}

}  // namespace pickd::workers
