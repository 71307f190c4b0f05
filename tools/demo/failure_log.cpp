#include "tools/demo/failure_log.hpp"

#include <algorithm>
#include <charconv>

namespace pickd::demo {

namespace {

std::string_view next_word(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

}  // namespace

bool FailureLog::add_line(std::string_view line) {
  static const std::map<std::string_view, What> kWhats = {
      {"send", What::kSend}, {"fail", What::kFail}, {"done", What::kDone}, {"lost", What::kLost}};
  const auto what = kWhats.find(next_word(line));
  if (what == kWhats.end()) return false;
  Entry entry{what->second, 0, "", ""};
  const std::string_view time = next_word(line);
  const auto [end, error] = std::from_chars(time.data(), time.data() + time.size(), entry.at_us);
  if (error != std::errc() || end != time.data() + time.size()) return false;
  entry.request = next_word(line);
  entry.engine = next_word(line);
  if (entry.request.empty() || (entry.engine.empty() && entry.what != What::kLost)) return false;
  Request& request = requests_[entry.request];
  if (entry.what == What::kSend) ++request.attempts;
  if (entry.what == What::kDone) request.answered = true;
  entries_.push_back(std::move(entry));
  return true;
}

std::string FailureLog::words_of(std::string_view line) {
  const std::string_view what = next_word(line);
  if (what != "fail" && what != "lost") return "";
  next_word(line);  // when
  const std::string request = "request " + std::string(next_word(line));
  if (what == "lost") return request + " is lost";
  const std::string engine(next_word(line));
  const std::string attempt(next_word(line));
  return request + ", attempt " + attempt + ": " + engine + ": " + std::string(line);
}

void FailureLog::begin_outage(const std::string& engine, const std::string& what,
                              std::int64_t at_us) {
  Outage outage;
  outage.engine = engine;
  outage.what = what;
  outage.from_us = at_us;
  outages_.push_back(std::move(outage));
}

void FailureLog::end_outage(const std::string& engine, std::int64_t at_us) {
  const auto last = std::find_if(outages_.rbegin(), outages_.rend(), [&](const Outage& outage) {
    return outage.engine == engine && outage.to_us == kForever;
  });
  if (last != outages_.rend()) last->to_us = at_us;
}

void FailureLog::judge(Outage& outage) const {
  std::map<std::string, std::int64_t> sent_us;  // the newest attempt there, by request
  for (const Entry& entry : entries_) {
    if (entry.engine != outage.engine) continue;
    const bool during = entry.at_us >= outage.from_us && entry.at_us < outage.to_us;
    switch (entry.what) {
      case What::kSend:
        sent_us[entry.request] = entry.at_us;
        if (during && outage.first_failure_us && entry.at_us > *outage.first_failure_us)
          ++outage.sent_after;
        break;
      case What::kFail:
        if (!during) break;
        ++outage.failed;
        if (!outage.first_failure_us) outage.first_failure_us = entry.at_us;
        break;
      case What::kDone:
        if (sent_us[entry.request] >= outage.to_us) ++outage.served_again;
        break;
      case What::kLost: break;
    }
  }
}

std::vector<Outage> FailureLog::outages() const {
  std::vector<Outage> judged = outages_;
  for (Outage& outage : judged) judge(outage);
  return judged;
}

std::uint64_t FailureLog::answered() const {
  return static_cast<std::uint64_t>(
      std::count_if(requests_.begin(), requests_.end(),
                    [](const auto& request) { return request.second.answered; }));
}

std::uint64_t FailureLog::retried() const {
  return static_cast<std::uint64_t>(std::count_if(
      requests_.begin(), requests_.end(),
      [](const auto& request) { return request.second.answered && request.second.attempts > 1; }));
}

std::uint64_t FailureLog::answered_by(const std::string& engine) const {
  return static_cast<std::uint64_t>(std::count_if(
      entries_.begin(), entries_.end(),
      [&](const Entry& entry) { return entry.what == What::kDone && entry.engine == engine; }));
}

std::vector<std::string> FailureLog::wrongs() const {
  std::vector<std::string> wrongs;
  if (requests() == 0) wrongs.emplace_back("no request was sent at all");
  if (lost() != 0)
    wrongs.push_back(std::to_string(lost()) + " of " + std::to_string(requests()) +
                     " requests were not answered");
  for (const Outage& outage : outages()) {
    if (outage.sent_after != 0)
      wrongs.push_back(outage.engine + " (" + outage.what +
                       "): " + std::to_string(outage.sent_after) +
                       " requests were sent there after the first one that failed");
  }
  return wrongs;
}

}  // namespace pickd::demo
