#include "daemon/workers/answer.hpp"

#include <cstring>
#include <limits>
#include <string>

#include "daemon/endpoints/topology.hpp"

namespace pickd::workers {

namespace {

class Writer {
 public:
  explicit Writer(std::span<std::byte> buffer) : buffer_(buffer) {}

  void put(const void* from, std::size_t size) {
    std::memcpy(buffer_.data() + used_, from, size);
    used_ += size;
  }
  // By words, in place: the texts of an answer are short, and a call for each costs more than they.
  void put_text(const std::string& text) {
    const char* from = text.data();
    std::byte* to = buffer_.data() + used_;
    std::size_t left = text.size();
    used_ += left;
    for (; left >= sizeof(std::uint64_t); left -= sizeof(std::uint64_t)) {
      std::memcpy(to, from, sizeof(std::uint64_t));
      from += sizeof(std::uint64_t);
      to += sizeof(std::uint64_t);
    }
    for (; left != 0; --left) *to++ = static_cast<std::byte>(*from++);
  }
  std::span<const std::byte> bytes() const { return buffer_.first(used_); }
  std::size_t used() const { return used_; }

 private:
  std::span<std::byte> buffer_;
  std::size_t used_ = 0;
};

abi::PickedEndpoint entry_of(const pick::PickedEndpoint& picked) {
  abi::PickedEndpoint entry{};
  entry.handle = abi::endpoint_handle(picked.endpoint->id, picked.generation);
  entry.match_tokens = picked.match_tokens;
  entry.score = picked.score;
  entry.role = static_cast<std::uint8_t>(picked.endpoint->role);
  entry.name_bytes = static_cast<std::uint8_t>(picked.endpoint->name.size());
  entry.address_bytes = static_cast<std::uint8_t>(picked.endpoint->address.size());
  return entry;
}

std::size_t entry_bytes_of(const pick::PickedEndpoint& picked) {
  return sizeof(abi::PickedEndpoint) + picked.endpoint->name.size() +
         picked.endpoint->address.size();
}

}  // namespace

std::span<const std::byte> encode_picked(std::uint64_t sequence, const pick::PickResult& result,
                                         bool cut, std::uint32_t prompt_tokens,
                                         std::span<std::byte> buffer) {
  abi::PickedRecord record{};
  record.head.type = abi::RecordType::kPick;
  record.head.flags = cut ? abi::kPickedTruncated : std::uint8_t{0};
  record.head.sequence = sequence;
  record.status = result.status;
  record.reason = result.reason;
  record.prompt_tokens = prompt_tokens;
  record.predicted_ttft_ms = result.predicted_ttft_ms;
  record.predicted_itl_ms = result.predicted_itl_ms;
  std::size_t bytes = sizeof record;
  // Without room for a stage before it the winner does it all; the first token frees what was
  // reserved.
  const auto has_room_for = [&](bool wanted, const pick::PickedEndpoint& stage) {
    if (!wanted) return false;
    const std::size_t size = entry_bytes_of(stage);
    if (bytes + entry_bytes_of(result.endpoints[0]) + size > buffer.size()) return false;
    bytes += size;
    return true;
  };
  if (has_room_for(result.has_prefill, result.prefill))
    record.prefill_bytes = static_cast<std::uint32_t>(entry_bytes_of(result.prefill));
  if (has_room_for(result.has_encode, result.encode)) record.head.flags |= abi::kPickedEncode;
  std::uint32_t count = 0;
  std::size_t text_bytes = 0;
  for (; count < result.count; ++count) {
    const std::size_t entry = entry_bytes_of(result.endpoints[count]);
    if (bytes + entry > buffer.size()) break;
    text_bytes += entry - sizeof(abi::PickedEndpoint);
    bytes += entry;
  }
  record.endpoint_count = static_cast<std::uint8_t>(count);
  record.text_bytes = static_cast<std::uint16_t>(text_bytes);
  record.head.bytes = static_cast<std::uint32_t>(bytes);

  Writer writer(buffer);
  writer.put(&record, sizeof record);
  for (std::uint32_t at = 0; at < count; ++at) {
    const abi::PickedEndpoint entry = entry_of(result.endpoints[at]);
    writer.put(&entry, sizeof entry);
  }
  const auto put_text = [&writer](const endpoints::TopologyEndpoint& endpoint) {
    writer.put_text(endpoint.name);
    writer.put_text(endpoint.address);
  };
  for (std::uint32_t at = 0; at < count; ++at) put_text(*result.endpoints[at].endpoint);
  const auto put_stage = [&](const pick::PickedEndpoint& stage) {
    const abi::PickedEndpoint entry = entry_of(stage);
    writer.put(&entry, sizeof entry);
    put_text(*stage.endpoint);
  };
  if (record.prefill_bytes != 0) put_stage(result.prefill);
  if ((record.head.flags & abi::kPickedEncode) != 0) put_stage(result.encode);
  return writer.bytes();
}

std::span<const std::byte> encode_refused(std::uint64_t sequence, int status,
                                          std::span<std::byte> buffer) {
  pick::PickResult result{};
  result.status = status;
  result.predicted_ttft_ms = std::numeric_limits<float>::quiet_NaN();
  result.predicted_itl_ms = std::numeric_limits<float>::quiet_NaN();
  return encode_picked(sequence, result, false, 0, buffer);
}

std::span<const std::byte> encode_reported(std::uint64_t sequence, int status,
                                           std::span<std::byte> buffer) {
  abi::ReportedRecord record{};
  record.head.bytes = sizeof record;
  record.head.type = abi::RecordType::kReport;
  record.head.sequence = sequence;
  record.status = status;
  Writer writer(buffer);
  writer.put(&record, sizeof record);
  return writer.bytes();
}

}  // namespace pickd::workers
