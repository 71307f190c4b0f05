#include "libbody/json.hpp"

#include <errno.h>

#include "libbody/limits.hpp"
#include "libbody/mend.hpp"

namespace pickd::body {

ParseResult JsonParser::parse(const char* text, std::size_t size, Json& root) {
  if (parser_.capacity() < size) {
    std::size_t capacity = std::size_t{4} << 10;
    while (capacity < size) capacity *= 2;
    if (parser_.allocate(capacity, kDepthMax) != simdjson::SUCCESS ||
        parser_.doc.allocate(capacity) != simdjson::SUCCESS) {
      shrink(0);
      return ParseResult::kNoMemory;
    }
  }
  const simdjson::error_code code = parser_.parse(text, size, false).get(root);
  if (code == simdjson::SUCCESS) return ParseResult::kDone;
  return code == simdjson::MEMALLOC ? ParseResult::kNoMemory : ParseResult::kMalformed;
}

int JsonParser::parse(JsonBuffer& document, Json& root) {
  if (!document.reserve(document.size())) return -ENOMEM;
  document.pad();
  std::string_view text = document.text();
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  switch (parse(text.data(), text.size(), root)) {
    case ParseResult::kMalformed: return parse_mended(text, root);
    case ParseResult::kNoMemory: return -ENOMEM;
    case ParseResult::kDone: break;
  }
  return 0;
}

// The document stays as it came, as it is sent on.
int JsonParser::parse_mended(std::string_view text, Json& root) {
  JsonBuffer copy;
  if (!copy.append(text.data(), text.size())) return -ENOMEM;
  if (!mend(copy.writable(), copy.size())) return -EBADMSG;
  copy.pad();
  switch (parse(copy.data(), copy.size(), root)) {
    case ParseResult::kMalformed: return -EBADMSG;
    case ParseResult::kNoMemory: return -ENOMEM;
    case ParseResult::kDone: break;
  }
  return 0;
}

void JsonParser::shrink(std::size_t keep_bytes) {
  if (parser_.capacity() > keep_bytes) parser_ = simdjson::dom::parser();
}

}  // namespace pickd::body
