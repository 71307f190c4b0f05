// AgeRun: what one call of stamp() or remove() tells the ages, gathered so that a run of equal
// stamps costs one update. Lives on the stack of that call.
#pragma once

#include <cstdint>

#include "abi/prefix_word.hpp"
#include "daemon/prefix/ages.hpp"

namespace pickd::prefix {

class AgeRun {
 public:
  AgeRun(Ages* ages, std::uint32_t endpoint, bool confirmed, std::uint32_t now)
      : ages_(ages),
        endpoint_(endpoint),
        confirmed_(confirmed),
        now_(now),
        swept_lines_(ages != nullptr ? ages->swept_lines() : 0) {}

  // The same endpoint's, for words that end up confirmed (or not) unlike the rest.
  AgeRun alone(bool confirmed) const { return AgeRun(ages_, endpoint_, confirmed, now_); }

  bool passed(std::uint64_t line) const { return line < swept_lines_; }

  void came(std::uint64_t line) {
    ++new_;
    new_passed_ += passed(line);
  }
  void moved(abi::PrefixWord from, std::uint64_t line) {
    const bool was_confirmed = from.tier() != abi::Tier::kAssumed;
    if (from.stamp() != old_stamp_ || was_confirmed != old_confirmed_) {
      flush_old();
      old_stamp_ = from.stamp();
      old_confirmed_ = was_confirmed;
    }
    ++old_;
    old_passed_ += passed(line);
    came(line);
  }
  void finish(std::uint32_t stamp) {
    flush_old();
    if (ages_ == nullptr || new_ == 0) return;
    if (EndpointAges* ages = ages_->find(endpoint_, confirmed_))
      ages->add(stamp, now_, new_, new_passed_);
    new_ = 0;
    new_passed_ = 0;
  }
  // A live word of any endpoint is gone.
  void gone(abi::PrefixWord word, std::uint64_t line) const {
    if (ages_ == nullptr || word.endpoint() >= ages_->endpoint_ids()) return;
    EndpointAges* ages = ages_->find(word.endpoint(), word.tier() != abi::Tier::kAssumed);
    if (ages != nullptr) ages->add(word.stamp(), now_, -1, passed(line) ? -1 : 0);
  }

 private:
  void flush_old() {
    if (old_ != 0 && ages_ != nullptr) {
      EndpointAges* ages = ages_->find(endpoint_, old_confirmed_);
      if (ages != nullptr) ages->add(old_stamp_, now_, -old_, -old_passed_);
    }
    old_ = 0;
    old_passed_ = 0;
  }

  Ages* ages_;
  std::uint32_t endpoint_;
  bool confirmed_;
  std::uint32_t now_;
  std::uint64_t swept_lines_;
  std::uint32_t old_stamp_ = 0;
  bool old_confirmed_ = false;
  std::int32_t old_ = 0;
  std::int32_t old_passed_ = 0;
  std::int32_t new_ = 0;
  std::int32_t new_passed_ = 0;
};

}  // namespace pickd::prefix
