// The top-level fields of a body that mean something here, found in one pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "libbody/json.hpp"

namespace pickd::body {

enum class Field : std::uint8_t {
  kModel,
  kStream,
  kStreamOptions,
  kCacheSalt,
  kExtraKey,
  kLoraPath,
  kN,
  kBestOf,
  kMaxTokens,
  kMaxCompletionTokens,
  kMaxOutputTokens,
  kSamplingParams,
  kContinueFinalMessage,
  // Who asks.
  kSessionId,
  kSessionParams,
  kConversation,
  kRequestId,
  kRid,
  // Prompts.
  kPrompt,
  kPromptEmbeds,
  kMessages,
  kTools,
  kFunctions,
  kSystem,
  kInstructions,
  kInput,
  kText,
  kInputIds,
  kTokenIds,
  kFeatures,
  kImageData,
  kVideoData,
  kAudioData,
  // What changes the prompt from its start.
  kAddSpecialTokens,
  kChatTemplate,
  kChatTemplateKwargs,
  kDocuments,
  kMmProcessorKwargs,
  kPreviousResponseId,
  kReasoning,
  kReasoningEffort,
  kThinking,
  kTruncatePromptTokens,
  kCount,
};

std::string_view name_of(Field field);

class Fields {
 public:
  // Of fields of one name the last counts.
  void read(const JsonObject& root);
  void clear() { present_ = 0; }

  // nullptr: absent, or null, which engines take for absent.
  const Json* get(Field field) const {
    return (present_ >> static_cast<unsigned>(field) & 1) != 0
               ? &values_[static_cast<std::size_t>(field)]
               : nullptr;
  }
  std::string_view string(Field field) const {
    const Json* json = get(field);
    return json == nullptr ? std::string_view() : string_of(*json);
  }
  bool is_set(Field field) const {
    const Json* json = get(field);
    return json != nullptr && is_true(*json);
  }
  std::uint32_t count(Field field) const {
    const Json* json = get(field);
    return json == nullptr ? UINT32_MAX : count_of(*json);
  }

 private:
  static constexpr std::size_t kFields = static_cast<std::size_t>(Field::kCount);
  static_assert(kFields <= 64);
  Json values_[kFields];
  std::uint64_t present_ = 0;
};

}  // namespace pickd::body
