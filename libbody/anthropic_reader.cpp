// Anthropic's messages: the system's text beside them, parts that are calls of tools and their
// results.
#include <errno.h>

#include "libbody/prompt_reader.hpp"

namespace pickd::body {

namespace {

// A client puts a line of figures of each request before its system text; engines take it away
// again.
constexpr std::string_view kBillingLine = "x-anthropic-billing-header:";

std::string_view without_billing_line(std::string_view text) {
  if (!text.starts_with(kBillingLine)) return text;
  const std::size_t end = text.find('\n');
  return end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
}

}  // namespace

int PromptReader::anthropic(const Fields& fields) {
  const Json* messages = fields.get(Field::kMessages);
  if (messages == nullptr || !is_array(*messages)) return -EINVAL;
  if (!stream_.begin_prompt()) return -ENOMEM;
  heads(fields);
  tools(fields.get(Field::kTools));
  if (const Json* system = fields.get(Field::kSystem); system != nullptr) anthropic_system(*system);
  for (const Json message : array_of(*messages)) {
    if (const int code = anthropic_message(message); code != 0) return code;
  }
  stream_.end_prompt();
  return 0;
}

void PromptReader::anthropic_system(const Json& system) {
  writer_.begin("system");
  if (is_string(system)) return writer_.text(without_billing_line(string_of(system)));
  if (!is_array(system)) return writer_.content(system);
  for (const Json part : array_of(system)) {
    if (string_in(part, "type") == "text") {
      writer_.text(without_billing_line(string_in(part, "text")));
    } else {
      writer_.part(part);
    }
  }
}

int PromptReader::anthropic_message(const Json& message) {
  Json content;
  if (!is_object(message)) return -EINVAL;
  const std::string_view role = string_in(message, "role");
  is_open_ended_ = role == "assistant";
  writer_.begin(role);
  if (!find(message, "content", content)) return 0;
  if (!is_array(content)) {
    writer_.content(content);
    return 0;
  }
  for (const Json part : array_of(content)) anthropic_part(part);
  return 0;
}

void PromptReader::anthropic_part(const Json& part) {
  const std::string_view type = string_in(part, "type");
  Json inner;
  if (type == "tool_use") {
    if (find(part, "input", inner)) {
      writer_.call(string_in(part, "name"), inner);
    } else {
      writer_.call_begin(string_in(part, "name"));
    }
  } else if (type == "tool_result") {
    writer_.result(find(part, "content", inner) ? &inner : nullptr);
  } else if (type == "thinking") {
    writer_.reasoning(string_in(part, "thinking"));
  } else if (type == "redacted_thinking") {
    writer_.reasoning(string_in(part, "data"));
  } else {
    writer_.part(part);
  }
}

}  // namespace pickd::body
