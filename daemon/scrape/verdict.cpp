#include "daemon/scrape/verdict.hpp"

namespace pickd::scrape {

namespace {

using abi::Counter;
using net::http::Failure;

constexpr int kServerErrors = 500;

Counter counter_of(Failure failure) {
  switch (failure) {
    case Failure::kResolve:
    case Failure::kConnect: return Counter::scrapes_no_connection;
    case Failure::kConnectTimeout:
    case Failure::kTimeout:
    case Failure::kTotalTimeout: return Counter::scrapes_timed_out;
    case Failure::kTls: return Counter::scrapes_tls;
    case Failure::kReset: return Counter::scrapes_cut;
    case Failure::kHeadTooLarge:
    case Failure::kBodyTooLarge: return Counter::scrapes_too_large;
    case Failure::kEncoded:
    case Failure::kRedirect: return Counter::scrapes_not_taken;
    case Failure::kMalformed: return Counter::scrapes_malformed;
    case Failure::kNoResources: return Counter::scrapes_no_connection;
    case Failure::kNone:
    case Failure::kStopped: break;
  }
  return Counter::scrapes_unreadable;
}

// Whether the server, for all that is wrong with its page, is one that answers.
bool lives(Failure failure) {
  return failure == Failure::kHeadTooLarge || failure == Failure::kBodyTooLarge ||
         failure == Failure::kEncoded || failure == Failure::kRedirect ||
         failure == Failure::kStopped;
}

}  // namespace

Judged judge(const net::http::Outcome& outcome, bool health) {
  if (outcome.ok()) return {};
  if (outcome.failure == Failure::kNoResources) {
    return {Verdict::kNotAsked, counter_of(outcome.failure),
            net::http::failure_name(outcome.failure)};
  }
  if (outcome.failure != Failure::kNone) {
    const bool alive = !health && lives(outcome.failure);
    return {alive ? Verdict::kAlive : Verdict::kFailed, counter_of(outcome.failure),
            net::http::failure_name(outcome.failure)};
  }
  const bool ill = health || outcome.status >= kServerErrors;
  return {ill ? Verdict::kFailed : Verdict::kAlive, Counter::scrapes_status,
          (health ? "health path answers " : "status ") + std::to_string(outcome.status)};
}

}  // namespace pickd::scrape
