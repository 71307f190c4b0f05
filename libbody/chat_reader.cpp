// OpenAI's chat completions.
#include <errno.h>

#include "libbody/prompt_reader.hpp"

namespace pickd::body {

namespace {

constexpr std::string_view kNotOfCall[] = {"id"};

}  // namespace

int PromptReader::chat(const Fields& fields) {
  const Json* messages = fields.get(Field::kMessages);
  if (messages == nullptr || !is_array(*messages)) return -EINVAL;
  if (!stream_.begin_prompt()) return -ENOMEM;
  heads(fields);
  if (fields.is_set(Field::kAddSpecialTokens)) {  // templates bring their own
    writer_.head(name_of(Field::kAddSpecialTokens), *fields.get(Field::kAddSpecialTokens));
  }
  tools(fields.get(Field::kTools));
  tools(fields.get(Field::kFunctions));
  for (const Json message : array_of(*messages)) {
    if (const int code = chat_message(message); code != 0) return code;
  }
  stream_.end_prompt();
  return 0;
}

// Role, reasoning, parts, tool calls. Numbers of tool calls are left out: few templates print them.
int PromptReader::chat_message(const Json& message) {
  if (!is_object(message)) return -EINVAL;
  Json content, calls, call;
  std::string_view role, name, reasoning, refusal;
  bool has_content = false, has_calls = false, has_call = false;
  for (const auto field : object_of(message)) {
    if (field.key == "role") {
      role = string_of(field.value);
    } else if (field.key == "content") {
      content = field.value;
      has_content = true;
    } else if (field.key == "name") {
      name = string_of(field.value);
    } else if (field.key == "reasoning_content" || field.key == "reasoning") {
      if (is_string(field.value)) reasoning = string_of(field.value);
    } else if (field.key == "refusal") {
      refusal = string_of(field.value);
    } else if (field.key == "tool_calls") {
      calls = field.value;
      has_calls = is_array(calls);
    } else if (field.key == "function_call") {
      call = field.value;
      has_call = is_object(call);
    }
  }
  writer_.begin(role);
  writer_.name(name);
  writer_.reasoning(reasoning);
  if (has_content) writer_.content(content);
  writer_.text(refusal);
  if (has_calls) chat_calls(calls);
  if (has_call) {
    Json arguments;
    if (find(call, "arguments", arguments)) {
      writer_.call(string_in(call, "name"), arguments);
    } else {
      writer_.call_begin(string_in(call, "name"));
    }
  }
  return 0;
}

void PromptReader::chat_calls(const Json& calls) {
  for (const Json call : array_of(calls)) {
    Json function, arguments;
    if (!find(call, "function", function) && !find(call, "custom", function)) {
      writer_.other(call, kNotOfCall);
      continue;
    }
    const std::string_view name = string_in(function, "name");
    if (find(function, "arguments", arguments) || find(function, "input", arguments)) {
      writer_.call(name, arguments);
    } else {
      writer_.call_begin(name);
    }
  }
}

}  // namespace pickd::body
