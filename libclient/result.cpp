// pickd_result: see result.hpp. The accessors of pickd.h are below.
#include "libclient/result.hpp"

#include <errno.h>
#include <string.h>

#include <limits>

#include "libclient/memory.hpp"

namespace abi = pickd::abi;

namespace {

// In place, by words: these texts are short, and a call for each costs more than they.
void copy_text(char* to, const std::byte* from, std::size_t size) {
  for (; size >= sizeof(std::uint64_t); size -= sizeof(std::uint64_t)) {
    ::memcpy(to, from, sizeof(std::uint64_t));
    to += sizeof(std::uint64_t);
    from += sizeof(std::uint64_t);
  }
  for (; size != 0; --size) *to++ = static_cast<char>(*from++);
}

}  // namespace

int pickd_result::fail(int code) {
  status = code;
  ticket = {};
  reason = PICKD_REASON_NONE;
  flags = 0;
  prompt_tokens = 0;
  ttft_ms = itl_ms = std::numeric_limits<float>::quiet_NaN();
  hash_ns = 0;
  endpoint_count = 0;
  has_prefill = false;
  text_bytes = 0;
  return code;
}

void pickd_result::add(const pickd_slice& name, const pickd_slice& address, pickd_role role,
                       std::uint32_t match_tokens, float score) {
  Endpoint& endpoint = endpoints[endpoint_count++];
  const auto append = [this](const pickd_slice& slice) {
    const auto at = static_cast<std::uint16_t>(text_bytes);
    ::memcpy(text + text_bytes, slice.data, slice.size);
    text[text_bytes + slice.size] = '\0';
    text_bytes += slice.size + 1;
    return at;
  };
  endpoint = {match_tokens, score, role, append(name), 0};
  endpoint.address_at = append(address);
}

int pickd_result::fill(const pickd::client::CompletionRecord& record) {
  // One copy out of shared memory; everything below looks at the copy.
  alignas(8) std::byte bytes[pickd::client::picked_bytes_max(abi::kResultEndpointsMax)];
  const std::size_t size = record.head.bytes;
  if (record.head.type != abi::RecordType::kPick || size < sizeof(abi::PickedRecord) ||
      size > sizeof bytes) {
    return fail(-EPROTO);
  }
  ::memcpy(bytes, record.data, size);
  abi::PickedRecord picked;
  ::memcpy(&picked, bytes, sizeof picked);
  if (picked.status > 0 || picked.status < -4095) return fail(-EPROTO);
  if (picked.status != 0) return fail(picked.status);

  const std::size_t endpoints_bytes = picked.endpoint_count * sizeof(abi::PickedEndpoint);
  if (picked.endpoint_count == 0 || picked.endpoint_count > abi::kResultEndpointsMax ||
      picked.prefill_bytes > size ||
      sizeof picked + endpoints_bytes + picked.text_bytes + picked.prefill_bytes > size) {
    return fail(-EPROTO);
  }
  text_bytes = 0;
  endpoint_count = picked.endpoint_count;
  const std::byte* endpoints_at = bytes + sizeof picked;
  const std::byte* text_at = endpoints_at + endpoints_bytes;
  if (!take_endpoints(endpoints_at, text_at, picked.text_bytes)) return fail(-EPROTO);
  has_prefill = picked.prefill_bytes != 0;
  if (has_prefill && !take_prefill(text_at + picked.text_bytes, picked.prefill_bytes))
    return fail(-EPROTO);

  status = 0;
  // A newer daemon may have reasons that this library has no name for.
  reason = picked.reason <= abi::Reason::kDegraded ? static_cast<pickd_reason>(picked.reason)
                                                   : PICKD_REASON_NONE;
  flags = (picked.head.flags & abi::kPickedTruncated) != 0 ? PICKD_RESULT_CUT : 0U;
  prompt_tokens = picked.prompt_tokens;
  ttft_ms = picked.predicted_ttft_ms;
  itl_ms = picked.predicted_itl_ms;
  return 0;
}

bool pickd_result::take_endpoint(const std::byte* entry_at, const std::byte* text_at,
                                 std::size_t text_size, std::size_t* taken, Endpoint& endpoint) {
  abi::PickedEndpoint picked;
  ::memcpy(&picked, entry_at, sizeof picked);
  // Ours is terminated, the record's is not.
  const auto take_string = [&](std::size_t size, std::size_t size_max, std::uint16_t& at) {
    if (size > size_max || size > text_size - *taken) return false;
    at = static_cast<std::uint16_t>(text_bytes);
    copy_text(text + text_bytes, text_at + *taken, size);
    text[text_bytes + size] = '\0';
    *taken += size;
    text_bytes += size + 1;
    return true;
  };
  endpoint.match_tokens = picked.match_tokens;
  endpoint.score = picked.score;
  endpoint.role = static_cast<pickd_role>(picked.role);
  return picked.role <= PICKD_ROLE_ENCODE &&
         take_string(picked.name_bytes, abi::kEndpointNameBytesMax, endpoint.name_at) &&
         take_string(picked.address_bytes, abi::kEndpointAddressBytesMax, endpoint.address_at);
}

