#include "daemon/maintenance/model_store.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace pickd::maintenance {

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

// The words of a record in private memory: [ class key ][ words ].
struct Copy {
  std::uint64_t class_key = 0;
  std::uint64_t words[abi::kModelWords] = {};

  std::uint64_t check() const {
    return XXH3_64bits_withSeed(this, sizeof *this, abi::kModelVersion);
  }
};
static_assert(sizeof(latency::ClassMemory) <= sizeof(Copy::words));
static_assert(std::is_trivially_copyable_v<latency::ClassMemory>);

std::optional<Copy> read(const abi::ModelRecord& record) {
  Copy copy;
  copy.class_key = record.class_key.load(kRelaxed);
  for (std::uint32_t at = 0; at < abi::kModelWords; ++at)
    copy.words[at] = record.words[at].load(kRelaxed);
  if (copy.class_key == 0 || copy.check() != record.check.load(kRelaxed)) return std::nullopt;
  return copy;
}

}  // namespace

ModelStore::ModelStore(const Parts& parts) : parts_(parts) {
  std::unordered_map<std::uint64_t, std::uint64_t> newest;  // sequence, by class key
  for (std::uint32_t at = 0; at < 2 * parts.classes; ++at) {
    const std::uint64_t sequence = parts.records[at].sequence.load(std::memory_order_acquire);
    sequence_ = std::max(sequence_, sequence);
    if (sequence == 0) continue;
    const std::optional<Copy> copy = read(parts.records[at]);
    if (!copy || newest[copy->class_key] > sequence) continue;
    newest[copy->class_key] = sequence;
    std::memcpy(&left_[copy->class_key], copy->words, sizeof(latency::ClassMemory));
  }
}

std::optional<latency::ClassMemory> ModelStore::take(std::uint64_t class_key) {
  const auto at = left_.find(class_key);
  if (at == left_.end()) return std::nullopt;
  const latency::ClassMemory memory = at->second;
  left_.erase(at);
  return memory;
}

std::optional<latency::EndpointMemory> ModelStore::endpoint(std::uint32_t id,
                                                            std::uint32_t generation) const {
  if (id >= parts_.endpoint_ids) return std::nullopt;
  const abi::EndpointModelWord word{parts_.endpoints[id].load(kRelaxed)};
  if (word.bits == 0 || word.generation() != generation) return std::nullopt;
  return latency::EndpointMemory{word.log() / abi::EndpointModelWord::kLogScale,
                                 word.evidence() / abi::EndpointModelWord::kEvidenceScale,
                                 word.share() / abi::EndpointModelWord::kShareScale};
}

void ModelStore::write(std::uint32_t class_id, std::uint64_t class_key,
                       const latency::ClassMemory& memory) {
  if (class_id >= parts_.classes) return;
  Copy copy;
  copy.class_key = class_key;
  std::memcpy(copy.words, &memory, sizeof memory);
  abi::ModelRecord* pair = &parts_.records[2 * class_id];
  // Over the older of the two, so that one is whole at any moment.
  abi::ModelRecord& record =
      pair[0].sequence.load(kRelaxed) <= pair[1].sequence.load(kRelaxed) ? pair[0] : pair[1];
  record.class_key.store(class_key, kRelaxed);
  for (std::uint32_t at = 0; at < abi::kModelWords; ++at)
    record.words[at].store(copy.words[at], kRelaxed);
  record.check.store(copy.check(), kRelaxed);
  // Release; partner: the acquire of the next daemon's constructor.
  record.sequence.store(++sequence_, std::memory_order_release);
}

void ModelStore::write_endpoint(std::uint32_t id, std::uint32_t generation,
                                const latency::EndpointMemory& memory) {
  using Word = abi::EndpointModelWord;
  if (id >= parts_.endpoint_ids) return;
  const auto whole = [](double value, double low, double high) {
    return std::lround(std::isfinite(value) ? std::clamp(value, low, high) : 0);
  };
  const Word word = Word::make(
      generation, static_cast<std::int32_t>(whole(memory.log_ratio * Word::kLogScale, -8191, 8191)),
      static_cast<std::uint32_t>(whole(memory.evidence_s * Word::kEvidenceScale, 0, 65'535)),
      static_cast<std::uint32_t>(whole(memory.queued_share * Word::kShareScale, 0, 1023)));
  parts_.endpoints[id].store(word.bits, kRelaxed);
}

}  // namespace pickd::maintenance
