// The endpoint table's own reset against picks: whatever two picks (or event writers) and the clock
// do between any two of its steps, nothing that was stamped for the old generation is returned
// afterwards. Enumerated: every order of the others' steps, at every place of the reset.
#include <gtest/gtest.h>

#include <array>

#include "daemon/base/step.hpp"
#include "daemon/endpoints/endpoint_table.hpp"
#include "tests/prefix/table_fixture.hpp"

namespace pickd::crash {
namespace {

constexpr std::uint16_t kId = 1;
constexpr std::size_t kPickSteps = 3;

// Actors beside the reset: 0 and 1 are picks, 2 is the clock.
using Order = std::vector<std::size_t>;

struct Pick {
  std::uint64_t tick = 0;
  abi::LifeWord seen;
  std::size_t step = 0;
};

class World {
 public:
  World(abi::Tier tier, const Order& order, const std::vector<std::size_t>& places)
      : tier_(tier), order_(order), places_(places) {
    EXPECT_TRUE(
        table_.add({.name = "a", .address = "10.0.0.1:1", .models = {}}, "file", t_.now).ok());
    t_.now += 5;
  }

  // Runs the reset with the others' step i at its place i; gives how many places it has.
  std::size_t run() {
    running_ = this;
    base::step_hook = [](const char* name) {
      if (std::string_view(name).rfind("reset:", 0) == 0) running_->at_place();
    };
    EXPECT_TRUE(table_.reset("a", t_.now).ok());
    base::step_hook = nullptr;
    const std::size_t places = place_;
    place_ = ~std::size_t{0};  // what is left comes after the reset
    while (next_ < order_.size()) step(order_[next_++]);
    return places;
  }

  void check() {
    for (std::uint64_t prompt = 0; prompt < 2; ++prompt) {
      for (const bool exact : {false, true}) {
        if (t_.match_one(keys(prompt), kId, exact) == 0) continue;
        ASSERT_EQ(stamped_for_[prompt].generation(), t_.life(kId).generation())
            << "order " << testing::PrintToString(order_) << " at "
            << testing::PrintToString(places_);
      }
    }
  }

 private:
  static std::vector<std::uint64_t> keys(std::uint64_t prompt) {
    return prefix::test::chain(100 + prompt, 4);
  }

  void at_place() {
    while (next_ < order_.size() && places_[next_] <= place_) step(order_[next_++]);
    ++place_;
  }

  void step(std::size_t actor) {
    if (actor == 2) {
      t_.now += 1;
      return;
    }
    Pick& pick = picks_[actor];
    switch (pick.step++) {
      case 0: pick.tick = t_.now; break;        // the tick first,
      case 1: pick.seen = t_.life(kId); break;  // then the candidates
      default:
        t_.table.stamp(keys(actor), kId, prefix::stamp_at(pick.tick, pick.seen), tier_,
                       static_cast<std::uint32_t>(pick.tick));
        stamped_for_[actor] = pick.seen;
    }
  }

  static World* running_;

  abi::Tier tier_;
  const Order& order_;
  const std::vector<std::size_t>& places_;
  prefix::test::TestTable t_{{.lines = 8, .endpoint_ids = 3, .tick = 5000, .ttl_ticks = 50}};
  abi::Word high_water_{1};
  endpoints::TopologyStore store_;
  endpoints::EndpointTable table_{
      {&t_.record(0), 3, &high_water_, 500, {}, [this] { return t_.now; }, {}}, store_};
  std::array<Pick, 2> picks_{};
  std::array<abi::LifeWord, 2> stamped_for_{};
  std::size_t place_ = 0;
  std::size_t next_ = 0;
};
World* World::running_ = nullptr;

// Every order in which `left` steps of each actor can come.
void orders(std::array<std::size_t, 3> left, Order& order, std::vector<Order>& all) {
  bool done = true;
  for (std::size_t actor = 0; actor < left.size(); ++actor) {
    if (left[actor] == 0) continue;
    done = false;
    --left[actor];
    order.push_back(actor);
    orders(left, order, all);
    order.pop_back();
    ++left[actor];
  }
  if (done) all.push_back(order);
}

// Every way to put `count` steps, in their order, at places 0 to `last`.
void distributions(std::size_t count, std::size_t last, std::vector<std::size_t>& places,
                   std::vector<std::vector<std::size_t>>& all) {
  if (places.size() == count) {
    all.push_back(places);
    return;
  }
  for (std::size_t place = places.empty() ? 0 : places.back(); place <= last; ++place) {
    places.push_back(place);
    distributions(count, last, places, all);
    places.pop_back();
  }
}

std::uint64_t enumerate(abi::Tier tier, std::array<std::size_t, 3> steps) {
  std::vector<Order> all_orders;
  Order order;
  orders(steps, order, all_orders);
  const std::vector<std::size_t> none(order.size());
  Order nobody;
  const std::size_t places = World(tier, nobody, none).run();
  EXPECT_GE(places, 2U) << "the reset has steps";
  // When the clock moves under it, the reset raises its floors in two more steps.
  std::vector<std::vector<std::size_t>> all_places;
  std::vector<std::size_t> at;
  distributions(steps[0] + steps[1] + steps[2], places + 2, at, all_places);
  std::uint64_t count = 0;
  for (const Order& one : all_orders) {
    for (const auto& where : all_places) {
      World world(tier, one, where);
      world.run();
      world.check();
      ++count;
      if (testing::Test::HasFatalFailure()) return count;
    }
  }
  return count;
}

TEST(ResetInterleavings, ReturnNothingOfTheOldGeneration) {
  for (const abi::Tier tier : {abi::Tier::kAssumed, abi::Tier::kGpu}) {
    const std::uint64_t one = enumerate(tier, {kPickSteps, 0, 2});
    const std::uint64_t two = enumerate(tier, {kPickSteps, kPickSteps, 1});
    std::printf("  %llu orders of one pick and two ticks, %llu of two picks and one\n",
                static_cast<unsigned long long>(one), static_cast<unsigned long long>(two));
  }
}

}  // namespace
}  // namespace pickd::crash
