// PickRequest: see pick_request.hpp. Checking is at the top, writing below.
#include "libclient/pick_request.hpp"

#include <errno.h>
#include <string.h>

#include <new>

#include "abi/limits.hpp"
#include "libclient/sized_struct.hpp"

namespace pickd::client {

namespace {

constexpr std::uint32_t kFlagsKnown =
    PICKD_REQUEST_STREAM | PICKD_REQUEST_SUBSET | PICKD_REQUEST_DRY_RUN | PICKD_REQUEST_MEDIA;
constexpr std::size_t kDigestBytesMin = 16;
constexpr std::size_t kDigestBytesMax = 64;

bool is_slice(const pickd_slice& slice) { return slice.data != nullptr || slice.size == 0; }

// One string field of a request: its kind, where it stands, its limit, its name for people.
struct FieldSpec {
  abi::FieldKind kind;
  pickd_slice pickd_request::*slice;
  std::size_t bytes_max;
  const char* name;
};

constexpr FieldSpec kFieldSpecs[] = {
    {abi::FieldKind::kModel, &pickd_request::model, abi::kModelBytesMax, "model"},
    {abi::FieldKind::kAdapter, &pickd_request::adapter, abi::kAdapterBytesMax, "adapter"},
    {abi::FieldKind::kSession, &pickd_request::session_id, abi::kSessionBytesMax, "session_id"},
    {abi::FieldKind::kFairness, &pickd_request::fairness_id, abi::kFairnessIdBytesMax,
     "fairness_id"},
    {abi::FieldKind::kRequestId, &pickd_request::request_id, abi::kRequestIdBytesMax, "request_id"},
};

// A subset entry is a name or an address; both have the same limit.
constexpr std::size_t kSubsetEntryBytesMax = abi::kEndpointNameBytesMax;
static_assert(abi::kEndpointNameBytesMax == abi::kEndpointAddressBytesMax);

constexpr std::uint32_t kPromptTokensMax = UINT32_MAX - 1;  // UINT32_MAX means "unknown" elsewhere

// The lines of a record come while its prompt is hashed, all at once: they are in the daemon's core
// and a store that waits for one holds up those behind it. Not __builtin_prefetch(): without a flag
// for newer machines it fetches for reading, and the first store would ask the other core again.
void fetch_for_writing(std::byte* at, std::uint64_t bytes) {
#if defined(__x86_64__)
  constexpr std::uint64_t kBytesMax = 32 * abi::kCacheLineBytes;
  if (bytes > kBytesMax) bytes = kBytesMax;
  for (std::uint64_t line = 0; line < bytes; line += abi::kCacheLineBytes)
    asm volatile("prefetchw %0" : : "m"(at[line]));
#else
  static_cast<void>(at);
  static_cast<void>(bytes);
#endif
}

std::byte* put_head(std::byte* to, abi::FieldKind kind, std::size_t bytes) {
  const abi::FieldHead head{kind, 0, static_cast<std::uint16_t>(bytes)};
  ::memcpy(to, &head, sizeof head);
  return to + sizeof head;
}

std::byte* put_bytes(std::byte* to, const pickd_slice& slice) {
  if (slice.size != 0) ::memcpy(to, slice.data, slice.size);
  return to + slice.size;
}

}  // namespace

// ---- Checking -----------------------------------------------------------------------------------

int PickRequest::read(const pickd_request* request, LastError& error) {
  if (const int code = view_sized(request, sizeof(pickd_request), &copy_, &request_); code != 0) {
    return error.set(code, code == -EINVAL
                               ? "struct_size of the request is too small: use PICKD_REQUEST_INIT"
                               : "the request sets an option that this library does not know");
  }
  if ((request_->flags & ~kFlagsKnown) != 0) {
    return error.set(-EINVAL, "request flags 0x%x: this library knows 0x%x", request_->flags,
                     kFlagsKnown);
  }
  if (request_->endpoints_max > abi::kResultEndpointsMax) {
    return error.set(-EINVAL, "endpoints_max %u: at most %zu", request_->endpoints_max,
                     abi::kResultEndpointsMax);
  }
  endpoints_max_ =
      request_->endpoints_max == 0 ? abi::kResultEndpointsMax : request_->endpoints_max;
  if (request_->priority < INT16_MIN || request_->priority > INT16_MAX) {
    return error.set(-EINVAL, "priority %d: -32768 to 32767", request_->priority);
  }
  if (request_->queue_timeout_us < 0) return error.set(-EINVAL, "queue_timeout_us is negative");
  if (const int code = read_prompt(error); code != 0) return code;
  if (const int code = read_extras(error); code != 0) return code;
  return read_fields(error);
}

int PickRequest::read_prompt(LastError& error) {
  if (request_->text_count != 0 && request_->token_count != 0) {
    return error.set(-EINVAL, "the request has both text and token ids: give one of them");
  }
  if ((request_->text_count != 0 && request_->text == nullptr) ||
      (request_->token_count != 0 && request_->token_ids == nullptr) || !is_slice(request_->salt)) {
    return error.set(-EINVAL, "text, token_ids or salt is NULL and its count is not 0");
  }
  std::uint64_t tokens;
  if (request_->token_count != 0) {
    if (request_->token_count > SIZE_MAX / sizeof(std::uint32_t))
      return error.set(-E2BIG, "token_count is too large");
    token_segment_ = {request_->token_ids, request_->token_count * sizeof(std::uint32_t)};
    prompt_.kind = abi::KeyKind::kTokens;
    prompt_.segments = &token_segment_;
    prompt_.segment_count = 1;
    prompt_.bytes = token_segment_.size;
    tokens = request_->token_count;
  } else {
    prompt_.kind = abi::KeyKind::kText;
    prompt_.segments = request_->text;
    prompt_.segment_count = request_->text_count;
    prompt_.bytes = 0;
    for (std::size_t i = 0; i < request_->text_count; ++i) {
      if (!is_slice(request_->text[i]))
        return error.set(-EINVAL, "text segment %zu is NULL and its size is not 0", i);
      if (__builtin_add_overflow(prompt_.bytes, request_->text[i].size, &prompt_.bytes)) {
        return error.set(-E2BIG, "the sizes of the text segments do not fit 64 bits");
      }
    }
    tokens =
        prompt_.bytes / abi::kBytesPerToken + (prompt_.bytes % abi::kBytesPerToken != 0 ? 1 : 0);
  }
  if (request_->prompt_tokens != 0) tokens = request_->prompt_tokens;
  prompt_tokens_ =
      tokens > kPromptTokensMax ? kPromptTokensMax : static_cast<std::uint32_t>(tokens);
  return 0;
}

int PickRequest::read_extras(LastError& error) {
  if (request_->extra_count == 0) return 0;
  if (request_->extra_count > abi::kPromptExtrasMax) {
    return error.set(-E2BIG, "%zu extras: at most %zu", request_->extra_count,
                     abi::kPromptExtrasMax);
  }
  const std::size_t stride =
      request_->extra_stride == 0 ? sizeof(pickd_extra) : request_->extra_stride;
  if (request_->extras == nullptr || stride < sizeof(pickd_extra) ||
      stride % alignof(pickd_extra) != 0) {
    return error.set(-EINVAL,
                     "extras is NULL or extra_stride is smaller than a pickd_extra or unaligned");
  }
  prompt_.extras = request_->extras;
  prompt_.extra_count = request_->extra_count;
  prompt_.extra_stride = stride;
  const std::uint64_t end = request_->token_count != 0 ? request_->token_count : prompt_.bytes;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < request_->extra_count; ++i) {
    const pickd_extra& extra = prompt_.extra(i);
    if (extra.offset < before || extra.offset > end) {
      return error.set(-EINVAL,
                       "extra %zu at offset %zu: extras must be in order and inside the prompt", i,
                       extra.offset);
    }
    before = extra.offset;
    if (!is_slice(extra.digest) || extra.digest.size < kDigestBytesMin) {
      return error.set(-EINVAL, "extra %zu: a digest has %zu to %zu bytes", i, kDigestBytesMin,
                       kDigestBytesMax);
    }
    if (extra.digest.size > kDigestBytesMax) {
      return error.set(-E2BIG, "extra %zu: a digest has %zu to %zu bytes", i, kDigestBytesMin,
                       kDigestBytesMax);
    }
  }
  return 0;
}

