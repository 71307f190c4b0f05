#include "tools/sim/simulation.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <queue>

namespace pickd::sim {

namespace {

constexpr double kTurnS = .05;

enum class Kind : std::uint8_t { kArrival, kStepEnd, kScrape, kTurn, kReport, kRestart };

struct Event {
  double at_s;
  std::uint64_t order;  // equal times in order of making
  Kind kind;
  std::uint32_t index;
  std::uint64_t epoch;  // of the engine: a step of before a restart is void

  bool operator>(const Event& other) const {
    return at_s != other.at_s ? at_s > other.at_s : order > other.order;
  }
};

// A request on its way.
struct Flight {
  std::uint32_t gateway = 0;
  std::uint32_t endpoint = 0;
  std::uint64_t ticket = 0;
  double first_token_s = 0;
  double predicted_ttft_s = 0;
  double predicted_itl_s = 0;
  std::uint32_t cached_tokens = 0;
  bool reports = true;
  bool waits = true;  // for its first token
  double late_s = 0;
};

// How many wait for a first token at an engine, and for how much of the time anybody did.
struct Queue {
  std::uint32_t waiting = 0;
  double since_s = 0;
  double sum_s = 0;

  void join(double now_s) {
    if (waiting++ == 0) since_s = now_s;
  }
  void leave(double now_s) {
    if (--waiting == 0) sum_s += now_s - since_s;
  }
};

struct Report {
  bool done = false;
  std::uint32_t request = 0;
  std::uint32_t output_tokens = 0;
};

class Simulation {
 public:
  Simulation(const Workload& workload, const SimOptions& options)
      : workload_(workload), options_(options), random_(options.seed * 77 + 5) {
    for (std::uint32_t at = 0; at < options.endpoints; ++at) make_engine(at);
    for (std::uint32_t at = 0; at < options.gateways; ++at) {
      GatewayOptions gateway;
      gateway.policy = options.policy;
      gateway.endpoints = options.endpoints;
      gateway.capacity_blocks = options.capacity_blocks;
      gateway.report_noise = options.report_noise;
      gateway.lease_s = options.lease_s;
      gateway.seed = options.seed * 131 + at;
      gateways_.push_back(std::make_unique<Gateway>(gateway));
    }
    flights_.resize(workload.requests.size());
    picked_.resize(options.endpoints);
    queues_.resize(options.endpoints);
  }

  SimOutcome run() {
    for (std::uint32_t at = 0; at < workload_.requests.size(); ++at)
      push(workload_.requests[at].arrival_s, Kind::kArrival, at);
    for (std::uint32_t at = 0; at < options_.endpoints; ++at)
      push(options_.scrape_s * (at + 1) / options_.endpoints, Kind::kScrape, at);
    for (std::uint32_t at = 0; at < options_.restarts.size(); ++at)
      push(options_.restarts[at].at_s, Kind::kRestart, at);
    push(kTurnS, Kind::kTurn, 0);
    left_ = workload_.requests.size();
    while (left_ != 0 && !events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_s_ = event.at_s;
      handle(event);
    }
    finish();
    return std::move(outcome_);
  }

 private:
  void push(double at_s, Kind kind, std::uint32_t index, std::uint64_t epoch = 0) {
    events_.push({at_s, ++order_, kind, index, epoch});
  }
  double uniform() { return (static_cast<double>(random_.next() >> 11) + .5) * 0x1p-53; }

  void make_engine(std::uint32_t at) {
    enginesim::EngineOptions engine;
    engine.blocks = static_cast<std::uint32_t>(options_.capacity_blocks);
    engine.block_tokens = kBlockTokens;
    engine.seed = options_.seed * 1000 + at;
    engine.rates = options_.rates;
    engine.rates.noise = options_.step_noise;
    if (at < static_cast<std::uint32_t>(options_.slow_share * options_.endpoints))
      engine.rates.time_factor = options_.slow_factor;
    if (at < engines_.size()) {
      engines_[at] = std::make_unique<enginesim::Engine>(engine);
    } else {
      engines_.push_back(std::make_unique<enginesim::Engine>(engine));
      epochs_.push_back(0);
    }
  }

