// EngineHistory: what ran at one endpoint over time, as running integrals, so that the mean load
// between any two moments is a difference of two looks.
//
// One thread; events come in about the order of their times, and a time before the last counts as
// the last.
#pragma once

#include <cstdint>

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

  void begin(double at_s);  // somebody waits for a first token
  // A first token came: `uncached` tokens were computed with `work`. It decodes here or elsewhere.
  void computed(double at_s, double uncached, double work);
  void begin_decoding(double at_s, double kv_tokens);
  // A request left: one that decoded `kv_tokens`, or one that never got a first token.
  void end_decoding(double at_s, double kv_tokens);
  void end_waiting(double at_s);

  Look look(double at_s);
  std::uint32_t waiting() const { return waiting_; }

  // Share of time with somebody without a first token, over about `time_constant_s`.
  double queued_share(double at_s);
  void restore_share(double at_s, double share);

 private:
  void advance(double at_s);

  Look now_;
  double decoding_ = 0;
  double kv_tokens_ = 0;
  std::uint32_t waiting_ = 0;
  double share_ = 0;
};

}  // namespace pickd::latency