const pickd_attribute& PickRequest::attribute(std::size_t index) const {
  return *reinterpret_cast<const pickd_attribute*>(
      reinterpret_cast<const char*>(request_->attributes) + index * attribute_stride_);
}

int PickRequest::read_fields(LastError& error) {
  std::size_t bytes = 0;
  for (const FieldSpec& spec : kFieldSpecs) {
    const pickd_slice& slice = request_->*spec.slice;
    if (!is_slice(slice)) return error.set(-EINVAL, "%s is NULL and its size is not 0", spec.name);
    if (slice.size > spec.bytes_max) {
      return error.set(-E2BIG, "%s of %zu bytes: at most %zu", spec.name, slice.size,
                       spec.bytes_max);
    }
    if (slice.size != 0) bytes += sizeof(abi::FieldHead) + slice.size;
  }

  subset_count_ = (request_->flags & PICKD_REQUEST_SUBSET) == 0 ? 0 : request_->subset_count;
  if (subset_count_ > abi::kSubsetMax) {
    return error.set(-E2BIG, "%zu subset entries: at most %zu", subset_count_, abi::kSubsetMax);
  }
  if (subset_count_ != 0 && request_->subset == nullptr)
    return error.set(-EINVAL, "subset is NULL");
  for (std::size_t i = 0; i < subset_count_; ++i) {
    if (!is_slice(request_->subset[i]))
      return error.set(-EINVAL, "subset entry %zu is NULL and its size is not 0", i);
    if (request_->subset[i].size > kSubsetEntryBytesMax) {
      return error.set(-E2BIG, "subset entry %zu: names and addresses have at most %zu bytes", i,
                       kSubsetEntryBytesMax);
    }
    bytes += sizeof(abi::FieldHead) + request_->subset[i].size;
  }

  if (request_->attribute_count > abi::kAttributesMax) {
    return error.set(-E2BIG, "%zu attributes: at most %zu", request_->attribute_count,
                     abi::kAttributesMax);
  }
  attribute_stride_ =
      request_->attribute_stride == 0 ? sizeof(pickd_attribute) : request_->attribute_stride;
  if (request_->attribute_count != 0 &&
      (request_->attributes == nullptr || attribute_stride_ < sizeof(pickd_attribute) ||
       attribute_stride_ % alignof(pickd_attribute) != 0)) {
    return error.set(-EINVAL, "attributes is NULL or attribute_stride is too small or unaligned");
  }
  for (std::size_t i = 0; i < request_->attribute_count; ++i) {
    const pickd_attribute& pair = attribute(i);
    if (!is_slice(pair.key) || !is_slice(pair.value) || pair.key.size == 0) {
      return error.set(-EINVAL, "attribute %zu has no key, or is NULL and its size is not 0", i);
    }
    if (pair.key.size > abi::kAttributeBytesMax || pair.value.size > abi::kAttributeBytesMax) {
      return error.set(-E2BIG, "attribute %zu: key and value have at most %zu bytes", i,
                       abi::kAttributeBytesMax);
    }
    if (::memchr(pair.key.data, 0, pair.key.size) != nullptr) {
      return error.set(-EINVAL, "the key of attribute %zu holds a NUL byte", i);
    }
    bytes += sizeof(abi::FieldHead) + pair.key.size + 1 + pair.value.size;
  }
  if (bytes > abi::kFieldBytesMax) {
    return error.set(-E2BIG, "the strings of the request take %zu bytes: at most %zu", bytes,
                     abi::kFieldBytesMax);
  }
  field_bytes_ = static_cast<std::uint32_t>(bytes);
  return 0;
}