  void handle(const Event& event) {
    switch (event.kind) {
      case Kind::kArrival: arrive(event.index); break;
      case Kind::kStepEnd: end_step(event.index, event.epoch); break;
      case Kind::kScrape: scrape(event.index); break;
      case Kind::kTurn:
        for (const auto& gateway : gateways_) gateway->turn(now_s_);
        push(now_s_ + kTurnS, Kind::kTurn, 0);
        break;
      case Kind::kReport: deliver(event.index); break;
      case Kind::kRestart: restart(options_.restarts[event.index].endpoint); break;
    }
  }

  void arrive(std::uint32_t index) {
    const SimRequest& asked = workload_.requests[index];
    Flight& flight = flights_[index];
    flight.gateway = index % options_.gateways;
    const Chosen chosen = gateways_[flight.gateway]->pick(asked, now_s_);
    flight.endpoint = chosen.endpoint;
    flight.ticket = chosen.ticket;
    flight.predicted_ttft_s = chosen.ttft_s;
    flight.predicted_itl_s = chosen.itl_s;
    flight.reports = !(options_.reports_lost_share > 0 && uniform() < options_.reports_lost_share);
    flight.late_s = options_.reports_late_share > 0 && uniform() < options_.reports_late_share
                        ? options_.reports_late_s
                        : 0;
    ++picked_[chosen.endpoint];
    queues_[chosen.endpoint].join(now_s_);
    enginesim::Request request;
    request.id = index + 1;
    request.prompt_tokens = asked.prompt_tokens;
    request.output_tokens = asked.output_tokens;
    request.keys.assign(
        asked.blocks.begin(),
        asked.blocks.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(
                                   asked.blocks.size(), asked.prompt_tokens / kBlockTokens)));
    enginesim::Engine& engine = *engines_[flight.endpoint];
    if (!engine.submit(std::move(request))) return fail(index);
    if (!engine.in_step()) begin_step(flight.endpoint);
  }

  void begin_step(std::uint32_t at) {
    const auto now_ns = static_cast<std::uint64_t>(now_s_ * 1e9);
    if (const auto end_ns = engines_[at]->begin_step(now_ns); end_ns)
      push(static_cast<double>(*end_ns) * 1e-9, Kind::kStepEnd, at, epochs_[at]);
  }

  void end_step(std::uint32_t at, std::uint64_t epoch) {
    if (epoch != epochs_[at]) return;
    tokens_.clear();
    engines_[at]->end_step(tokens_);
    for (const enginesim::TokenEvent& token : tokens_) take_token(token);
    begin_step(at);
  }

  void take_token(const enginesim::TokenEvent& token) {
    const auto index = static_cast<std::uint32_t>(token.id - 1);
    Flight& flight = flights_[index];
    if (token.output_tokens == 1) {
      flight.first_token_s = now_s_;
      flight.waits = false;
      queues_[flight.endpoint].leave(now_s_);
      flight.cached_tokens = token.cached_tokens;
      report(index, {false, index, 1});
    }
    if (!token.finished) return;
    report(index, {true, index, token.output_tokens});
    const SimRequest& asked = workload_.requests[index];
    Prefilled served;
    served.ttft_s = flight.first_token_s - asked.arrival_s;
    served.itl_s = token.output_tokens < 2
                       ? std::numeric_limits<double>::quiet_NaN()
                       : (now_s_ - flight.first_token_s) / (token.output_tokens - 1);
    served.predicted_ttft_s = flight.predicted_ttft_s;
    served.predicted_itl_s = flight.predicted_itl_s;
    served.slo_ttft_s = asked.slo_ttft_s;
    served.slo_itl_s = asked.slo_itl_s;
    served.endpoint = flight.endpoint;
    served.prompt_tokens = asked.prompt_tokens;
    outcome_.requests.push_back(served);
    outcome_.prompt_tokens += asked.prompt_tokens;
    outcome_.cached_tokens += flight.cached_tokens;
    --left_;
  }

  void report(std::uint32_t index, const Report& said) {
    const Flight& flight = flights_[index];
    if (!flight.reports) return;
    reports_.push_back(said);
    const auto at = static_cast<std::uint32_t>(reports_.size() - 1);
    if (flight.late_s == 0) return deliver(at);
    push(now_s_ + flight.late_s, Kind::kReport, at);
  }

  void deliver(std::uint32_t at) {
    const Report said = reports_[at];
    const Flight& flight = flights_[said.request];
    Gateway& gateway = *gateways_[flight.gateway];
    if (!said.done) return gateway.first_token(flight.ticket, now_s_);
    gateway.done(flight.ticket, now_s_, workload_.requests[said.request].prompt_tokens,
                 flight.cached_tokens, said.output_tokens);
  }

