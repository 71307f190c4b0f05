#include "tools/sim/gateway.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <numbers>
#include <span>
#include <stdexcept>

#include "daemon/config/load.hpp"

namespace pickd::sim {

namespace {

constexpr std::uint32_t kReservations = 1 << 16;
constexpr std::uint32_t kUid = 1000;
constexpr std::uint64_t kClient = 7;
constexpr double kTickS = static_cast<double>(abi::kTickNs) * 1e-9;
// The store's clock does not begin at 0: floors of the first tick lie in the past.
constexpr double kEpochS = 100;

std::uint64_t ns_of(double now_s) { return static_cast<std::uint64_t>((now_s + kEpochS) * 1e9); }
std::uint64_t tick_of(double now_s) { return ns_of(now_s) / abi::kTickNs; }

// Room for all that the endpoints hold at half load, a power of two.
std::uint64_t lines_for(const GatewayOptions& options) {
  const std::uint64_t capacity = options.capacity_blocks == 0 ? 20'000 : options.capacity_blocks;
  const std::uint64_t words = 2 * capacity * options.endpoints;
  std::uint64_t lines = 1 << 12;
  while (lines * abi::kWordsPerLine < words && lines < (1ULL << 22)) lines *= 2;
  return lines;
}

config::SchedulingConfig scheduling_of(const std::string& policy) {
  if (policy.ends_with(".yaml")) {
    auto loaded = config::load_config(policy, {});
    if (!loaded) throw std::runtime_error(loaded.error().text);
    return loaded->config.scheduling;
  }
  config::SchedulingConfig scheduling;
  scheduling.profile = policy;
  return scheduling;
}

abi::Word* make_words(std::uint64_t count) {
  auto* words = static_cast<abi::Word*>(
      ::operator new (count * sizeof(abi::Word), std::align_val_t{abi::kCacheLineBytes}));
  for (std::uint64_t at = 0; at < count; ++at) new (words + at) abi::Word(0);
  return words;
}

}  // namespace

void Gateway::Free::operator()(abi::Word* words) const {
  ::operator delete (words, std::align_val_t{abi::kCacheLineBytes});
}

Gateway::Gateway(const GatewayOptions& options)
    : options_(options),
      lines_(lines_for(options)),
      words_(make_words(lines_ * abi::kWordsPerLine)),
      records_(new abi::EndpointRecord[options.endpoints + 1]()),
      slots_(new abi::Reservation[kReservations]()),
      ages_(options.endpoints + 1),
      table_({words_.get(), lines_, records_.get(), options.endpoints + 1, &global_horizon_, 10},
             &ages_),
      horizons_({words_.get(), lines_, records_.get(), options.endpoints + 1, &global_horizon_, 10},
                ages_),
      sweep_({words_.get(), lines_, records_.get(), options.endpoints + 1, &global_horizon_, 10},
             ages_, horizons_),
      flights_(options.endpoints + 1, kReservations),
      reservations_(slots_.get(), kReservations, records_.get()),
      endpoints_({records_.get(), options.endpoints + 1, &high_water_, options.capacity_blocks},
                 store_),
      counters_(row_),
      scratch_(std::make_unique<pick::PickScratch>(options.seed)),
      learner_(options.endpoints + 1, kReservations),
      newest_(&learner_.coefficients(kEpochS)),
      random_(options.seed ^ 0xACE) {
  auto schedule = pick::Schedule::make(scheduling_of(options.policy));
  if (!schedule) throw std::runtime_error(schedule.error().text);
  reservations_.observe(flights_);
  core_ = std::make_unique<pick::PickCore>(
      pick::PickCore::Parts{records_.get(), &table_, &reservations_, kBlockTokens, 1, abi::kKeysMax,
                            options.seed, &flights_},
      std::move(*schedule));
  for (std::uint32_t at = 0; at < options.endpoints; ++at) {
    endpoints::EndpointSpec spec;
    spec.name = "e" + std::to_string(at);
    spec.address = spec.name + ":8000";
    // Nothing waits on an engine that nobody asked yet; the first scrape says so.
    spec.waiting = 0;
    spec.running = 0;
    spec.kv_use_ppm = 0;
    if (auto added = endpoints_.add(spec, "sim", tick_of(-kEpochS / 2)); !added)
      throw std::runtime_error(added.error().text);
  }
}

Chosen Gateway::pick(const SimRequest& request, double now_s) {
  keys_.clear();
  // Only whole blocks have a key, at clients as in engines.
  const std::size_t whole = request.prompt_tokens / kBlockTokens;
  for (const std::uint64_t block :
       std::span(request.blocks).first(std::min(whole, request.blocks.size()))) {
    const std::uint64_t mixed = (block ^ (block >> 31)) * 0xD6E8FEB86659FD93ULL;
    keys_.push_back((mixed ^ (mixed >> 32)) | 1);
    if (keys_.size() == abi::kKeysMax) break;
  }
  pick::PickRequest asked;
  asked.keys = keys_;
  asked.prompt_tokens = request.prompt_tokens;
  asked.stream = true;
  asked.slo_ttft_ms = static_cast<float>(request.slo_ttft_s * 1000);
  asked.slo_itl_ms = static_cast<float>(request.slo_itl_s * 1000);
  asked.ticket = {kClient, ++tickets_};
  asked.uid = kUid;
  asked.now_ns = ns_of(now_s);
  const std::uint64_t tick = tick_of(now_s);
  pick::PickResult result;
  core_->pick(asked, store_.acquire(0), tick, *scratch_, counters_, result);
  if (result.status != 0)
    throw std::runtime_error("a pick failed: " + std::to_string(result.status));
  if (!result.reserved) throw std::runtime_error("more requests in flight than reservations");
  core_->remember(asked, result, tick, counters_);
  return {static_cast<std::uint32_t>(result.endpoints[0].endpoint->id - 1), asked.ticket.sequence,
          result.predicted_ttft_ms * 1e-3, result.predicted_itl_ms * 1e-3};
}

// Whole latencies are learned a little off. When reports come is what the daemon's own clock says:
// they carry no time.
double Gateway::noise() {
  const auto uniform = [&] { return (static_cast<double>(random_.next() >> 11) + .5) * 0x1p-53; };
  const double normal =
      std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
  return std::exp(options_.report_noise * normal);
}

void Gateway::first_token(std::uint64_t ticket, double now_s) {
  reservations_.first_token({kClient, ticket}, kUid, ns_of(now_s));
}

void Gateway::done(std::uint64_t ticket, double now_s, std::uint32_t prompt_tokens,
                   std::uint32_t cached_tokens, std::uint32_t output_tokens) {
  reservations_.end({kClient, ticket}, kUid, nullptr, ns_of(now_s),
                    {true, {prompt_tokens, cached_tokens, output_tokens}});
}

void Gateway::failed(std::uint64_t ticket, double now_s) {
  reservations_.end({kClient, ticket}, kUid, nullptr, ns_of(now_s), {});
}

void Gateway::scraped(std::uint32_t endpoint, std::uint32_t waiting, std::uint32_t running,
                      double kv_use, double now_s) {
  abi::EndpointRecord& record = records_[endpoint + 1];
  record.waiting.store(waiting);
  record.running.store(running);
  record.kv_use_ppm.store(static_cast<std::uint32_t>(kv_use * 1e6));
  record.scrape_tick.store(static_cast<std::uint32_t>(tick_of(now_s)));
}

void Gateway::restarted(std::uint32_t endpoint, double now_s) {
  if (auto reset = endpoints_.reset("e" + std::to_string(endpoint), tick_of(now_s)); !reset)
    throw std::runtime_error(reset.error().text);
}

void Gateway::turn(double now_s) {
  const std::uint64_t tick = tick_of(now_s);
  horizons_.advance(tick, static_cast<std::uint64_t>(options_.ttl_s / kTickS));
  sweep_.slice(tick, sweep_.lines_per_tick());
  reservations_.expire_slice(&lease_cursor_, kReservations / 64, tick,
                             static_cast<std::uint64_t>(options_.lease_s / kTickS));
  if (now_s - drawn_down_s_ >= 1) {
    drawn_down_s_ = now_s;
    flights_.draw_down(learner_, ns_of(now_s));
  }
  const auto noise = [this] { return options_.report_noise > 0 ? this->noise() : 1; };
  if (flights_.teach(learner_, noise) != 0) {
    newest_ = &learner_.coefficients(now_s + kEpochS);
    flights_.publish(*newest_);
  }
}

}  // namespace pickd::sim