// ---- Writing ------------------------------------------------------------------------------------

int PickRequest::shape(const StateView& state, std::uint32_t keys_max, PickShape& shape,
                       LastError& error) const {
  shape = {nullptr, 0, false, 0, 0};
  if (prompt_.bytes != 0 || prompt_.extra_count != 0) {
    shape.algorithm = state.algorithm(prompt_.kind);
    if (shape.algorithm == nullptr) {
      return error.set(-EPROTO, "the daemon lists no key algorithm for %s",
                       prompt_.kind == abi::KeyKind::kText ? "text" : "token ids");
    }
    const std::uint64_t keys = count_keys(prompt_, *shape.algorithm);
    shape.cut = keys > keys_max;
    shape.key_count = shape.cut ? keys_max : static_cast<std::uint32_t>(keys);
  }
  shape.bytes = sizeof(abi::PickRecord) + shape.key_count * sizeof(std::uint64_t) + field_bytes_;
  return 0;
}

std::uint64_t PickRequest::write(const PickShape& shape, const StateView& state,
                                 const TickClock& clock, std::uint64_t sequence,
                                 std::byte* to) const {
  fetch_for_writing(to, shape.bytes);
  // Where it will be read, and never read here: a record put together elsewhere in small pieces and
  // copied in large ones would wait for its own stores.
  auto* record = new (to) abi::PickRecord{};
  record->head.bytes = static_cast<std::uint32_t>(shape.bytes);
  record->head.type = abi::RecordType::kPick;
  record->head.flags = static_cast<std::uint8_t>(
      ((request_->flags & PICKD_REQUEST_STREAM) != 0 ? abi::kPickStream : 0) |
      (shape.cut ? abi::kPickCut : 0) |
      ((request_->flags & PICKD_REQUEST_SUBSET) != 0 ? abi::kPickSubset : 0) |
      ((request_->flags & PICKD_REQUEST_DRY_RUN) != 0 ? abi::kPickDryRun : 0) |
      (request_->extra_count != 0 || (request_->flags & PICKD_REQUEST_MEDIA) != 0 ? abi::kPickExtras
                                                                                  : 0));
  record->head.sequence = sequence;
  record->key_count = shape.key_count;
  record->field_bytes = field_bytes_;
  record->prompt_tokens = prompt_tokens_;
  record->expected_output_tokens = request_->expected_output_tokens;
  record->slo_ttft_ms =
      static_cast<float>(request_->slo_ttft_ms);  // what is no time is for the daemon to count
  record->slo_itl_ms = static_cast<float>(request_->slo_itl_ms);
  record->priority = static_cast<std::int16_t>(request_->priority);
  record->key_algorithm = shape.algorithm == nullptr ? std::uint8_t{0} : shape.algorithm->id;
  record->endpoints_max = static_cast<std::uint8_t>(endpoints_max_);
  record->answer_bytes_max = shape.answer_bytes_max;

  auto* keys = reinterpret_cast<std::uint64_t*>(to + sizeof *record);
  write_fields(reinterpret_cast<std::byte*>(keys + shape.key_count));
  return hash(shape, state, clock, keys);
}