  void fail(std::uint32_t index) {
    if (flights_[index].waits) queues_[flights_[index].endpoint].leave(now_s_);
    flights_[index].waits = false;
    gateways_[flights_[index].gateway]->failed(flights_[index].ticket, now_s_);
    ++outcome_.failed;
    const SimRequest& asked = workload_.requests[index];
    if (asked.slo_ttft_s > 0 || asked.slo_itl_s > 0) ++outcome_.failed_with_slo;
    --left_;
  }

  void scrape(std::uint32_t at) {
    const enginesim::Engine& engine = *engines_[at];
    const enginesim::BlockCounts blocks = engine.blocks();
    const double use =
        static_cast<double>(blocks.used) / static_cast<double>(options_.capacity_blocks);
    for (const auto& gateway : gateways_) {
      gateway->scraped(at, static_cast<std::uint32_t>(engine.waiting()),
                       static_cast<std::uint32_t>(engine.running()), use, now_s_);
    }
    push(now_s_ + options_.scrape_s, Kind::kScrape, at);
  }

  // What ran there is lost; the requests count as failed.
  void restart(std::uint32_t at) {
    for (std::uint32_t index = 0; index < flights_.size(); ++index) {
      const Flight& flight = flights_[index];
      if (flight.ticket == 0 || flight.endpoint != at) continue;
      if (engines_[at]->abort(index + 1)) fail(index);
    }
    outcome_.preemptions += engines_[at]->counters().preemptions;
    ++epochs_[at];
    make_engine(at);
    for (const auto& gateway : gateways_) gateway->restarted(at, now_s_);
  }

  void finish() {
    std::uint64_t most = 0;
    std::uint64_t all = 0;
    for (const std::uint64_t picked : picked_) {
      most = std::max(most, picked);
      all += picked;
    }
    outcome_.busiest_share = all == 0 ? 0 : static_cast<double>(most) / static_cast<double>(all);
    outcome_.hit_rate = outcome_.prompt_tokens == 0
                            ? 0
                            : static_cast<double>(outcome_.cached_tokens) /
                                  static_cast<double>(outcome_.prompt_tokens);
    for (const auto& engine : engines_) outcome_.preemptions += engine->counters().preemptions;
    double error = 0;
    std::uint64_t predicted = 0;
    for (const Prefilled& served : outcome_.requests) {
      if (!std::isfinite(served.predicted_ttft_s) || served.ttft_s <= 0) continue;
      error += std::abs(served.predicted_ttft_s - served.ttft_s) / served.ttft_s;
      ++predicted;
    }
    outcome_.ttft_mape = predicted == 0 ? 0 : error / static_cast<double>(predicted);
    outcome_.itl_given_mape = gateways_[0]->learner().accuracy(0).itl_given.mape();
    outcome_.learned = gateways_[0]->coefficients();
    outcome_.virtual_s = now_s_;
    double queued_s = 0;
    for (const Queue& queue : queues_) queued_s += queue.sum_s;
    outcome_.queued_share = now_s_ > 0 ? queued_s / (now_s_ * options_.endpoints) : 0;
    outcome_.bound_ttft_mean_s = bound_ttft_mean_s(workload_.requests, options_.rates,
                                                   enginesim::EngineOptions{}.batched_tokens_max);
  }

  const Workload& workload_;
  const SimOptions& options_;
  base::Random random_;
  double now_s_ = 0;
  std::uint64_t order_ = 0;
  std::size_t left_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::unique_ptr<enginesim::Engine>> engines_;
  std::vector<std::uint64_t> epochs_;
  std::vector<std::unique_ptr<Gateway>> gateways_;
  std::vector<Flight> flights_;
  std::vector<Report> reports_;
  std::vector<std::uint64_t> picked_;
  std::vector<Queue> queues_;
  std::vector<enginesim::TokenEvent> tokens_;
  SimOutcome outcome_;
};

}  // namespace

SimOutcome simulate(const Workload& workload, const SimOptions& options) {
  const auto from = std::chrono::steady_clock::now();
  SimOutcome outcome = Simulation(workload, options).run();
  outcome.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  return outcome;
}

}  // namespace pickd::sim
