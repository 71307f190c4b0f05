#include "libbody/fields.hpp"

#include <array>

namespace pickd::body {

namespace {

// In the order of Field.
constexpr std::string_view kNames[] = {
    "model",
    "stream",
    "stream_options",
    "cache_salt",
    "extra_key",
    "lora_path",
    "n",
    "best_of",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "sampling_params",
    "continue_final_message",
    "session_id",
    "session_params",
    "conversation",
    "request_id",
    "rid",
    "prompt",
    "prompt_embeds",
    "messages",
    "tools",
    "functions",
    "system",
    "instructions",
    "input",
    "text",
    "input_ids",
    "token_ids",
    "features",
    "image_data",
    "video_data",
    "audio_data",
    "add_special_tokens",
    "chat_template",
    "chat_template_kwargs",
    "documents",
    "mm_processor_kwargs",
    "previous_response_id",
    "reasoning",
    "reasoning_effort",
    "thinking",
    "truncate_prompt_tokens",
};
constexpr std::size_t kFieldCount = std::size(kNames);
static_assert(kFieldCount == static_cast<std::size_t>(Field::kCount));

// Names by their length, so that a body of a million unknown keys costs a look or two for each.
constexpr std::size_t kNameBytesMax = 24;
constexpr std::size_t kSameLengthMax = 8;
struct OfLength {
  std::uint8_t count = 0;
  std::uint8_t fields[kSameLengthMax] = {};
};
constexpr std::array<OfLength, kNameBytesMax + 1> kByLength = [] {
  std::array<OfLength, kNameBytesMax + 1> made;
  for (std::size_t i = 0; i < kFieldCount; ++i) {
    OfLength& same = made[kNames[i].size()];
    same.fields[same.count++] = static_cast<std::uint8_t>(i);
  }
  return made;
}();

}  // namespace

std::string_view name_of(Field field) { return kNames[static_cast<std::size_t>(field)]; }

void Fields::read(const JsonObject& root) {
  present_ = 0;
  for (const auto field : root) {
    if (field.key.size() > kNameBytesMax) continue;
    const OfLength& same = kByLength[field.key.size()];
    for (std::size_t i = 0; i < same.count; ++i) {
      const std::size_t which = same.fields[i];
      if (field.key != kNames[which]) continue;
      const std::uint64_t bit = std::uint64_t{1} << which;
      values_[which] = field.value;
      present_ = field.value.is_null() ? present_ & ~bit : present_ | bit;
      break;
    }
  }
}

}  // namespace pickd::body
