// What a run measured. See outcome.hpp.
#include "tools/demo/outcome.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

namespace pickd::demo {

namespace {

// Takes the first word off `rest`.
std::string_view next_word(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

template <typename Number>
std::optional<Number> number_of(std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

}  // namespace

bool Outcome::add_line(std::string_view line) {
  const std::string_view word = next_word(line);
  if (word == "turn") return add_turn(line);
  if (word != "picks") return false;
  const auto count = number_of<std::uint64_t>(next_word(line));
  const auto seconds = number_of<double>(next_word(line));
  if (!count || !seconds || *seconds <= 0) return false;
  picks_per_s = static_cast<double>(*count) / *seconds;
  return true;
}

bool Outcome::add_turn(std::string_view rest) {
  const std::string_view engine = next_word(rest);
  const std::string_view status = next_word(rest);
  std::uint64_t numbers[6];
  for (std::uint64_t& number : numbers) {
    const auto parsed = number_of<std::uint64_t>(next_word(rest));
    if (!parsed) return false;
    number = *parsed;
  }
  const auto [prompt, cached, output, ttft, pick, moved] = numbers;
  ++turns_;
  fallbacks += moved;
  pick_us.add(static_cast<double>(pick));
  if (status != "ok") {
    ++failed_;
    return true;
  }
  ++turns_by_engine_[std::string(engine)];
  prompt_tokens_ += prompt;
  cached_tokens_ += cached;
  ttft_ms.add(static_cast<double>(ttft) / 1000);
  while (!rest.empty() && rest != "-") {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const auto gap = number_of<std::uint64_t>(rest.substr(0, end));
    if (!gap) return false;
    itl_ms.add(static_cast<double>(*gap) / 1000);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return output > 0;
}

double Outcome::hit_rate() const {
  return prompt_tokens_ == 0
             ? 0
             : static_cast<double>(cached_tokens_) / static_cast<double>(prompt_tokens_);
}

double Outcome::busiest_share() const {
  std::uint64_t most = 0;
  std::uint64_t all = 0;
  for (const auto& [engine, turns] : turns_by_engine_) {
    most = std::max(most, turns);
    all += turns;
  }
  return all == 0 ? 0 : static_cast<double>(most) / static_cast<double>(all);
}

std::string table_of(const Outcome& round_robin, const Outcome& pickd) {
  std::string out;
  const auto row = [&](const char* name, const std::string& left, const std::string& right) {
    char line[128];
    std::snprintf(line, sizeof line, "  %-26s %14s %14s\n", name, left.c_str(), right.c_str());
    out += line;
  };
  const auto text = [](double value, int digits, const char* unit) {
    if (std::isnan(value)) return std::string("-");
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.*f%s%s", digits, value, *unit == '\0' ? "" : " ", unit);
    return std::string(buffer);
  };
  const auto both = [&](const char* name, int digits, const char* unit,
                        const std::function<double(const Outcome&)>& value) {
    row(name, text(value(round_robin), digits, unit), text(value(pickd), digits, unit));
  };
  using O = const Outcome&;
  row("", "round-robin", "pickd");
  both("turns answered", 0, "", [](O o) { return static_cast<double>(o.turns() - o.failed()); });
  if (round_robin.failed() + pickd.failed() > 0) {
    both("turns failed", 0, "", [](O o) { return static_cast<double>(o.failed()); });
  }
  if (round_robin.fallbacks + pickd.fallbacks > 0) {
    both("served by a fallback", 0, "", [](O o) { return static_cast<double>(o.fallbacks); });
  }
  both("token hit rate", 1, "%", [](O o) { return o.hit_rate() * 100; });
  both("TTFT mean", 1, "ms", [](O o) { return o.ttft_ms.mean(); });
  both("TTFT p50", 1, "ms", [](O o) { return o.ttft_ms.percentile(0.5); });
  both("TTFT p99", 1, "ms", [](O o) { return o.ttft_ms.percentile(0.99); });
  both("ITL p99", 1, "ms", [](O o) { return o.itl_ms.percentile(0.99); });
  both("share of busiest engine", 1, "%", [](O o) { return o.busiest_share() * 100; });
  row("pick latency p50", "", text(pickd.pick_us.percentile(0.5), 0, "us"));
  row("pick latency p99", "", text(pickd.pick_us.percentile(0.99), 0, "us"));
  row("picks per second, 1 caller", "", text(pickd.picks_per_s, 0, ""));
  row("state", "", text(static_cast<double>(pickd.state_bytes), 0, "bytes"));
  return out;
}

std::string json_of(const Outcome& round_robin, const Outcome& pickd) {
  const auto common = [](const Outcome& outcome) {
    return nlohmann::ordered_json{{"hit_rate", outcome.hit_rate()},
                                  {"ttft_mean_ms", outcome.ttft_ms.mean()},
                                  {"ttft_p50_ms", outcome.ttft_ms.percentile(0.5)},
                                  {"ttft_p99_ms", outcome.ttft_ms.percentile(0.99)},
                                  {"itl_p99_ms", outcome.itl_ms.percentile(0.99)},
                                  {"busiest_share", outcome.busiest_share()},
                                  {"turns", outcome.turns()},
                                  {"failed", outcome.failed()}};
  };
  nlohmann::ordered_json json{{"round_robin", common(round_robin)}, {"pickd", common(pickd)}};
  json["pickd"]["pick_p50_us"] = pickd.pick_us.percentile(0.5);
  json["pickd"]["pick_p99_us"] = pickd.pick_us.percentile(0.99);
  json["pickd"]["picks_per_s"] = pickd.picks_per_s;
  json["pickd"]["state_bytes"] = pickd.state_bytes;
  return json.dump(2) + '\n';
}

}  // namespace pickd::demo
