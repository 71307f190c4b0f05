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
  std::span<const std::byte> bytes() const { return buffer_.first(used_); }
  std::size_t used() const { return used_; }

 private:
  std::span<std::byte> buffer_;
  std::size_t used_ = 0;
};

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
  std::uint32_t count = 0;
  std::size_t text_bytes = 0;
  std::size_t bytes = sizeof record;
  for (; count < result.count; ++count) {
    const endpoints::TopologyEndpoint& endpoint = *result.endpoints[count].endpoint;
    const std::size_t text = endpoint.name.size() + endpoint.address.size();
    if (bytes + sizeof(abi::PickedEndpoint) + text > buffer.size()) break;
    text_bytes += text;
    bytes += sizeof(abi::PickedEndpoint) + text;
  }
  record.endpoint_count = static_cast<std::uint8_t>(count);
  record.text_bytes = static_cast<std::uint16_t>(text_bytes);
  record.head.bytes = static_cast<std::uint32_t>(bytes);

  Writer writer(buffer);
  writer.put(&record, sizeof record);
  for (std::uint32_t at = 0; at < count; ++at) {
    const pick::PickedEndpoint& picked = result.endpoints[at];
    abi::PickedEndpoint entry{};
    entry.handle = abi::endpoint_handle(picked.endpoint->id, picked.generation);
    entry.match_tokens = picked.match_tokens;
    entry.score = picked.score;
    entry.role = static_cast<std::uint8_t>(picked.endpoint->role);
    entry.name_bytes = static_cast<std::uint8_t>(picked.endpoint->name.size());
    entry.address_bytes = static_cast<std::uint8_t>(picked.endpoint->address.size());
    writer.put(&entry, sizeof entry);
  }
  for (std::uint32_t at = 0; at < count; ++at) {
    const endpoints::TopologyEndpoint& endpoint = *result.endpoints[at].endpoint;
    writer.put(endpoint.name.data(), endpoint.name.size());
    writer.put(endpoint.address.data(), endpoint.address.size());
  }
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
