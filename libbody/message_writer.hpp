// Messages as they stand in a prompt stream: the same bytes for the same message, whether a body
// says it, in whichever form, or an answer made it.
#pragma once

#include <cstdint>
#include <string_view>

#include "libbody/canonical.hpp"
#include "libbody/json.hpp"
#include "libbody/prompt_stream.hpp"

namespace pickd::body {

class MessageWriter {
 public:
  MessageWriter(PromptStream& stream, Canonical& canonical, std::uint32_t media_tokens)
      : stream_(stream), canonical_(canonical), media_tokens_(media_tokens) {}

  void begin(std::string_view role);
  void name(std::string_view name);
  void text(std::string_view text);  // an empty one is none
  void reasoning(std::string_view text);
  void call(std::string_view name, std::string_view arguments);
  void call(std::string_view name, const Json& arguments);  // a string of JSON counts as text
  // The arguments in pieces: after call_begin(), as text.
  void call_begin(std::string_view name);

  // A string, a list of parts, one part, or null.
  void content(const Json& content);
  // A text, an image, whatever: a part whose kind is not known is written as JSON.
  void part(const Json& part);
  void result(const Json* content);  // of a tool, inside a message; nullptr: it has none
  void other(const Json& json, Names without);
  void tool(const Json& tool);
  // A field that changes the prompt from its start. An empty object or list is as good as none.
  void head(std::string_view name, const Json& value);
  void medium(Mark kind, const Json& json);

  PromptStream& stream() { return stream_; }
  bool out_of_memory() const { return out_of_memory_ || stream_.out_of_memory(); }
  std::uint32_t media_count() const { return media_; }

 private:
  void separate();
  void json(const Json& json, Names without);
  void put_medium(Mark kind, const unsigned char* digest);

  PromptStream& stream_;
  Canonical& canonical_;
  const std::uint32_t media_tokens_;
  std::uint32_t media_ = 0;
  std::uint32_t pieces_ = 0;  // of the message that is being written
  bool out_of_memory_ = false;
};

}  // namespace pickd::body
