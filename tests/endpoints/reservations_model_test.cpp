// A million random operations on the reservations against a plain map: the counts are exact sums.
#include <map>
#include <vector>

#include "daemon/base/random.hpp"
#include "tests/endpoints/reservation_fixture.hpp"

namespace pickd::endpoints::test {
namespace {

struct Held {
  std::uint32_t endpoint;
  std::uint32_t generation;
  std::uint32_t uid;
  std::int64_t tokens;  // not given back yet
  bool first_token;
  std::uint64_t tick;
};

struct Sums {
  std::int64_t requests = 0;
  std::int64_t tokens = 0;
};

class ReservationsModel : public ReservationsTest {
 protected:
  static constexpr std::uint32_t kModelSlots = 2048;
  static constexpr std::uint64_t kLease = 60'000;

  ReservationsModel() : ReservationsTest(kModelSlots), sums_(kEndpoints) {}

  bool lives(const Held& held) const { return held.generation == generation(held.endpoint); }
  void give_back(const Held& held) {
    if (!lives(held)) return;
    sums_[held.endpoint].requests -= 1;
    sums_[held.endpoint].tokens -= held.tokens;
  }
  ReportOutcome ended(const Held& held) const {
    return lives(held) ? ReportOutcome::kApplied : ReportOutcome::kStaleGeneration;
  }
  std::uint32_t any_endpoint() { return 1 + random_.below(kEndpoints - 1); }
  // A ticket that was given, mostly; live or ended.
  std::uint64_t any_sequence() {
    return last_ == 0 ? 1 : 1 + last_ - random_.below(std::min<std::uint64_t>(last_, 2500));
  }

  void step_reserve() {
    NewReservation made = reservation({9, ++last_}, any_endpoint(), random_.below(5000), tick_);
    made.uid = kUid + random_.below(2);
    if (!table_.reserve(made)) return;
    model_[last_] = {abi::handle_endpoint(made.endpoint),
                     generation(abi::handle_endpoint(made.endpoint)),
                     made.uid,
                     made.uncached_tokens,
                     false,
                     tick_};
    Sums& sum = sums_[abi::handle_endpoint(made.endpoint)];
    sum.requests += 1;
    sum.tokens += made.uncached_tokens;
  }

  void step_report() {
    const std::uint64_t sequence = any_sequence();
    const Ticket ticket{9, sequence};
    const auto at = model_.find(sequence);
    const bool stranger = random_.below(50) == 0;
    const std::uint32_t uid = at == model_.end() ? kUid : stranger ? 77 : at->second.uid;
    const std::uint32_t kind = random_.below(8);
    const std::uint32_t to = any_endpoint();
    ReportOutcome outcome{};
    switch (kind) {
      case 0:
      case 1: outcome = table_.first_token(ticket, uid); break;
      case 2: outcome = table_.move(ticket, uid, handle(to)); break;
      case 3: outcome = table_.touch(ticket, uid, tick_); break;
      default: outcome = table_.end(ticket, uid); break;
    }
    if (at == model_.end()) {
      ASSERT_EQ(outcome, ReportOutcome::kUnknownTicket) << sequence;
      return;
    }
    if (stranger) {
      ASSERT_EQ(outcome, ReportOutcome::kOtherUser);
      return;
    }
    apply(kind, to, at, outcome);
  }

  void apply(std::uint32_t kind, std::uint32_t to, std::map<std::uint64_t, Held>::iterator at,
             ReportOutcome outcome) {
    Held& held = at->second;
    if (kind < 2) {
      ASSERT_EQ(outcome, held.first_token ? ReportOutcome::kApplied : ended(held));
      if (!held.first_token && lives(held)) sums_[held.endpoint].tokens -= held.tokens;
      held.first_token = true;
      held.tokens = 0;
    } else if (kind == 2) {
      ASSERT_EQ(outcome, ended(held));
      give_back(held);
      held.endpoint = to;
      held.generation = generation(to);
      sums_[to].requests += 1;
      sums_[to].tokens += held.tokens;
    } else if (kind == 3) {
      ASSERT_EQ(outcome, ReportOutcome::kApplied);
      held.tick = tick_;
    } else {
      ASSERT_EQ(outcome, ended(held));
      give_back(held);
      model_.erase(at);
    }
  }

  template <typename Which>
  std::uint32_t drop_if(Which which) {
    std::uint32_t dropped = 0;
    for (auto at = model_.begin(); at != model_.end();) {
      if (!which(*at)) {
        ++at;
        continue;
      }
      give_back(at->second);
      at = model_.erase(at);
      ++dropped;
    }
    return dropped;
  }

  void step_rare() {
    switch (random_.below(3)) {
      case 0: {
        const std::uint32_t id = any_endpoint();
        next_generation(id);
        sums_[id] = {};
        return;
      }
      case 1: {
        std::uint32_t cursor = random_.below(kModelSlots);
        const std::uint32_t expired = table_.expire_slice(&cursor, kModelSlots, tick_, kLease);
        ASSERT_EQ(expired,
                  drop_if([&](const auto& entry) { return tick_ - entry.second.tick > kLease; }));
        return;
      }
      default: {
        const std::uint64_t after = last_ < 100 ? 1 : last_ - 100;
        const std::uint32_t released = table_.release_client(9, kUid, after);
        ASSERT_EQ(released, drop_if([&](const auto& entry) {
                    return entry.second.uid == kUid && entry.first > after;
                  }));
      }
    }
  }

  void check() const {
    for (std::uint32_t id = 1; id < kEndpoints; ++id) {
      ASSERT_EQ(requests(id), static_cast<std::uint64_t>(sums_[id].requests)) << id;
      ASSERT_EQ(tokens(id), static_cast<std::uint64_t>(sums_[id].tokens)) << id;
    }
    ASSERT_EQ(table_.count_held(), model_.size());
  }

  base::Random random_{20'240'601};
  std::map<std::uint64_t, Held> model_;
  std::vector<Sums> sums_;
  std::uint64_t last_ = 0;
  std::uint64_t tick_ = 1000;
};

TEST_F(ReservationsModel, KeepsExactCountsThroughAMillionRandomOperations) {
  for (int step = 0; step < 1'000'000; ++step) {
    const std::uint32_t draw = random_.below(1000);
    if (draw < 400) {
      step_reserve();
    } else if (draw < 999) {
      ASSERT_NO_FATAL_FAILURE(step_report()) << step;
    } else {
      ASSERT_NO_FATAL_FAILURE(step_rare()) << step;
    }
    ++tick_;
    if (step % 4096 == 0) {
      ASSERT_NO_FATAL_FAILURE(check()) << step;
    }
  }
  ASSERT_NO_FATAL_FAILURE(check());
  EXPECT_GT(last_, 300'000U);
  EXPECT_FALSE(model_.empty());
}

}  // namespace
}  // namespace pickd::endpoints::test
