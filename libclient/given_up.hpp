// GivenUp: tickets of this client for which a daemon may hold a reservation that nobody will report
// on: picks that it took and did not answer before it went away, and reports that ended a request
// and were lost with it, or made while there was no daemon. They are cancelled over the next
// channel. Under the pool's mutex.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pickd::client {

class GivenUp {
 public:
  GivenUp() = default;
  GivenUp(const GivenUp&) = delete;
  GivenUp& operator=(const GivenUp&) = delete;
  ~GivenUp();

  // As many as a daemon can hold reservations of. One for which there is no room or memory ends
  // with its lease.
  void add(std::uint64_t sequence);
  std::size_t count() const { return count_; }
  std::uint64_t last() const { return sequences_[count_ - 1]; }
  void remove_last() { --count_; }

 private:
  std::uint64_t* sequences_ = nullptr;
  std::size_t count_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace pickd::client
