// TraceWriter: what a daemon recorded, as the lines of a trace: timestamp, input_length,
// output_length, hash_ids. Lines come in the order of the picks, so a pick is held until its end is
// known.
//
// The chain keys of the prompts do not leave: each gets a number, in the order they come.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>

namespace pickd::ctl {

class TraceWriter {
 public:
  using Write = std::function<void(const std::string& line)>;

  explicit TraceWriter(Write write) : write_(std::move(write)) {}

  // Entries as of abi/recording.hpp, whole ones. Throws std::runtime_error when they are not.
  void add(std::span<const std::uint64_t> entries);
  // What is held still: its output is what was expected of it, else the mean of those that ended.
  void finish();

  std::uint64_t picks() const { return picks_; }
  std::uint64_t written() const { return written_; }
  std::uint64_t guessed() const { return guessed_; }  // outputs that nobody told
  // Of the tokens of the prompts: what the picked endpoints were believed to hold.
  double hit_share() const;
  // The same as the trace's numbers can show it, with one cache for all that forgets nothing. Less
  // than hit_share() where prompts share less than a whole block of the trace.
  double shown_hit_share() const;

 private:
  struct Held {
    std::uint64_t now_ns;
    std::uint32_t prompt_tokens;
    std::uint32_t expected_output_tokens;
    std::vector<std::uint64_t> ids;
    std::int64_t output_tokens = kOpen;
  };
  using Ticket = std::pair<std::uint64_t, std::uint64_t>;
  static constexpr std::int64_t kOpen = -1;    // it has not ended
  static constexpr std::int64_t kUntold = -2;  // it has, and nobody said how long the answer was

  void add_pick(std::span<const std::uint64_t> entry);
  void add_end(std::span<const std::uint64_t> entry);
  std::uint64_t id_of(std::uint64_t key);
  void write_ended();
  void write(const Held& held);

  Write write_;
  std::unordered_map<std::uint64_t, std::uint64_t> ids_;
  std::uint64_t next_id_ = 0;
  std::deque<Held> held_;
  std::uint64_t first_held_ = 0;          // number of the pick at the front
  std::map<Ticket, std::uint64_t> open_;  // number of the pick
  std::uint64_t first_ns_ = 0;
  std::uint64_t picks_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t guessed_ = 0;
  std::uint64_t prompt_tokens_ = 0;
  std::uint64_t match_tokens_ = 0;
  std::uint64_t shown_tokens_ = 0;
  std::uint64_t told_ = 0;           // picks whose output was told
  std::uint64_t output_tokens_ = 0;  // of those
};

}  // namespace pickd::ctl
