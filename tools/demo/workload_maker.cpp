// Random conversations. See workload_maker.hpp.
#include "tools/demo/workload_maker.hpp"

#include <cmath>

#include "daemon/base/random.hpp"

namespace pickd::demo {

namespace {

class Maker {
 public:
  explicit Maker(const WorkloadOptions& options) : options_(options), random_(options.seed) {}

  std::string make() {
    for (std::uint32_t i = 0; i < options_.applications; ++i) {
      out_ += "system ";
      words(between(options_.system_tokens_min, options_.system_tokens_max));
      out_ += '\n';
    }
    // Exponential gaps: arrivals of many people who know nothing of each other.
    for (double at_s = gap_s(); at_s < options_.seconds; at_s += gap_s()) conversation(at_s);
    return std::move(out_);
  }

 private:
  double uniform() { return (static_cast<double>(random_.next() >> 11) + 0.5) * 0x1p-53; }
  double gap_s() { return -std::log(uniform()) / options_.conversations_per_s; }
  std::uint32_t between(std::uint32_t least, std::uint32_t most) {
    return least + random_.below(most - least + 1);
  }

  // Words of four bytes: one pseudo-token of enginesim each.
  void words(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint64_t bits = random_.next();
      for (int letter = 0; letter < 3; ++letter, bits /= 26) {
        out_ += static_cast<char>('a' + bits % 26);
      }
      out_ += ' ';
    }
  }

  void conversation(double at_s) {
    out_ += "conversation " + std::to_string(std::llround(at_s * 1000)) + ' ' +
            std::to_string(random_.below(options_.applications)) + '\n';
    double turn_s = 0;
    for (std::uint32_t i = 0, turns = between(options_.turns_min, options_.turns_max); i < turns;
         ++i) {
      out_ += "turn " + std::to_string(std::llround(turn_s * 1000)) + ' ' +
              std::to_string(between(options_.answer_tokens_min, options_.answer_tokens_max)) + ' ';
      words(between(options_.user_tokens_min, options_.user_tokens_max));
      out_ += '\n';
      turn_s += options_.think_s_min + uniform() * (options_.think_s_max - options_.think_s_min);
    }
  }

  const WorkloadOptions& options_;
  base::Random random_;
  std::string out_;
};

}  // namespace

std::string make_workload(const WorkloadOptions& options) { return Maker(options).make(); }

}  // namespace pickd::demo
