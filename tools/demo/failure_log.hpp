// FailureLog: the request log of a run in which engines fail, and what it proves: no request went
// to a dead engine after the first one that failed there, and none was lost. Computes only.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pickd::demo {

// Times are CLOCK_MONOTONIC in microseconds.
inline constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

// One failure of one engine, and what the log says of it.
struct Outage {
  std::string engine;
  std::string what;  // "killed", "hung", ...
  std::int64_t from_us = 0;
  std::int64_t to_us = kForever;  // from when on it serves again

  std::optional<std::int64_t> first_failure_us;
  std::uint64_t failed = 0;        // attempts that failed there meanwhile
  std::uint64_t sent_after = 0;    // attempts sent there after the first failure: none is right
  std::uint64_t served_again = 0;  // attempts sent there after its end that were answered
};

class FailureLog {
 public:
  // A line of the request log (tools/demo/attempts.h has the format). False when it is none.
  bool add_line(std::string_view line);
  // A line for people, where it tells of a failure; else empty.
  static std::string words_of(std::string_view line);

  void begin_outage(const std::string& engine, const std::string& what, std::int64_t at_us);
  void end_outage(const std::string& engine, std::int64_t at_us);

  // The outages, judged by all lines that came; in the order in which they began.
  std::vector<Outage> outages() const;
  std::uint64_t requests() const { return requests_.size(); }
  std::uint64_t answered() const;
  std::uint64_t lost() const { return requests() - answered(); }
  std::uint64_t retried() const;  // answered, but not by the first attempt
  std::uint64_t answered_by(const std::string& engine) const;

  // What is wrong, in words, a line each; empty: all is well.
  std::vector<std::string> wrongs() const;

 private:
  enum class What { kSend, kFail, kDone, kLost };
  struct Entry {
    What what;
    std::int64_t at_us;
    std::string request;
    std::string engine;
  };
  struct Request {
    std::uint64_t attempts = 0;
    bool answered = false;
  };

  void judge(Outage& outage) const;

  std::vector<Entry> entries_;
  std::map<std::string, Request, std::less<>> requests_;
  std::vector<Outage> outages_;
};

}  // namespace pickd::demo
