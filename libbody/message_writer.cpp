#include "libbody/message_writer.hpp"

#include "libbody/limits.hpp"

namespace pickd::body {

namespace {

struct MediaType {
  std::string_view type;
  Mark mark;
};
constexpr MediaType kMediaTypes[] = {
    {"image_url", Mark::kImage},    {"input_image", Mark::kImage},
    {"image", Mark::kImage},        {"image_embeds", Mark::kImage},
    {"image_pil", Mark::kImage},    {"input_audio", Mark::kAudio},
    {"audio_url", Mark::kAudio},    {"audio", Mark::kAudio},
    {"audio_embeds", Mark::kAudio}, {"video_url", Mark::kVideo},
    {"video", Mark::kVideo},        {"input_video", Mark::kVideo},
    {"file", Mark::kFile},          {"input_file", Mark::kFile},
    {"document", Mark::kFile},      {"container_upload", Mark::kFile},
};
// What does not tell one medium from another.
constexpr std::string_view kNotOfMedia[] = {"type", "detail", "cache_control", "citations"};
constexpr std::string_view kNotOfTool[] = {"cache_control"};
// What differs between requests of one prompt.
constexpr std::string_view kNotOfPrompt[] = {"cache_control", "citations", "id", "status"};

bool is_text_type(std::string_view type) {
  return type == "text" || type == "input_text" || type == "output_text";
}

}  // namespace

void MessageWriter::begin(std::string_view role) {
  pieces_ = 0;
  stream_.mark(Mark::kMessage);
  // Templates put a developer's text where the system's stands.
  stream_.word(role == "developer" ? "system" : role);
}

void MessageWriter::name(std::string_view name) {
  if (name.empty()) return;
  stream_.mark(Mark::kName);
  stream_.word(name);
}

void MessageWriter::separate() {
  if (pieces_++ != 0) stream_.mark(Mark::kPart);
}

void MessageWriter::text(std::string_view text) {
  if (text.empty()) return;
  separate();
  stream_.text(text);
}

void MessageWriter::reasoning(std::string_view text) {
  if (text.empty()) return;
  ++pieces_;
  stream_.mark(Mark::kReasoning);
  stream_.text(text);
}

void MessageWriter::call_begin(std::string_view name) {
  ++pieces_;
  stream_.mark(Mark::kCall);
  stream_.word(name);
  stream_.set_content();
}

void MessageWriter::call(std::string_view name, std::string_view arguments) {
  call_begin(name);
  stream_.text(arguments);
}

void MessageWriter::call(std::string_view name, const Json& arguments) {
  call_begin(name);
  if (is_string(arguments)) {
    stream_.text(string_of(arguments));
  } else {
    json(arguments, {});
  }
}

void MessageWriter::content(const Json& content) {
  if (is_string(content)) {
    text(string_of(content));
  } else if (is_array(content)) {
    for (const Json one : array_of(content)) part(one);
  } else if (!content.is_null()) {
    part(content);
  }
}

void MessageWriter::part(const Json& part) {
  if (is_string(part)) return text(string_of(part));
  const std::string_view type = string_in(part, "type");
  if (is_text_type(type)) return text(string_in(part, "text"));
  if (type == "refusal") return text(string_in(part, "refusal"));
  for (const MediaType& media : kMediaTypes) {
    if (media.type == type) return medium(media.mark, part);
  }
  other(part, kNotOfPrompt);
}

void MessageWriter::result(const Json* content) {
  stream_.mark(Mark::kResult);
  stream_.set_content();
  pieces_ = 0;
  if (content != nullptr) this->content(*content);
  ++pieces_;  // a text that follows is not of the result
}

void MessageWriter::medium(Mark kind, const Json& json) {
  unsigned char digest[kDigestBytes];
  const std::string_view uuid = string_in(json, "uuid");
  if (!uuid.empty()) {
    Canonical::digest(uuid, kind, digest);
  } else if (!canonical_.digest(json, kind, kNotOfMedia, digest)) {
    out_of_memory_ = true;
    return;
  }
  put_medium(kind, digest);
}

void MessageWriter::put_medium(Mark kind, const unsigned char* digest) {
  ++pieces_;
  stream_.mark(kind);
  stream_.set_content();
  const std::size_t bytes = media_++ < kMediaExpandedMax
                                ? std::size_t{media_tokens_} * abi::kBytesPerToken
                                : kDigestBytes;
  stream_.digest(digest, bytes < kDigestBytes ? kDigestBytes : bytes);
}

void MessageWriter::other(const Json& json, Names without) {
  ++pieces_;
  stream_.mark(Mark::kOther);
  stream_.set_content();
  this->json(json, without);
}

void MessageWriter::tool(const Json& tool) {
  stream_.mark(Mark::kTool);
  stream_.set_content();
  json(tool, kNotOfTool);
}

void MessageWriter::head(std::string_view name, const Json& value) {
  if ((is_object(value) && object_of(value).size() == 0) ||
      (is_array(value) && array_of(value).size() == 0)) {
    return;
  }
  stream_.mark(Mark::kHead);
  stream_.word(name);
  json(value, {});
}

void MessageWriter::json(const Json& json, Names without) {
  if (!canonical_.write(json, stream_, without)) out_of_memory_ = true;
}

}  // namespace pickd::body
