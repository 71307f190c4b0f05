// Learner: turns what became of picks into coefficients. Pairs each prediction with its outcome,
// feeds the two models of the class and the slowness of the endpoint, and keeps count of how right
// it was.
//
// One thread (the daemon's learner thread, or a simulation); time is an argument in seconds of any
// steady clock. Samples that cannot be are refused and counted. Never a NaN in a coefficient.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/latency/accuracy.hpp"
#include "daemon/latency/coefficients.hpp"
#include "daemon/latency/engine_history.hpp"
#include "daemon/latency/learner_options.hpp"
#include "daemon/latency/linear_model.hpp"
#include "daemon/latency/memory.hpp"
#include "daemon/latency/slowness.hpp"
#include "daemon/latency/times_seen.hpp"

namespace pickd::latency {

// A request was sent to an endpoint. `flight` names it in later events and is free again after
// ended().
struct Picked {
  double at_s = 0;
  std::uint64_t number = 0;  // of the flight, for who draws it down
  std::uint32_t flight = 0;
  std::uint32_t generation = 0;  // of the endpoint: another one is another engine
  std::uint32_t prompt_tokens = 0;
  std::uint32_t uncached_tokens = 0;
  std::uint32_t kv_tokens = 0;
  std::uint16_t endpoint = 0;
  std::uint16_t prefill_endpoint = 0;  // that computes the prompt; 0: `endpoint` does
  std::uint16_t class_id = 0;
  bool stream = false;   // only streamed answers tell a first token
  QueueSeen queue;       // as the pick saw it, before this request
  float progress_s = 0;  // of the queue's head, as credited then
  float slowness = 1;    // as believed then
  float ttft_s = 0;      // predicted; 0: nothing was
  float itl_s = 0;
};

// How a request ended. What was not reported is absent.
struct Outcome {
  bool served = true;  // false: failed or cancelled; trains nothing
  std::optional<std::uint32_t> output_tokens;
  std::optional<std::uint32_t> cached_tokens;
  // Learned is this times what was measured: 1, but in simulations that want noise.
  double noise = 1;
};

enum class Refusal : std::uint8_t { kNone, kUnknownFlight, kOutOfOrder, kImpossible };

struct LearnerCounts {
  std::uint64_t ttft_samples = 0;
  std::uint64_t itl_samples = 0;
  std::uint64_t late = 0;     // far beyond what was predicted, while few are: not learned from
  std::uint64_t broken = 0;   // models that came to a coefficient that cannot be, and began anew
  std::uint64_t refused = 0;  // reports that cannot be: times before the pick, no tokens, ...
};

struct ClassAccuracy {
  Accuracy ttft;
  Accuracy itl;
  Accuracy itl_given;  // ITL from what really ran, not from what was foreseen at the pick
};

class Learner {
 public:
  Learner(std::uint32_t endpoint_ids, std::uint32_t flights, const LearnerOptions& options = {});

  void picked(const Picked& pick);
  Refusal first_token(std::uint32_t flight, double at_s);
  Refusal ended(std::uint32_t flight, double at_s, const Outcome& outcome);

  // The endpoint's id is used by another engine from now on: what was learned of it is forgotten.
  void forget_endpoint(std::uint32_t endpoint);

  // Flights of which nothing was heard for many times as long as an answer takes, each once: their
  // reports are lost. They train nothing and count as ended.
  struct Overdue {
    std::uint32_t flight;
    std::uint64_t number;
  };
  std::vector<Overdue> take_overdue(double now_s);

  // The newest coefficients, with shares and price as of `now_s`.
  const Coefficients& coefficients(double now_s);

  const LearnerCounts& counts() const { return counts_; }
  // Of the requests that were predicted and taught a model. Any thread may read it.
  const TimesSeen& times() const { return *times_; }
  const ClassAccuracy& accuracy(std::uint32_t class_id) const {
    return classes_[class_id].accuracy;
  }
  // What it knows of a class and of an endpoint, for after a restart, and the way back; before the
  // first event of either. False: the numbers are not sound, and it begins from nothing.
  ClassMemory memory(std::uint32_t class_id) const;
  bool restore(std::uint32_t class_id, const ClassMemory& kept);
  struct EndpointKnown {
    std::uint32_t generation;
    EndpointMemory memory;
  };
  std::optional<EndpointKnown> endpoint_memory(std::uint32_t id, double now_s);
  void restore_endpoint(std::uint32_t id, std::uint16_t class_id, std::uint32_t generation,
                        const EndpointMemory& kept, double now_s);

  std::uint32_t endpoint_ids() const { return static_cast<std::uint32_t>(endpoints_.size()); }
  std::uint32_t class_count() const { return static_cast<std::uint32_t>(classes_.size()); }

 private:
  static constexpr std::size_t kClassesMax = 64;

  struct Class {
    explicit Class(const LearnerOptions& options)
        : ttft(kTtftPrior, options.decay()),
          itl(kItlPrior, options.decay()),
          accuracy{Accuracy(options), Accuracy(options), Accuracy(options)} {}

    LinearModel<kTtftFeatures> ttft;
    LinearModel<kItlFeatures> itl;
    double output_sum = 0;
    double output_weight = 0;
    double late_share = 0;  // of samples, lately
    // Sums over picks, of what a mean request is made.
    double pick_weight = 0;
    double uncached_sum = 0;
    double work_sum = 0;
    double kv_sum = 0;
    ClassAccuracy accuracy;
  };
  struct Endpoint {
    EngineHistory history;
    Slowness slowness;
    std::uint16_t class_id = 0;
    std::uint32_t generation = 0;
    bool seen = false;
  };
  struct Flight {
    enum class State : std::uint8_t { kNone, kWaiting, kDecoding };
    State state = State::kNone;
    bool waits = false;  // counted among those without a first token
    Picked pick;
    std::uint32_t life =
        0;  // the endpoint's, so that an end after forget_endpoint() changes nothing
    double first_token_s = 0;
    EngineHistory::Look at_first_token;
  };

  bool train_ttft(const Flight& flight, double uncached, double noise);
  void train_itl(const Flight& flight, double at_s, double tokens, double noise);
  static bool knows_its_class(const Class& of);
  bool is_late(Class& of, double measured_s, double predicted_s);
  void learn_output(Class& of, double tokens);
  void learn_size(Class& of, const Picked& pick);
  EngineHistory& prefill_history(const Picked& pick);
  EngineHistory::PrefillRates prefill_rates(const Picked& pick) const;
  void stop_waiting_if_silent(std::uint32_t index, double now_s);
  double overdue_after_s(const Flight& flight) const;
  Class& class_at(std::uint32_t class_id);
  void begin_anew_if_broken(Class& of);
  Refusal refuse(Refusal why);

  LearnerOptions options_;
  std::vector<Endpoint> endpoints_;
  std::vector<std::uint32_t> lives_;
  std::vector<Flight> flights_;
  std::vector<Class> classes_;
  Coefficients coefficients_;
  LearnerCounts counts_;
  std::unique_ptr<TimesSeen> times_ = std::make_unique<TimesSeen>();
};

}  // namespace pickd::latency
