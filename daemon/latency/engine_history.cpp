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
  if (waiting_ != 0) now_.queued_s += elapsed_s;
  const double kept = std::exp(-elapsed_s / kShareSeconds);
  share_ = kept * share_ + (1 - kept) * (waiting_ != 0 ? 1 : 0);
  now_.at_s = at_s;
}

void EngineHistory::begin(double at_s) {
  advance(at_s);
  ++waiting_;
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

void EngineHistory::end_waiting(double at_s) {
  advance(at_s);
  if (waiting_ != 0) --waiting_;
}

EngineHistory::Look EngineHistory::look(double at_s) {
  advance(at_s);
  return now_;
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
