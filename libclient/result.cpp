// pickd_result: see result.hpp. The accessors of pickd.h are below.
#include "libclient/result.hpp"

#include <errno.h>
#include <string.h>

#include <limits>

#include "libclient/memory.hpp"

namespace abi = pickd::abi;

namespace {

// In place, by words, the last of which may overlap the one before: these texts are short, and a
// call for each costs more than they.
void copy_text(char* to, const std::byte* from, std::size_t size) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  if (size < kWord) {
    for (std::size_t at = 0; at < size; ++at) to[at] = static_cast<char>(from[at]);
    return;
  }
  for (std::size_t at = 0; at + kWord < size; at += kWord) ::memcpy(to + at, from + at, kWord);
  ::memcpy(to + size - kWord, from + size - kWord, kWord);
}

bool fits(const abi::PickedEndpoint& picked) {
  return picked.role <= PICKD_ROLE_ENCODE && picked.name_bytes <= abi::kEndpointNameBytesMax &&
         picked.address_bytes <= abi::kEndpointAddressBytesMax;
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
  endpoint_count = taken = 0;
  prefill_at = encode_at = 0;
  text_bytes = 0;
  return code;
}

void pickd_result::add(const pickd_slice& name, const pickd_slice& address, pickd_role role,
                       std::uint32_t match_tokens, float score) {
  Endpoint& endpoint = endpoints[endpoint_count++];
  taken = endpoint_count;
  endpoint = {match_tokens, score, role, 0, 0};
  endpoint.name_at = take_text(static_cast<const std::byte*>(name.data), name.size);
  endpoint.address_at = take_text(static_cast<const std::byte*>(address.data), address.size);
}

// Ours is terminated, the record's is not.
std::uint16_t pickd_result::take_text(const std::byte* from, std::size_t size) const {
  const auto at = static_cast<std::uint16_t>(text_bytes);
  copy_text(text + text_bytes, from, size);
  text[text_bytes + size] = '\0';
  text_bytes += size + 1;
  return at;
}

int pickd_result::copy(const pickd::client::CompletionRecord& completion) {
  record_bytes = completion.head.bytes;
  if (completion.head.type != abi::RecordType::kPick || record_bytes < sizeof(abi::PickedRecord) ||
      record_bytes > sizeof record) {
    return fail(-EPROTO);
  }
  // Once out of shared memory; everything below looks at the copy.
  ::memcpy(record, completion.data, record_bytes);
  return 0;
}

int pickd_result::read() {
  abi::PickedRecord picked;
  ::memcpy(&picked, record, sizeof picked);
  if (picked.status > 0 || picked.status < -4095) return fail(-EPROTO);
  if (picked.status != 0) return fail(picked.status);

  const std::size_t text_at = sizeof picked + picked.endpoint_count * sizeof(abi::PickedEndpoint);
  const std::size_t behind_text = text_at + picked.text_bytes;
  if (picked.endpoint_count == 0 || picked.endpoint_count > abi::kResultEndpointsMax ||
      picked.prefill_bytes > record_bytes || behind_text + picked.prefill_bytes > record_bytes) {
    return fail(-EPROTO);
  }
  endpoint_count = picked.endpoint_count;
  if (!check_endpoints(picked.text_bytes) ||
      !check_stages(behind_text, picked.prefill_bytes,
                    (picked.head.flags & abi::kPickedEncode) != 0)) {
    return fail(-EPROTO);
  }
  taken = text_bytes = 0;
  next_text = text_at;
  prefill_taken = encode_taken = false;
  take_next();

  status = 0;
  // A newer daemon may have reasons that this library has no name for.
  reason = picked.reason <= abi::Reason::kUnpredicted ? static_cast<pickd_reason>(picked.reason)
                                                      : PICKD_REASON_NONE;
  flags = (picked.head.flags & abi::kPickedTruncated) != 0 ? PICKD_RESULT_CUT : 0U;
  prompt_tokens = picked.prompt_tokens;
  ttft_ms = picked.predicted_ttft_ms;
  itl_ms = picked.predicted_itl_ms;
  return 0;
}

