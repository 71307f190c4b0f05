#include "daemon/workers/submission.hpp"

#include <algorithm>
#include <cstring>

#include "daemon/base/untrusted.hpp"
#include "daemon/workers/slo_headers.hpp"
#include "daemon/workers/ttl_header.hpp"

namespace pickd::workers {

namespace {

using base::Untrusted;

struct FieldCounts {
  std::size_t subset = 0;
  std::size_t attributes = 0;
  std::uint32_t seen = 0;  // bit k: a field of kind k, of those that may stand once
};

// Takes a string that may stand once, an empty one too.
bool take_once(abi::FieldKind kind, std::string_view content, std::size_t bytes_max,
               std::string_view& into, FieldCounts& counts) {
  const std::uint32_t bit = 1U << static_cast<std::uint32_t>(kind);
  if ((counts.seen & bit) != 0 || content.size() > bytes_max) return false;
  counts.seen |= bit;
  into = content;
  return true;
}

bool take_attribute(std::string_view content, DecodeScratch& scratch, FieldCounts& counts) {
  const std::size_t nul = content.find('\0');
  if (nul == std::string_view::npos || counts.attributes == scratch.attributes.size()) return false;
  const pick::Attribute attribute{content.substr(0, nul), content.substr(nul + 1)};
  if (attribute.key.size() > abi::kAttributeBytesMax ||
      attribute.value.size() > abi::kAttributeBytesMax) {
    return false;
  }
  scratch.attributes[counts.attributes++] = attribute;
  return true;
}

bool take_field(abi::FieldKind kind, std::string_view content, DecodeScratch& scratch,
                pick::PickRequest& request, FieldCounts& counts) {
  switch (kind) {
    case abi::FieldKind::kModel:
      return take_once(kind, content, abi::kModelBytesMax, request.model, counts);
    case abi::FieldKind::kAdapter:
      return take_once(kind, content, abi::kAdapterBytesMax, request.adapter, counts);
    case abi::FieldKind::kSession:
      return take_once(kind, content, abi::kSessionBytesMax, request.session, counts);
    case abi::FieldKind::kFairness:
      return take_once(kind, content, abi::kFairnessIdBytesMax, request.fairness, counts);
    case abi::FieldKind::kRequestId:
      return take_once(kind, content, abi::kRequestIdBytesMax, request.request_id, counts);
    case abi::FieldKind::kSubsetEndpoint:
      if (counts.subset == scratch.subset.size()) return false;
      scratch.subset[counts.subset++] = content;
      return true;
    case abi::FieldKind::kAttribute: return take_attribute(content, scratch, counts);
  }
  return false;
}

bool take_fields(std::span<const std::byte> fields, DecodeScratch& scratch,
                 pick::PickRequest& request) {
  FieldCounts counts;
  std::size_t at = 0;
  while (at != fields.size()) {
    abi::FieldHead head;
    if (fields.size() - at < sizeof head) return false;
    std::memcpy(&head, fields.data() + at, sizeof head);
    at += sizeof head;
    if (head.bytes > fields.size() - at) return false;
    const std::string_view content(reinterpret_cast<const char*>(fields.data() + at), head.bytes);
    if (!take_field(head.kind, content, scratch, request, counts)) return false;
    at += head.bytes;
  }
  request.subset = std::span<const std::string_view>(scratch.subset.data(), counts.subset);
  request.attributes =
      std::span<const pick::Attribute>(scratch.attributes.data(), counts.attributes);
  return true;
}

// Of a request whose images are a part of its text, so that it has no extras: its gateway says how
// many there are.
bool says_media(const pick::PickRequest& request) {
  const std::string_view* count = request.attribute("x-pickd-media");
  return count != nullptr && !count->empty() && *count != "0";
}

bool known_algorithm(std::uint8_t id, const PickLimits& limits) {
  return id != 0 && std::find(std::begin(limits.key_algorithms), std::end(limits.key_algorithms),
                              id) != std::end(limits.key_algorithms);
}

}  // namespace

bool decode_pick(std::span<const std::byte> record, const PickLimits& limits,
                 DecodeScratch& scratch, DecodedPick& decoded) {
  abi::PickRecord head;
  if (record.size() < sizeof head) return false;
  std::memcpy(&head, record.data(), sizeof head);
  const std::size_t room = record.size() - sizeof head;
  const auto key_count = Untrusted(head.key_count).at_most(limits.keys_max);
  if (!key_count) return false;
  const std::size_t key_bytes = *key_count * sizeof(std::uint64_t);
  if (key_bytes > room) return false;
  const auto field_bytes = Untrusted<std::size_t>(head.field_bytes)
                               .at_most(std::min(room - key_bytes, abi::kFieldBytesMax));
  if (!field_bytes) return false;
  // Without keys no algorithm is needed.
  if (*key_count != 0 && !known_algorithm(head.key_algorithm, limits)) return false;
  const auto wanted =
      Untrusted(head.endpoints_max).within(1, static_cast<std::uint8_t>(abi::kResultEndpointsMax));
  if (!wanted) return false;

  pick::PickRequest& request = decoded.request;
  request = {};
  decoded.slo_ignored = 0;
  decoded.ttl_ignored = 0;
  // The keys stand at a multiple of 8 of a buffer that is aligned for them.
  static_assert(sizeof(abi::PickRecord) % alignof(std::uint64_t) == 0);
  request.keys = {reinterpret_cast<const std::uint64_t*>(record.data() + sizeof head), *key_count};
  request.prompt_tokens = head.prompt_tokens;
  request.expected_output_tokens = head.expected_output_tokens;
  request.slo_ttft_ms = head.slo_ttft_ms;
  request.slo_itl_ms = head.slo_itl_ms;
  request.priority = head.priority;
  request.endpoints_max = *wanted;
  request.stream = (head.head.flags & abi::kPickStream) != 0;
  request.dry_run = (head.head.flags & abi::kPickDryRun) != 0;
  request.multimodal = (head.head.flags & abi::kPickExtras) != 0;
  request.has_subset = (head.head.flags & abi::kPickSubset) != 0;
  request.ticket.sequence = head.head.sequence;
  decoded.cut = (head.head.flags & abi::kPickCut) != 0;
  decoded.answer_bytes_max = head.answer_bytes_max;
  if (!take_fields(record.subspan(sizeof head + key_bytes, *field_bytes), scratch, request))
    return false;
  request.multimodal |= says_media(request);
  read_slos(request, &decoded.slo_ignored);
  read_affinity_ttl(request, &decoded.ttl_ignored);
  return true;
}

bool decode_report(std::span<const std::byte> record, DecodedReport& decoded) {
  abi::ReportRecord head;
  if (record.size() < sizeof head) return false;
  std::memcpy(&head, record.data(), sizeof head);
  const auto kind = Untrusted(static_cast<std::uint8_t>(head.kind))
                        .within(static_cast<std::uint8_t>(abi::ReportKind::kFirstToken),
                                static_cast<std::uint8_t>(abi::ReportKind::kCancelled));
  if (!kind || record.size() - sizeof head < head.fallback_name_bytes) return false;
  decoded.ticket = {head.ticket_client, head.ticket_sequence};
  decoded.kind = static_cast<abi::ReportKind>(*kind);
  decoded.prompt_tokens = head.prompt_tokens;
  decoded.cached_tokens = head.cached_tokens;
  decoded.output_tokens = head.output_tokens;
  decoded.fallback = {reinterpret_cast<const char*>(record.data() + sizeof head),
                      head.fallback_name_bytes};
  return decoded.kind != abi::ReportKind::kFallback || !decoded.fallback.empty();
}

}  // namespace pickd::workers
