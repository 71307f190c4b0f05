#include "daemon/latency/learner.hpp"

#include <algorithm>
#include <cmath>

#include "daemon/latency/cost.hpp"

namespace pickd::latency {

namespace {

// A mean over fewer tokens is mostly the time of one step's place in the batch.
constexpr double kItlTokensMin = 9;
constexpr double kOutputPriorWeight = 10;
// No answer takes longer; what does is a report about something else.
constexpr double kSecondsMax = 24 * 3600.0;
constexpr double kOverdueMinS = 20;
// Of a class, before anybody is compared with it.
constexpr std::uint64_t kClassSamplesMin = 50;

// Never below 0: a pick may know of fewer prompt tokens than are not cached.
double work_of(const Picked& pick) {
  return std::max(0.0, attention_work(pick.uncached_tokens, pick.prompt_tokens));
}
double ttft_weight(double predicted) { return 1 / (.05 + predicted); }
double itl_weight(double predicted) { return .01 / ((.005 + predicted) * (.005 + predicted)); }

}  // namespace

Learner::Learner(std::uint32_t endpoint_ids, std::uint32_t flights, const LearnerOptions& options)
    : options_(options), endpoints_(endpoint_ids), lives_(endpoint_ids), flights_(flights) {
  classes_.emplace_back(options_);
}

Learner::Class& Learner::class_at(std::uint32_t class_id) {
  if (class_id >= kClassesMax) class_id = 0;
  while (class_id >= classes_.size()) classes_.emplace_back(options_);
  return classes_[class_id];
}

Refusal Learner::refuse(Refusal why) {
  ++counts_.refused;
  return why;
}

void Learner::picked(const Picked& pick) {
  if (pick.flight >= flights_.size() || pick.endpoint >= endpoints_.size()) return;
  Flight& flight = flights_[pick.flight];
  if (flight.state != Flight::State::kNone) ended(pick.flight, pick.at_s, {.served = false});
  const std::uint16_t class_id = pick.class_id < kClassesMax ? pick.class_id : 0;
  Endpoint& endpoint = endpoints_[pick.endpoint];
  if (endpoint.seen && endpoint.generation != pick.generation) forget_endpoint(pick.endpoint);
  if (endpoint.seen && endpoint.class_id != class_id) endpoint.slowness.forget();
  endpoint.seen = true;
  endpoint.generation = pick.generation;
  endpoint.class_id = class_id;
  learn_size(class_at(class_id), pick);
  prefill_history(pick).begin(
      pick.at_s, {pick.flight, static_cast<double>(pick.uncached_tokens), work_of(pick)});
  flight = Flight{};
  flight.state = Flight::State::kWaiting;
  flight.waits = true;
  flight.pick = pick;
  flight.pick.class_id = class_id;
  flight.life = lives_[pick.endpoint];
}

Refusal Learner::first_token(std::uint32_t index, double at_s) {
  if (index >= flights_.size() || flights_[index].state == Flight::State::kNone)
    return refuse(Refusal::kUnknownFlight);
  Flight& flight = flights_[index];
  if (flight.state != Flight::State::kWaiting) return refuse(Refusal::kOutOfOrder);
  flight.state = Flight::State::kDecoding;
  flight.first_token_s = at_s;
  if (flight.life != lives_[flight.pick.endpoint]) return Refusal::kNone;
  const Picked& pick = flight.pick;
  EngineHistory& history = endpoints_[pick.endpoint].history;
  if (flight.waits) prefill_history(pick).end_waiting(at_s, index);
  flight.waits = false;
  prefill_history(pick).computed(at_s, pick.uncached_tokens, work_of(pick));
  history.begin_decoding(at_s, pick.kv_tokens);
  flight.at_first_token = history.look(at_s, prefill_rates(pick));
  return Refusal::kNone;
}

Refusal Learner::ended(std::uint32_t index, double at_s, const Outcome& outcome) {
  if (index >= flights_.size() || flights_[index].state == Flight::State::kNone)
    return refuse(Refusal::kUnknownFlight);
  Flight& flight = flights_[index];
  const bool decoding = flight.state == Flight::State::kDecoding;
  flight.state = Flight::State::kNone;
  const Picked& pick = flight.pick;
  if (flight.life != lives_[pick.endpoint]) return Refusal::kNone;
  EngineHistory& history = endpoints_[pick.endpoint].history;
  if (decoding) {
    history.end_decoding(at_s, pick.kv_tokens);
  } else {
    if (flight.waits) prefill_history(pick).end_waiting(at_s, index);
    flight.waits = false;
  }
  if (!outcome.served) return Refusal::kNone;
  const double tokens = outcome.output_tokens.value_or(0);
  if (tokens > 0) learn_output(class_at(pick.class_id), tokens);
  // Without a first token of its own an answer says nothing of TTFT or ITL: it came as a whole.
  if (!decoding || !pick.stream) return Refusal::kNone;
  const double cached = outcome.cached_tokens.value_or(
      pick.prompt_tokens - std::min(pick.uncached_tokens, pick.prompt_tokens));
  const double uncached = std::max(1.0, pick.prompt_tokens - cached);
  const double ttft_s = flight.first_token_s - pick.at_s;
  const bool possible = ttft_s > 0 && ttft_s < kSecondsMax && at_s >= flight.first_token_s &&
                        at_s - pick.at_s < kSecondsMax && cached <= pick.prompt_tokens;
  if (!possible) return refuse(Refusal::kImpossible);
  // A first token that came over from another endpoint took the way between them too, of which
  // the model knows nothing.
  if (pick.prefill_endpoint == 0 && !train_ttft(flight, uncached, outcome.noise))
    return Refusal::kNone;
  if (tokens >= kItlTokensMin) train_itl(flight, at_s, tokens, outcome.noise);
  return Refusal::kNone;
}

void Learner::learn_output(Class& of, double tokens) {
  of.output_sum = options_.decay() * of.output_sum + tokens;
  of.output_weight = options_.decay() * of.output_weight + 1;
}

void Learner::learn_size(Class& of, const Picked& pick) {
  const double decay = options_.decay();
  const auto mix = [decay](double& sum, double value) { sum = decay * sum + value; };
  mix(of.pick_weight, 1);
  mix(of.uncached_sum, pick.uncached_tokens);
  mix(of.work_sum, work_of(pick));
  mix(of.kv_sum, pick.kv_tokens);
}

// Of an endpoint of the pick's class, as slow as the pick believed.
EngineHistory::PrefillRates Learner::prefill_rates(const Picked& pick) const {
  const TtftFeatures& theta = classes_[pick.class_id].ttft.theta();
  return {pick.slowness * theta[3] * kTtftScales[3], pick.slowness * theta[4] * kTtftScales[4]};
}

EngineHistory& Learner::prefill_history(const Picked& pick) {
  const std::uint16_t id = pick.prefill_endpoint;
  return endpoints_[id != 0 && id < endpoints_.size() ? id : pick.endpoint].history;
}

// A report that came late tells of its way, not of the engine. While such are few they are left
// out; when they are many the engine has become slow, and that is to be learned.
bool Learner::is_late(Class& of, double measured_s, double predicted_s) {
  constexpr double kFactor = 4;
  constexpr double kSeconds = 1;
  constexpr double kDecay = .98;  // of a sample: looks back on about 50
  constexpr double kShareMax = .2;
  const bool late = measured_s > kFactor * predicted_s + kSeconds;
  of.late_share = kDecay * of.late_share + (late ? 1 - kDecay : 0);
  return late && of.late_share < kShareMax && of.ttft.samples() >= options_.samples_min;
}

// Before it, what a class is mistaken in looks like what its endpoints differ in: whoever got the
// short prompts would pass for quick.
bool Learner::knows_its_class(const Class& of) { return of.ttft.samples() >= kClassSamplesMin; }

// False: its report came late, and so what ran since is not what ran while it decoded.
bool Learner::train_ttft(const Flight& flight, double uncached, double noise) {
  const Picked& pick = flight.pick;
  Class& of = class_at(pick.class_id);
  const double measured_s = flight.first_token_s - pick.at_s;
  const TtftFeatures x = ttft_features(pick.queue, uncached, pick.prompt_tokens);
  const double class_s = of.ttft.predict(x);  // of the class: without slowness and progress
  const double m = pick.slowness;
  if (is_late(of, measured_s + pick.progress_s, class_s * m)) {
    ++counts_.late;
    return false;
  }
  const double learned_s = measured_s * noise + pick.progress_s;
  if (!of.ttft.add(x, learned_s / m, ttft_weight(class_s))) {
    ++counts_.refused;
    return true;
  }
  ++counts_.ttft_samples;
  if (knows_its_class(of)) {
    endpoints_[pick.endpoint].slowness.add(learned_s, class_s, flight.first_token_s);
  }
  if (pick.ttft_s > 0) {
    of.accuracy.ttft.add(pick.ttft_s, measured_s);
    times_->add_ttft(pick.ttft_s, measured_s);
  }
  return true;
}

void Learner::train_itl(const Flight& flight, double at_s, double tokens, double noise) {
  const Picked& pick = flight.pick;
  Class& of = class_at(pick.class_id);
  const EngineHistory::Look from = flight.at_first_token;
  const EngineHistory::Look to = endpoints_[pick.endpoint].history.look(at_s, prefill_rates(pick));
  const double window_s = to.at_s - from.at_s;
  const double gaps = tokens - 1;
  const double measured_s = (at_s - flight.first_token_s) / gaps;
  if (!(window_s > 0)) {
    ++counts_.refused;
    return;
  }
  const ItlFeatures x = itl_features((to.sequence_s - from.sequence_s) / window_s,
                                     (to.kv_token_s - from.kv_token_s) / window_s,
                                     (to.prefill_tokens - from.prefill_tokens) / gaps,
                                     (to.prefill_work - from.prefill_work) / gaps);
  const double class_s = of.itl.predict(x);
  const double learned_s = measured_s * noise;
  if (!of.itl.add(x, learned_s / pick.slowness, itl_weight(class_s))) {
    ++counts_.refused;
    return;
  }
  ++counts_.itl_samples;
  if (knows_its_class(of))
    endpoints_[pick.endpoint].slowness.add(learned_s * gaps, class_s * gaps, at_s);
  of.accuracy.itl_given.add(class_s * pick.slowness, measured_s);
  if (pick.itl_s > 0) {
    of.accuracy.itl.add(pick.itl_s, measured_s);
    times_->add_itl(pick.itl_s, measured_s);
  }
}

void Learner::forget_endpoint(std::uint32_t id) {
  if (id >= endpoints_.size()) return;
  endpoints_[id] = Endpoint{};
  ++lives_[id];
}

// Ten times the mean answer at twice the predicted pace: beyond it few in a thousand still run.
double Learner::overdue_after_s(const Flight& flight) const {
  const Class& of = classes_[std::min<std::size_t>(flight.pick.class_id, classes_.size() - 1)];
  const double tokens =
      of.output_weight > 0 ? of.output_sum / of.output_weight : options_.output_tokens;
  const double itl_s = flight.pick.itl_s > 0 ? flight.pick.itl_s : .05;
  const double ttft_s = flight.pick.ttft_s > 0 ? flight.pick.ttft_s : 10;
  return kOverdueMinS + 10 * ttft_s + 20 * tokens * itl_s;
}

// A first token that is far beyond its time was most likely not reported: it must not make the
// endpoint look as if somebody waited there all the while.
void Learner::stop_waiting_if_silent(std::uint32_t index, double now_s) {
  Flight& flight = flights_[index];
  if (flight.state != Flight::State::kWaiting || !flight.waits) return;
  if (now_s - flight.pick.at_s < first_token_due_s(flight.pick.ttft_s)) return;
  flight.waits = false;
  if (flight.life == lives_[flight.pick.endpoint])
    prefill_history(flight.pick).end_waiting(now_s, index);
}

std::vector<Learner::Overdue> Learner::take_overdue(double now_s) {
  std::vector<Overdue> overdue;
  for (std::uint32_t index = 0; index < flights_.size(); ++index) {
    const Flight& flight = flights_[index];
    if (flight.state == Flight::State::kNone) continue;
    stop_waiting_if_silent(index, now_s);
    if (now_s - flight.pick.at_s < overdue_after_s(flight)) continue;
    overdue.push_back({index, flight.pick.number});
    ended(index, now_s, {.served = false});
  }
  return overdue;
}

// Samples are bounded, and no sum of them breaks a model; what was restored may.
void Learner::begin_anew_if_broken(Class& of) {
  ClassCoefficients now;
  now.ttft = of.ttft.theta();
  now.itl = of.itl.theta();
  if (is_sound(now)) return;
  of = Class(options_);
  ++counts_.broken;
}

const Coefficients& Learner::coefficients(double now_s) {
  coefficients_.classes.resize(classes_.size());
  std::vector<double> log_sum(classes_.size());
  std::vector<double> members(classes_.size());
  for (const Endpoint& endpoint : endpoints_) {
    if (!endpoint.seen || endpoint.slowness.samples() == 0) continue;
    log_sum[endpoint.class_id] += endpoint.slowness.log_ratio();
    members[endpoint.class_id] += 1;
  }
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    Class& of = classes_[i];
    begin_anew_if_broken(of);
    ClassCoefficients& out = coefficients_.classes[i];
    out.ttft = of.ttft.theta();
    out.itl = of.itl.theta();
    out.output_tokens = (of.output_sum + kOutputPriorWeight * options_.output_tokens) /
                        (of.output_weight + kOutputPriorWeight);
    if (of.pick_weight > 0) {
      out.request = {static_cast<float>(of.uncached_sum / of.pick_weight),
                     static_cast<float>(of.work_sum / of.pick_weight),
                     static_cast<float>(of.kv_sum / of.pick_weight)};
    }
    out.ttft_p90_factor = of.accuracy.ttft.p90_factor();
    out.itl_p90_factor = of.accuracy.itl.p90_factor();
    out.ttft_ready = of.accuracy.ttft.ready();
    out.itl_ready = of.accuracy.itl.ready();
  }
  coefficients_.endpoints.resize(endpoints_.size());
  double share_sum = 0;
  double seen = 0;
  for (std::size_t id = 0; id < endpoints_.size(); ++id) {
    Endpoint& endpoint = endpoints_[id];
    EndpointCoefficients& out = coefficients_.endpoints[id];
    out = {};
    if (!endpoint.seen) continue;
    out.class_id = endpoint.class_id;
    out.queued_share = static_cast<float>(endpoint.history.queued_share(now_s));
    share_sum += out.queued_share;
    seen += 1;
    if (endpoint.slowness.samples() == 0) continue;
    const double mean = log_sum[endpoint.class_id] / members[endpoint.class_id];
    out.slowness = static_cast<float>(Slowness::factor(endpoint.slowness.log_ratio() - mean));
  }
  coefficients_.work_price = work_price(seen > 0 ? share_sum / seen : 0);
  return coefficients_;
}

}  // namespace pickd::latency