// Whether all endpoints and their text can be taken; then take() needs to look no more.
bool pickd_result::check_endpoints(std::size_t text_size) const {
  std::size_t needed = 0;
  bool good = true;
  for (std::size_t index = 0; index < endpoint_count; ++index) {
    abi::PickedEndpoint picked;
    ::memcpy(&picked, record + sizeof(abi::PickedRecord) + index * sizeof picked, sizeof picked);
    good = good && fits(picked);
    needed += picked.name_bytes + std::size_t{picked.address_bytes};
  }
  return good && needed <= text_size;
}

// Where the stages before the decode stand, behind the endpoints' text; to be taken as those are.
bool pickd_result::check_stages(std::size_t at, std::size_t prefill_bytes, bool has_encode) {
  prefill_at = prefill_bytes == 0 ? 0 : static_cast<std::uint32_t>(at);
  encode_at = has_encode ? static_cast<std::uint32_t>(at + prefill_bytes) : 0;
  // The text of as many endpoints as a result lists is all that there is room for.
  const std::size_t stages = (prefill_bytes != 0 ? 1U : 0U) + (has_encode ? 1U : 0U);
  return endpoint_count + stages <= abi::kResultEndpointsMax &&
         (prefill_bytes == 0 || check_stage(at, prefill_bytes)) &&
         (!has_encode || check_stage(encode_at, record_bytes - encode_at));
}

bool pickd_result::check_stage(std::size_t at, std::size_t size) const {
  abi::PickedEndpoint picked;
  if (size < sizeof picked) return false;
  ::memcpy(&picked, record + at, sizeof picked);
  return fits(picked) &&
         picked.name_bytes + std::size_t{picked.address_bytes} <= size - sizeof picked;
}

void pickd_result::take_next() const {
  next_text += take(sizeof(abi::PickedRecord) + taken * sizeof(abi::PickedEndpoint), next_text,
                    endpoints[taken]);
  ++taken;
}

// Returns how much text it took.
std::size_t pickd_result::take(std::size_t entry_at, std::size_t text_at,
                               Endpoint& endpoint) const {
  abi::PickedEndpoint picked;
  ::memcpy(&picked, record + entry_at, sizeof picked);
  endpoint.match_tokens = picked.match_tokens;
  endpoint.score = picked.score;
  endpoint.role = static_cast<pickd_role>(picked.role);
  endpoint.name_at = take_text(record + text_at, picked.name_bytes);
  endpoint.address_at = take_text(record + text_at + picked.name_bytes, picked.address_bytes);
  return picked.name_bytes + std::size_t{picked.address_bytes};
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
  return result->text + result->endpoint(index).address_at;
}

const char* pickd_result_name(const pickd_result* result, size_t index) {
  if (result == nullptr || index >= result->endpoint_count) return nullptr;
  return result->text + result->endpoint(index).name_at;
}

pickd_role pickd_result_role(const pickd_result* result, size_t index) {
  if (result == nullptr || index >= result->endpoint_count) return PICKD_ROLE_BOTH;
  return result->endpoint(index).role;
}

uint32_t pickd_result_match_tokens(const pickd_result* result, size_t index) {
  if (result == nullptr || index >= result->endpoint_count) return 0;
  return result->endpoint(index).match_tokens;
}

double pickd_result_score(const pickd_result* result, size_t index) {
  if (result == nullptr || index >= result->endpoint_count)
    return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(result->endpoint(index).score);
}

const char* pickd_result_prefill_address(const pickd_result* result) {
  if (result == nullptr || result->prefill_at == 0) return nullptr;
  return result->text + result->prefill_endpoint().address_at;
}

const char* pickd_result_prefill_name(const pickd_result* result) {
  if (result == nullptr || result->prefill_at == 0) return nullptr;
  return result->text + result->prefill_endpoint().name_at;
}

uint32_t pickd_result_prefill_match_tokens(const pickd_result* result) {
  return result == nullptr || result->prefill_at == 0 ? 0 : result->prefill_endpoint().match_tokens;
}

const char* pickd_result_encode_address(const pickd_result* result) {
  if (result == nullptr || result->encode_at == 0) return nullptr;
  return result->text + result->encode_endpoint().address_at;
}

const char* pickd_result_encode_name(const pickd_result* result) {
  if (result == nullptr || result->encode_at == 0) return nullptr;
  return result->text + result->encode_endpoint().name_at;
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
