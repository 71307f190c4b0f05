// JSON written in one way whatever the order of its keys and its spacing: into a prompt stream, or
// into a digest.
#pragma once

#include <span>
#include <string_view>

#include "libbody/json.hpp"
#include "libbody/memory.hpp"
#include "libbody/prompt_stream.hpp"

namespace pickd::body {

// A field that was met, in its place among those of its object.
struct SortedField {
  std::string_view key;
  std::uint32_t order;
  Json value;
};

using Names = std::span<const std::string_view>;

class Canonical {
 public:
  // Writes `json`; of the outermost object without the fields of these names. Of fields of one name
  // the last counts. False when memory is out.
  bool write(const Json& json, PromptStream& stream, Names without = {});
  // The same into 16 bytes. `kind` makes digests of equal JSON for other purposes other ones.
  bool digest(const Json& json, Mark kind, Names without, unsigned char* digest);
  static void digest(std::string_view text, Mark kind, unsigned char* digest);

 private:
  template <typename Sink>
  bool put(const Json& json, Sink& sink, Names without);
  template <typename Sink>
  bool put_object(const JsonObject& object, Sink& sink, Names without);

  List<SortedField> fields_;  // of the objects that are being written, innermost last
};

}  // namespace pickd::body
