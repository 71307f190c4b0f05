// Verdict: what an exchange with an engine says about it: a page to be read, a sign of life, or a
// failure; the counter of its kind and the words for the log. Pure.
#pragma once

#include <string>

#include "abi/counters.hpp"
#include "daemon/net/http/response.hpp"

namespace pickd::scrape {

enum class Verdict : std::uint8_t {
  kGood,      // 2xx, the whole answer came
  kAlive,     // an answer that is no metrics page: the engine lives, its load is not known
  kNotAsked,  // for what this machine lacks: says nothing of the engine
  kFailed,    // no answer, or one that says that the engine is ill
};

struct Judged {
  Verdict verdict = Verdict::kGood;
  abi::Counter counter = abi::Counter::scrapes;
  std::string reason;  // the kind in a few words, the same for the same kind; empty: good
};

// `health`: of a health path, where anything but 2xx is a failure.
Judged judge(const net::http::Outcome& outcome, bool health);

}  // namespace pickd::scrape
