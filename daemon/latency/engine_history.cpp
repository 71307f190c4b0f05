#include "daemon/latency/engine_history.hpp"

#include <algorithm>
#include <cmath>

namespace pickd::latency {

namespace {

constexpr double kShareSeconds = 30;  // time constant of the queued share

}  // namespace

void EngineHistory::advance(double at_s) {
  const double elapsed_s = at_s - now_.at_s;
  if (!(elapsed_s > 0)) return;
  now_.sequence_s += decoding_ * elapsed_s;
  now_.kv_token_s += kv_tokens_ * elapsed_s;
  if (!line_.empty()) now_.queued_s += elapsed_s;
  const double kept = std::exp(-elapsed_s / kShareSeconds);
  share_ = kept * share_ + (1 - kept) * (!line_.empty() ? 1 : 0);
  now_.at_s = at_s;
}

void EngineHistory::begin(double at_s, const Waiting& request) {
  advance(at_s);
  if (line_.empty()) head_since_s_ = now_.at_s;
  line_.push_back(request);
}

void EngineHistory::computed(double at_s, double uncached, double work) {
  advance(at_s);
  now_.prefill_tokens += uncached;
  now_.prefill_work += work;
}

void EngineHistory::begin_decoding(double at_s, double kv_tokens) {
  advance(at_s);
  decoding_ += 1;
  kv_tokens_ += kv_tokens;
}

void EngineHistory::end_decoding(double at_s, double kv_tokens) {
  advance(at_s);
  decoding_ = std::max(0.0, decoding_ - 1);
  kv_tokens_ = std::max(0.0, kv_tokens_ - kv_tokens);
}

void EngineHistory::end_waiting(double at_s, std::uint32_t flight) {
  advance(at_s);
  const auto found = std::find_if(line_.begin(), line_.end(), [flight](const Waiting& waiting) {
    return waiting.flight == flight;
  });
  if (found == line_.end()) return;
  line_.erase(found);
  head_since_s_ = now_.at_s;
}

EngineHistory::Look EngineHistory::look(double at_s, const PrefillRates& rates) {
  advance(at_s);
  Look seen = now_;
  if (line_.empty()) return seen;
  const Waiting& head = line_.front();
  const double needed_s = head.uncached_tokens * rates.token_s + head.work * rates.work_s;
  const double spent_s = now_.at_s - head_since_s_;
  const double done = needed_s > spent_s ? spent_s / needed_s : 1;
  seen.prefill_tokens += done * head.uncached_tokens;
  seen.prefill_work += done * head.work;
  return seen;
}

double EngineHistory::queued_share(double at_s) {
  advance(at_s);
  return share_;
}

void EngineHistory::restore_share(double at_s, double share) {
  advance(at_s);
  share_ = share >= 0 && share <= 1 ? share : 0;
}

}  // namespace pickd::latency
