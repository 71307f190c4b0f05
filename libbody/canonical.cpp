#include "libbody/canonical.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <charconv>

#include "libbody/limits.hpp"

namespace pickd::body {

namespace {

// Takes the same calls as PromptStream.
class HashSink {
 public:
  explicit HashSink(Mark kind) {
    XXH3_128bits_reset(&state_);
    mark(kind);
  }
  void mark(Mark kind) {
    const char bytes[] = {'\xFF', static_cast<char>(kind)};
    XXH3_128bits_update(&state_, bytes, sizeof bytes);
  }
  void word(std::string_view text) {
    XXH3_128bits_update(&state_, text.data(), text.size());
    XXH3_128bits_update(&state_, "\xFE", 1);
  }
  void finish(unsigned char* digest) const {
    static_assert(sizeof(XXH128_canonical_t) == kDigestBytes);
    XXH128_canonicalFromHash(reinterpret_cast<XXH128_canonical_t*>(digest),
                             XXH3_128bits_digest(&state_));
  }

 private:
  XXH3_state_t state_;
};

// Not std::to_chars(), whose table of digits would be a symbol that the archive cannot keep to
// itself.
char* put_whole(char* at, std::uint64_t value) {
  char digits[20];
  std::size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count != 0) *at++ = digits[--count];
  return at;
}

// A number in digits. Whole and fractional ones stay different, as they do in a prompt.
std::string_view digits_of(const Json& json, char* buffer, std::size_t size) {
  char* at = buffer;
  std::uint64_t whole = 0;
  std::int64_t negative = 0;
  double real = 0;
  if (json.type() == simdjson::dom::element_type::UINT64 && !json.get(whole)) {
    at = put_whole(at, whole);
  } else if (json.type() == simdjson::dom::element_type::INT64 && !json.get(negative)) {
    if (negative < 0) *at++ = '-';
    const auto bits = static_cast<std::uint64_t>(negative);
    at = put_whole(at, negative < 0 ? 0 - bits : bits);
  } else {
    if (json.get(real) != simdjson::SUCCESS) return {};
    *at++ = '.';
    at = std::to_chars(at, buffer + size, real).ptr;
  }
  return {buffer, static_cast<std::size_t>(at - buffer)};
}

bool is_named(std::string_view key, Names names) {
  return std::find(names.begin(), names.end(), key) != names.end();
}

}  // namespace

// The parser refuses what is nested deeper than kDepthMax, which bounds this recursion.
template <typename Sink>
bool Canonical::put(const Json& json, Sink& sink, Names without) {
  using Type = simdjson::dom::element_type;
  char digits[40];
  switch (json.type()) {
    case Type::OBJECT: return put_object(object_of(json), sink, without);
    case Type::ARRAY:
      sink.mark(Mark::kArray);
      for (const Json item : array_of(json)) {
        if (!put(item, sink, {})) return false;
      }
      sink.mark(Mark::kArrayEnd);
      return true;
    case Type::STRING: sink.word(string_of(json)); return true;
    case Type::BOOL: sink.mark(is_true(json) ? Mark::kTrue : Mark::kFalse); return true;
    case Type::NULL_VALUE: sink.mark(Mark::kNull); return true;
    case Type::INT64:
    case Type::UINT64:
    case Type::DOUBLE:
      sink.mark(Mark::kNumber);
      sink.word(digits_of(json, digits, sizeof digits));
      return true;
  }
  return true;
}

template <typename Sink>
bool Canonical::put_object(const JsonObject& object, Sink& sink, Names without) {
  const std::size_t first = fields_.size();
  std::uint32_t order = 0;
  for (const auto field : object) {
    if (is_named(field.key, without)) continue;
    if (!fields_.push({field.key, order++, field.value})) return false;
  }
  std::sort(fields_.data() + first, fields_.data() + fields_.size(),
            [](const SortedField& a, const SortedField& b) {
              return a.key != b.key ? a.key < b.key : a.order < b.order;
            });
  sink.mark(Mark::kObject);
  const std::size_t end = fields_.size();
  for (std::size_t at = first; at < end; ++at) {
    const SortedField field = fields_[at];  // a copy: the list grows while values are written
    if (at + 1 < end && fields_[at + 1].key == field.key) continue;
    sink.word(field.key);
    if (!put(field.value, sink, {})) return false;
  }
  sink.mark(Mark::kObjectEnd);
  fields_.cut(first);
  return true;
}

bool Canonical::write(const Json& json, PromptStream& stream, Names without) {
  fields_.clear();
  return put(json, stream, without);
}

bool Canonical::digest(const Json& json, Mark kind, Names without, unsigned char* digest) {
  fields_.clear();
  HashSink sink(kind);
  if (!put(json, sink, without)) return false;
  sink.finish(digest);
  return true;
}

void Canonical::digest(std::string_view text, Mark kind, unsigned char* digest) {
  HashSink sink(kind);
  sink.word(text);
  sink.finish(digest);
}

}  // namespace pickd::body
