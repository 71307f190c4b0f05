// EngineHistory: what ran at one endpoint over time, as running integrals, so that the mean load
// between any two moments is a difference of two looks.
//
// What an engine computes before a first token is spread over the time in which it does so: of the
// oldest request without one, a look counts the part that must be done by then.
//
// One thread; events come in about the order of their times, and a time before the last counts as
// the last.
#pragma once

#include <cstdint>
#include <deque>

namespace pickd::latency {

class EngineHistory {
 public:
  // Integrals up to a moment.
  struct Look {
    double at_s = 0;
    double sequence_s = 0;      // sequences that decoded, times time
    double kv_token_s = 0;      // KV tokens they held, times time
    double prefill_tokens = 0;  // computed so far
    double prefill_work = 0;    // attention work done so far
    double queued_s = 0;        // time with a request without a first token
  };

  // A request that waits for its first token, and what is to be computed for it.
  struct Waiting {
    std::uint32_t flight = 0;
    double uncached_tokens = 0;
    double work = 0;
  };
  // What computing takes: seconds for a token and for a unit of attention work.
  struct PrefillRates {
    double token_s = 0;
    double work_s = 0;
  };

  void begin(double at_s, const Waiting& request);
  // A first token came: `uncached` tokens were computed with `work`. It decodes here or elsewhere.
  void computed(double at_s, double uncached, double work);
  void begin_decoding(double at_s, double kv_tokens);
  void end_decoding(double at_s, double kv_tokens);
  // It waits no more: its first token came, it left without one, or nobody believes in it.
  void end_waiting(double at_s, std::uint32_t flight);

  Look look(double at_s, const PrefillRates& rates);
  std::size_t waiting() const { return line_.size(); }

  // Share of time with somebody without a first token, over about `time_constant_s`.
  double queued_share(double at_s);
  void restore_share(double at_s, double share);

 private:
  void advance(double at_s);

  Look now_;
  double decoding_ = 0;
  double kv_tokens_ = 0;
  std::deque<Waiting> line_;  // oldest first
  double head_since_s_ = 0;   // when the oldest became the next to be computed
  double share_ = 0;
};

}  // namespace pickd::latency
