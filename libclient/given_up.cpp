// GivenUp: see given_up.hpp.
#include "libclient/given_up.hpp"

#include <stdlib.h>

namespace pickd::client {

GivenUp::~GivenUp() { ::free(sequences_); }

void GivenUp::add(std::uint64_t sequence) {
  constexpr std::size_t kFirst = 64;
  constexpr std::size_t kMost = 1 << 20;  // reservations.max at most
  if (count_ == capacity_) {
    if (capacity_ == kMost) return;
    const std::size_t more = capacity_ == 0 ? kFirst : 2 * capacity_;
    auto* sequences =
        static_cast<std::uint64_t*>(::realloc(sequences_, more * sizeof(std::uint64_t)));
    if (sequences == nullptr) return;
    sequences_ = sequences;
    capacity_ = more;
  }
  sequences_[count_++] = sequence;
}

}  // namespace pickd::client
