// JSON as simdjson's document holds it, in the few shapes that bodies and answers are read by.
// Without exceptions; strings live as long as the document.
//
// The document interface is used, and not the on-demand one: it checks the whole text before
// anything is taken from it, it can be read in any order, and its code for this machine is chosen
// when it runs.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <string_view>

#include "libbody/memory.hpp"

namespace pickd::body {

using Json = simdjson::dom::element;
using JsonObject = simdjson::dom::object;
using JsonArray = simdjson::dom::array;

inline bool is_object(const Json& json) { return json.is_object(); }
inline bool is_array(const Json& json) { return json.is_array(); }
inline bool is_string(const Json& json) { return json.is_string(); }

// The value where the type is the right one, else an empty or false one.
inline std::string_view string_of(const Json& json) {
  std::string_view text;
  return json.get(text) == simdjson::SUCCESS ? text : std::string_view();
}
inline bool is_true(const Json& json) {
  bool value = false;
  return json.get(value) == simdjson::SUCCESS && value;
}
// A count: a whole number of at least 0, cut at one below UINT32_MAX; UINT32_MAX where it is none.
inline std::uint32_t count_of(const Json& json) {
  std::uint64_t value;
  if (json.get(value) != simdjson::SUCCESS) return UINT32_MAX;
  return value < UINT32_MAX ? static_cast<std::uint32_t>(value) : UINT32_MAX - 1;
}
inline JsonObject object_of(const Json& json) { return json.get_object().value_unsafe(); }
inline JsonArray array_of(const Json& json) { return json.get_array().value_unsafe(); }

// The field of that name; of several the last one, as Python's reader and JavaScript's have it.
inline bool find(const Json& json, std::string_view name, Json& found) {
  if (!is_object(json)) return false;
  bool any = false;
  for (const auto field : object_of(json)) {
    if (field.key == name) {
      found = field.value;
      any = true;
    }
  }
  return any;
}
inline std::string_view string_in(const Json& json, std::string_view name) {
  Json found;
  return find(json, name, found) ? string_of(found) : std::string_view();
}
inline std::uint32_t count_in(const Json& json, std::string_view name) {
  Json found;
  return find(json, name, found) ? count_of(found) : UINT32_MAX;
}

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

enum class ParseResult { kDone, kMalformed, kNoMemory };

// Bytes with the padding that the parser reads over.
class JsonBuffer {
 public:
  bool append(const void* bytes, std::size_t size) {
    return reserve(bytes_.size() + size) && bytes_.append(static_cast<const char*>(bytes), size);
  }
  bool reserve(std::size_t size) { return bytes_.reserve(size + simdjson::SIMDJSON_PADDING); }
  void clear() { bytes_.clear(); }
  char* writable() { return bytes_.data(); }
  void shrink(std::size_t keep_bytes) { bytes_.shrink(keep_bytes); }
  // Sets what stands in the padding, which a reader of memory that was never written would complain
  // of.
  void pad() { std::memset(bytes_.data() + bytes_.size(), ' ', simdjson::SIMDJSON_PADDING); }
  std::size_t size() const { return bytes_.size(); }
  const char* data() const { return bytes_.data(); }
  std::string_view text() const { return view(bytes_); }

 private:
  List<char> bytes_;
};

// simdjson's parser with its memory in steps of doubling size, so that bodies of about one size do
// not make it allocate again and again.
class JsonParser {
 public:
  // `text` has `size` bytes of JSON and simdjson::SIMDJSON_PADDING bytes that may be read behind
  // them.
  ParseResult parse(const char* text, std::size_t size, Json& root);
  // A whole document, padded here and without its byte order mark: 0, -EBADMSG or -ENOMEM. What is
  // no JSON but by what mend() can do is mended in a copy.
  int parse(JsonBuffer& document, Json& root);
  void shrink(std::size_t keep_bytes);

 private:
  int parse_mended(std::string_view text, Json& root);

  simdjson::dom::parser parser_;
};

}  // namespace pickd::body