bool pickd_result::take_endpoints(const std::byte* endpoints_at, const std::byte* text_at,
                                  std::size_t text_size) {
  std::size_t taken = 0;
  for (std::size_t i = 0; i < endpoint_count; ++i) {
    const std::byte* entry_at = endpoints_at + i * sizeof(abi::PickedEndpoint);
    if (!take_endpoint(entry_at, text_at, text_size, &taken, endpoints[i])) return false;
  }
  return true;
}

bool pickd_result::take_prefill(const std::byte* at, std::size_t size) {
  // The text of as many endpoints as a result lists is all that there is room for.
  if (size < sizeof(abi::PickedEndpoint) || endpoint_count == abi::kResultEndpointsMax)
    return false;
  std::size_t taken = 0;
  return take_endpoint(at, at + sizeof(abi::PickedEndpoint), size - sizeof(abi::PickedEndpoint),
                       &taken, prefill);
}

extern "C" {

pickd_result* pickd_result_new(void) {
  auto* result = pickd::client::make_object<pickd_result>();
  if (result != nullptr) result->fail(0);
  return result;
}

void pickd_result_free(pickd_result* result) { pickd::client::destroy_object(result); }

int pickd_result_status(const pickd_result* result) {
  return result == nullptr ? -EINVAL : result->status;
}

pickd_ticket pickd_result_ticket(const pickd_result* result) {
  return result == nullptr ? pickd_ticket{0, 0} : result->ticket;
}

pickd_reason pickd_result_reason(const pickd_result* result) {
  return result == nullptr ? PICKD_REASON_NONE : result->reason;
}

uint32_t pickd_result_flags(const pickd_result* result) {
  return result == nullptr ? 0 : result->flags;
}

size_t pickd_result_endpoint_count(const pickd_result* result) {
  return result == nullptr ? 0 : result->endpoint_count;
}

const char* pickd_result_address(const pickd_result* result, size_t index) {
  if (result == nullptr || index >= result->endpoint_count) return nullptr;
  return result->text + result->endpoints[index].address_at;
}

const char* pickd_result_name(const pickd_result* result, size_t index) {
  if (result == nullptr || index >= result->endpoint_count) return nullptr;
  return result->text + result->endpoints[index].name_at;
}

pickd_role pickd_result_role(const pickd_result* result, size_t index) {
  if (result == nullptr || index >= result->endpoint_count) return PICKD_ROLE_BOTH;
  return result->endpoints[index].role;
}

uint32_t pickd_result_match_tokens(const pickd_result* result, size_t index) {
  if (result == nullptr || index >= result->endpoint_count) return 0;
  return result->endpoints[index].match_tokens;
}

double pickd_result_score(const pickd_result* result, size_t index) {
  if (result == nullptr || index >= result->endpoint_count)
    return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(result->endpoints[index].score);
}

const char* pickd_result_prefill_address(const pickd_result* result) {
  if (result == nullptr || !result->has_prefill) return nullptr;
  return result->text + result->prefill.address_at;
}

const char* pickd_result_prefill_name(const pickd_result* result) {
  if (result == nullptr || !result->has_prefill) return nullptr;
  return result->text + result->prefill.name_at;
}

uint32_t pickd_result_prefill_match_tokens(const pickd_result* result) {
  return result == nullptr || !result->has_prefill ? 0 : result->prefill.match_tokens;
}

uint32_t pickd_result_prompt_tokens(const pickd_result* result) {
  return result == nullptr ? 0 : result->prompt_tokens;
}

double pickd_result_ttft_ms(const pickd_result* result) {
  return result == nullptr ? std::numeric_limits<double>::quiet_NaN()
                           : static_cast<double>(result->ttft_ms);
}

double pickd_result_itl_ms(const pickd_result* result) {
  return result == nullptr ? std::numeric_limits<double>::quiet_NaN()
                           : static_cast<double>(result->itl_ms);
}

uint64_t pickd_result_hash_ns(const pickd_result* result) {
  return result == nullptr ? 0 : result->hash_ns;
}

}  // extern "C"