std::uint64_t PickRequest::hash(const PickShape& shape, const StateView& state,
                                const TickClock& clock, std::uint64_t* keys) const {
  if (shape.key_count == 0 || shape.algorithm == nullptr) return 0;  // no keys without one
  const std::uint64_t began = clock.now();
  const abi::KeyHasher hasher(state.hash_secret());
  const pickd_slice& owner = request_->adapter.size != 0 ? request_->adapter : request_->model;
  const std::uint64_t root = hasher.root(*shape.algorithm, owner.data, owner.size,
                                         request_->salt.data, request_->salt.size);
  hash_prompt(hasher, *shape.algorithm, root, prompt_, shape.key_count, keys);
  return clock.ns_between(began, clock.now());
}

std::byte* PickRequest::write_fields(std::byte* to) const {
  for (const FieldSpec& spec : kFieldSpecs) {
    const pickd_slice& slice = request_->*spec.slice;
    if (slice.size != 0) to = put_bytes(put_head(to, spec.kind, slice.size), slice);
  }
  for (std::size_t i = 0; i < subset_count_; ++i) {
    const pickd_slice& entry = request_->subset[i];
    to = put_bytes(put_head(to, abi::FieldKind::kSubsetEndpoint, entry.size), entry);
  }
  for (std::size_t i = 0; i < request_->attribute_count; ++i) {
    const pickd_attribute& pair = attribute(i);
    to = put_head(to, abi::FieldKind::kAttribute, pair.key.size + 1 + pair.value.size);
    to = put_bytes(to, pair.key);
    *to++ = std::byte{0};
    to = put_bytes(to, pair.value);
  }
  return to;
}

}  // namespace pickd::client
