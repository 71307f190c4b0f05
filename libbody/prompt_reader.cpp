// Prompts as strings and token ids, and what changes a prompt from its start.
#include "libbody/prompt_reader.hpp"

#include <errno.h>

namespace pickd::body {

namespace {

std::uint64_t tokens_of(const Json& prompt) {
  if (is_array(prompt)) return array_of(prompt).size();
  const std::size_t bytes = string_of(prompt).size();
  return bytes / abi::kBytesPerToken + (bytes % abi::kBytesPerToken != 0 ? 1 : 0);
}

bool is_number(const Json& json) { return json.is_number(); }

}  // namespace

int PromptReader::read(pickd_body_api api, const Fields& fields) {
  tokens_beyond_ = 0;
  is_open_ended_ = false;
  in_assistant_ = false;
  int code = -EINVAL;
  switch (api) {
    case PICKD_BODY_COMPLETIONS: code = completions(fields); break;
    case PICKD_BODY_CHAT: code = chat(fields); break;
    case PICKD_BODY_RESPONSES: code = responses(fields); break;
    case PICKD_BODY_EMBEDDINGS: code = embeddings(fields); break;
    case PICKD_BODY_MESSAGES: code = anthropic(fields); break;
    case PICKD_BODY_SGLANG: code = sglang(fields); break;
    case PICKD_BODY_VLLM: code = vllm(fields); break;
    case PICKD_BODY_UNKNOWN: code = -ENOENT; break;
  }
  return writer_.out_of_memory() ? -ENOMEM : code;
}

// Whatever of these is set gives another prompt from the first token on, so it stands first: equal
// texts behind it share nothing.
void PromptReader::heads(const Fields& fields) {
  constexpr Field kHeads[] = {Field::kChatTemplate,    Field::kChatTemplateKwargs,
                              Field::kDocuments,       Field::kMmProcessorKwargs,
                              Field::kReasoningEffort, Field::kTruncatePromptTokens};
  for (const Field field : kHeads) {
    if (const Json* value = fields.get(field); value != nullptr)
      writer_.head(name_of(field), *value);
  }
  Json kind;
  if (const Json* thinking = fields.get(Field::kThinking);
      thinking != nullptr && find(*thinking, "type", kind)) {
    writer_.head(name_of(Field::kThinking), kind);
  }
}

void PromptReader::tools(const Json* tools) {
  if (tools == nullptr || !is_array(*tools)) return;
  for (const Json tool : array_of(*tools)) writer_.tool(tool);
}

int PromptReader::completions(const Fields& fields) {
  const Json* embeds = fields.get(Field::kPromptEmbeds);
  if (embeds == nullptr) return prompts(fields.get(Field::kPrompt), fields);
  // Embeddings of tokens, in place of a text: alike where they are the same.
  if (!stream_.begin_prompt()) return -ENOMEM;
  heads(fields);
  if (const Json* prompt = fields.get(Field::kPrompt); prompt != nullptr && is_string(*prompt)) {
    writer_.text(string_of(*prompt));
  }
  writer_.medium(Mark::kFile, *embeds);
  stream_.end_prompt();
  return 0;
}

int PromptReader::embeddings(const Fields& fields) {
  if (fields.get(Field::kMessages) != nullptr) return chat(fields);
  return prompts(fields.get(Field::kInput), fields);
}

// One prompt as a string or a list of token ids, or a list of such. They are independent of each
// other.
int PromptReader::prompts(const Json* prompts, const Fields& fields) {
  if (prompts == nullptr) return -EINVAL;
  if (!is_array(*prompts)) return prompt(*prompts, fields);
  const JsonArray list = array_of(*prompts);
  if (list.size() == 0) return 0;
  if (is_number(*list.begin())) return token_prompt(list);
  for (const Json one : list) {
    if (stream_.prompt_count() == kPromptsMax) {
      tokens_beyond_ += tokens_of(one);
      continue;
    }
    if (const int code = prompt(one, fields); code != 0) return code;
  }
  return 0;
}

int PromptReader::prompt(const Json& prompt, const Fields& fields) {
  if (is_array(prompt)) return token_prompt(array_of(prompt));
  if (!is_string(prompt) && !is_object(prompt)) return -EINVAL;
  if (!stream_.begin_prompt()) return -ENOMEM;
  heads(fields);
  if (const Json* special = fields.get(Field::kAddSpecialTokens);
      special != nullptr && !is_true(*special)) {
    writer_.head(name_of(Field::kAddSpecialTokens), *special);  // true is what engines take for it
  }
  if (is_string(prompt)) {
    stream_.text(string_of(prompt));
  } else {
    writer_.other(prompt, {});
  }
  stream_.end_prompt();
  return 0;
}

int PromptReader::token_prompt(const JsonArray& ids) {
  if (!stream_.begin_prompt(true)) return -ENOMEM;
  for (const Json item : ids) {
    std::uint64_t id;
    if (item.get(id) != simdjson::SUCCESS || id > UINT32_MAX) return -EINVAL;
    stream_.token(static_cast<std::uint32_t>(id));
  }
  stream_.end_prompt();
  return 0;
}

}  // namespace pickd::body
