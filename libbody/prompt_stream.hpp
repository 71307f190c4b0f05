// The bytes that stand for a prompt: a few words of framing and what a body says, as segments for
// pickd_request.text. Knows neither JSON nor APIs.
//
// The frame. Decoded text is UTF-8, in which the bytes F8 to FF never stand; so
//
//   FF kind          begins a part of that kind (Mark)
//   ... FE           ends a word: a role, a name, a key or a string of JSON
//
// and no text can pose as another part. A text needs no end: the next FF ends it, and a text that
// goes on in the next turn has the same bytes as far as it came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "libbody/memory.hpp"
#include "pickd/pickd.h"

namespace pickd::body {

enum class Mark : char {
  kHead = 'H',       // word name, JSON: a field that changes the prompt from its start
  kTool = 'T',       // JSON
  kMessage = 'M',    // word role; its first text follows
  kName = 'N',       // word: who speaks, where messages say it
  kPart = 'P',       // a text behind another part of its message
  kReasoning = 'R',  // a text
  kCall = 'C',       // word name of the tool; arguments as text or JSON
  kResult = 'O',     // of a tool, inside a message; parts follow
  kOther = 'J',      // JSON: a part of a kind that is not known here
  kImage = 'I',      // digest
  kAudio = 'A',      // digest
  kVideo = 'V',      // digest
  kFile = 'F',       // digest
  kObject = '{',     // JSON: keys as words, in order, each with its value
  kObjectEnd = '}',
  kArray = '[',
  kArrayEnd = ']',
  kNumber = '#',  // word
  kTrue = 't',
  kFalse = 'f',
  kNull = 'n',
};

// One prompt of a body. Of text and ids it has one kind.
struct Prompt {
  std::size_t segment = 0;  // the first one
  std::size_t segment_count = 0;
  std::uint64_t bytes = 0;
  std::size_t token = 0;  // the first one
  std::size_t token_count = 0;
  bool of_tokens = false;
  bool has_content = false;  // more than blanks and roles
};

class PromptStream {
 public:
  // Forgets all prompts.
  void clear(std::size_t keep_bytes);

  // Everything goes to the prompt that was begun last. False, and the prompt is not there: memory
  // is out.
  bool begin_prompt(bool of_tokens = false);
  void end_prompt();
  // Goes on with the only prompt.
  void reopen_prompt();

  void mark(Mark kind);
  void word(std::string_view text);               // copied, or pointed to when it is long
  void text(std::string_view text);               // content; pointed to when it is long
  void raw(const void* bytes, std::size_t size);  // copied
  // `digest` repeated until it fills `bytes` bytes, which is at least its own size.
  void digest(const unsigned char* digest, std::size_t bytes);
  void token(std::uint32_t id);
  void set_content() { content_ = true; }
  // Whether text is copied also where it is long: it will not live as long as the stream.
  void set_copying(bool copying) { copying_ = copying; }

  bool out_of_memory() const { return out_of_memory_; }
  std::size_t prompt_count() const { return prompts_.size(); }
  const Prompt& prompt(std::size_t index) const { return prompts_[index]; }
  const pickd_slice* segments(const Prompt& prompt) const {
    return segments_.data() + prompt.segment;
  }
  const std::uint32_t* tokens(const Prompt& prompt) const { return tokens_.data() + prompt.token; }

 private:
  void put(const char* bytes, std::size_t size);
  void point(const char* bytes, std::size_t size);

  Arena arena_;
  List<pickd_slice> segments_;
  List<std::uint32_t> tokens_;
  List<Prompt> prompts_;
  const char* grown_ = nullptr;  // end of the last segment, if it lies in the arena
  bool content_ = false;
  bool copying_ = false;
  bool out_of_memory_ = false;
};

}  // namespace pickd::body
