// OwnLoad: see own_load.hpp.
#include "libclient/own_load.hpp"

namespace pickd::client {

namespace {
constexpr std::uint64_t kAgeEveryNs = 1'000'000'000;
}  // namespace

void OwnLoad::forget(Entry& entry) {
  tokens_[entry.endpoint] -= entry.prefill + entry.decode;
  entry.sequence = 0;
}

void OwnLoad::add(std::uint64_t sequence, std::uint32_t endpoint, std::uint64_t prefill,
                  std::uint64_t decode, std::uint64_t now_ns) {
  Entry& entry = place_of(sequence);
  if (entry.sequence != 0) forget(entry);
  entry = {sequence, now_ns, prefill, decode, endpoint};
  tokens_[endpoint] += prefill + decode;
}

void OwnLoad::first_token(std::uint64_t sequence) {
  if (!has(sequence)) return;
  Entry& entry = place_of(sequence);
  tokens_[entry.endpoint] -= entry.prefill;
  entry.prefill = 0;
}

void OwnLoad::move(std::uint64_t sequence, std::uint32_t endpoint) {
  if (!has(sequence)) return;
  Entry& entry = place_of(sequence);
  tokens_[entry.endpoint] -= entry.prefill + entry.decode;
  entry.endpoint = endpoint;
  tokens_[endpoint] += entry.prefill + entry.decode;
}

bool OwnLoad::has(std::uint64_t sequence) const {
  return sequence != 0 && entries_[sequence % kEntries].sequence == sequence;
}

bool OwnLoad::end(std::uint64_t sequence) {
  if (!has(sequence)) return false;
  forget(place_of(sequence));
  return true;
}

void OwnLoad::age(std::uint64_t now_ns) {
  if (now_ns - aged_ns_ < kAgeEveryNs) return;
  aged_ns_ = now_ns;
  for (Entry& entry : entries_) {
    if (entry.sequence != 0 && now_ns - entry.since_ns >= kLifeNs) forget(entry);
  }
}

void OwnLoad::clear() {
  for (Entry& entry : entries_) {
    if (entry.sequence != 0) forget(entry);
  }
}

}  // namespace pickd::client
