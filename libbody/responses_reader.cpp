// OpenAI's responses: instructions and a list of items, of which several make one turn.
#include <errno.h>

#include "libbody/prompt_reader.hpp"

namespace pickd::body {

namespace {

constexpr std::string_view kNotOfItem[] = {"id", "status"};

}  // namespace

int PromptReader::responses(const Fields& fields) {
  const Json* input = fields.get(Field::kInput);
  // What is not in the body stands before it: a stored conversation, a stored prompt.
  constexpr Field kStored[] = {Field::kPreviousResponseId, Field::kConversation, Field::kPrompt};
  bool stored = false;
  for (const Field field : kStored) stored = stored || fields.get(field) != nullptr;
  if (input == nullptr && !stored) return -EINVAL;
  if (input != nullptr && !is_string(*input) && !is_array(*input)) return -EINVAL;

  if (!stream_.begin_prompt()) return -ENOMEM;
  heads(fields);
  Json effort;
  if (const Json* reasoning = fields.get(Field::kReasoning);
      reasoning != nullptr && find(*reasoning, "effort", effort) && !effort.is_null()) {
    writer_.head(name_of(Field::kReasoningEffort), effort);
  }
  for (const Field field : kStored) {
    if (const Json* value = fields.get(field); value != nullptr)
      writer_.head(name_of(field), *value);
  }
  tools(fields.get(Field::kTools));
  if (const Json* instructions = fields.get(Field::kInstructions); instructions != nullptr) {
    if (is_string(*instructions)) {
      writer_.begin("system");
      writer_.text(string_of(*instructions));
    } else if (is_array(*instructions)) {
      for (const Json item : array_of(*instructions)) responses_item(item);
    }
  }
  if (input != nullptr && is_string(*input)) {
    writer_.begin("user");
    writer_.text(string_of(*input));
  } else if (input != nullptr) {
    for (const Json item : array_of(*input)) responses_item(item);
  }
  stream_.end_prompt();
  return 0;
}

// Reasoning, text and calls of one turn are items of their own; they make one message, as they do
// for the engine.
void PromptReader::be_assistant() {
  if (!in_assistant_) writer_.begin("assistant");
  in_assistant_ = true;
}

void PromptReader::responses_item(const Json& item) {
  const std::string_view type = string_in(item, "type");
  Json inner;
  if (type == "message" || (type.empty() && find(item, "role", inner))) {
    const std::string_view role = string_in(item, "role");
    if (role == "assistant") {
      be_assistant();
    } else {
      in_assistant_ = false;
      writer_.begin(role);
    }
    if (find(item, "content", inner)) writer_.content(inner);
  } else if (type == "function_call" || type == "custom_tool_call") {
    be_assistant();
    if (find(item, "arguments", inner) || find(item, "input", inner)) {
      writer_.call(string_in(item, "name"), inner);
    } else {
      writer_.call_begin(string_in(item, "name"));
    }
  } else if (type == "function_call_output" || type == "custom_tool_call_output") {
    in_assistant_ = false;
    writer_.begin("tool");
    if (find(item, "output", inner)) writer_.content(inner);
  } else if (type == "reasoning") {
    responses_reasoning(item);
  } else {
    writer_.other(item, kNotOfItem);
  }
}

void PromptReader::responses_reasoning(const Json& item) {
  be_assistant();
  Json texts;
  for (const std::string_view list : {"content", "summary"}) {
    if (!find(item, list, texts) || !is_array(texts)) continue;
    bool any = false;
    for (const Json text : array_of(texts)) {
      writer_.reasoning(string_in(text, "text"));
      any = true;
    }
    if (any) return;
  }
  writer_.reasoning(string_in(item, "encrypted_content"));
}

}  // namespace pickd::body
