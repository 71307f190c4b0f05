// Answers of completions, chat completions, embeddings and vLLM's own form, as one object or as
// events.
#include "libbody/answer.hpp"

namespace pickd::body {

void Answer::take_openai(const Json& root) {
  Json found;
  if (find(root, "error", found)) error(found);
  if (find(root, "usage", found)) take_openai_usage(found);
  if (!find(root, "choices", found) || !is_array(found)) return;
  for (const Json choice : array_of(found)) take_choice(choice);
}

void Answer::take_openai_usage(const Json& usage) {
  if (!is_object(usage)) return;
  has_usage_ = true;
  prompt_.take(count_in(usage, "prompt_tokens"));
  output_.take(count_in(usage, "completion_tokens"));
  Json details;
  if (find(usage, "prompt_tokens_details", details)) {
    cached_.take(count_in(details, "cached_tokens"));
  }
}

// One event may hold several choices, and a choice of an event is like one of a whole answer but
// for the name of its message.
void Answer::take_choice(const Json& choice) {
  std::uint32_t index = count_in(choice, "index");
  if (index == UINT32_MAX) index = 0;
  const bool kept = index == 0;  // the next turn follows one of them
  const std::uint64_t bit = std::uint64_t{1} << (index < 63 ? index : 63);
  open_choices_ |= bit;
  Json found;
  if (find(choice, "delta", found) || find(choice, "message", found)) take_message(found, kept);
  if (find(choice, "text", found) && !string_of(found).empty()) {
    token();
    if (kept) text_.add(PieceKind::kText, 0, string_of(found));
  }
  if (find(choice, "token_ids", found) && is_array(found) && array_of(found).size() != 0) token();
  if (find(choice, "finish_reason", found) && !found.is_null()) {
    open_choices_ &= ~bit;
    any_finished_ = true;
    if (token_events_ == 0) token();  // it had nothing to say, and said so
  }
}

void Answer::take_message(const Json& message, bool kept) {
  if (!is_object(message)) return;
  for (const auto field : object_of(message)) {
    const std::string_view text = string_of(field.value);
    PieceKind kind = PieceKind::kText;
    if (field.key == "tool_calls") {
      take_calls(field.value, kept);
      continue;
    }
    if (field.key == "reasoning_content" || field.key == "reasoning") {
      kind = PieceKind::kReasoning;
    } else if (field.key != "content" && field.key != "refusal") {
      continue;
    }
    if (text.empty()) continue;
    token();
    // Servers that tell reasoning by both names tell it twice; the first one is enough.
    if (kept && (field.key != "reasoning" || string_in(message, "reasoning_content").empty())) {
      text_.add(kind, 0, text);
    }
  }
}

void Answer::take_calls(const Json& calls, bool kept) {
  if (!is_array(calls)) return;
  std::uint64_t at = 0;
  for (const Json call : array_of(calls)) {
    token();
    Json function;
    const std::uint32_t told = count_in(call, "index");
    const std::uint64_t index = told == UINT32_MAX ? at : told;
    ++at;
    if (!kept || !find(call, "function", function)) continue;
    text_.name(index, string_in(function, "name"));
    text_.add(PieceKind::kCall, index, string_in(function, "arguments"));
  }
}

}  // namespace pickd::body
