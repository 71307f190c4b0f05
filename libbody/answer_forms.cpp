// Answers of Anthropic's messages, OpenAI's responses and SGLang's /generate.
#include "libbody/answer.hpp"

namespace pickd::body {

namespace {

std::uint64_t index_in(const Json& json, std::string_view name) {
  const std::uint32_t index = count_in(json, name);
  return index == UINT32_MAX ? 0 : index;
}

}  // namespace

// ---- Anthropic ----------------------------------------------------------------------------------

void Answer::take_messages_event(const Json& root) {
  const std::string_view type = string_in(root, "type");
  Json found, inner;
  if (type == "message_start") {
    if (find(root, "message", found) && find(found, "usage", inner)) take_messages_usage(inner);
  } else if (type == "content_block_start") {
    if (find(root, "content_block", found))
      take_messages_block(index_in(root, "index"), found, false);
  } else if (type == "content_block_delta") {
    if (!find(root, "delta", found)) return;
    const std::uint64_t index = index_in(root, "index");
    for (const auto& [name, kind] :
         {std::pair<std::string_view, PieceKind>{"text", PieceKind::kText},
          {"thinking", PieceKind::kReasoning},
          {"partial_json", PieceKind::kCall}}) {
      const std::string_view text = string_in(found, name);
      if (text.empty()) continue;
      token();
      text_.add(kind, index, text);
    }
  } else if (type == "message_delta") {
    if (find(root, "usage", found)) take_messages_usage(found);
    if (token_events_ == 0 && find(root, "delta", found) &&
        !string_in(found, "stop_reason").empty()) {
      token();  // it had nothing to say, and said so
    }
  } else if (type == "message_stop") {
    is_whole_ = true;
  } else if (type == "error") {
    if (find(root, "error", found)) error(found);
  }
}

// A block of an answer, whole or as it begins.
void Answer::take_messages_block(std::uint64_t index, const Json& block, bool whole) {
  const std::string_view type = string_in(block, "type");
  Json input;
  if (type == "text" || type == "thinking") {
    const std::string_view text = string_in(block, type);
    if (!text.empty()) token();
    text_.add(type == "text" ? PieceKind::kText : PieceKind::kReasoning, index, text);
  } else if (type == "tool_use") {
    token();
    if (whole && find(block, "input", input)) {
      text_.call_json(index, string_in(block, "name"), input);
    } else {
      text_.name(index, string_in(block, "name"));
    }
  }
}

// The prompt's tokens come in three parts, of which the events need not tell the same.
void Answer::take_messages_usage(const Json& usage) {
  if (!is_object(usage)) return;
  has_usage_ = true;
  uncached_.take(count_in(usage, "input_tokens"));
  cache_written_.take(count_in(usage, "cache_creation_input_tokens"));
  cached_.take(count_in(usage, "cache_read_input_tokens"));
  output_.take(count_in(usage, "output_tokens"));
}

void Answer::take_messages(const Json& root) {
  Json found;
  if (find(root, "error", found)) error(found);
  if (find(root, "usage", found)) take_messages_usage(found);
  if (!find(root, "content", found) || !is_array(found)) return;
  std::uint64_t index = 0;
  for (const Json block : array_of(found)) take_messages_block(index++, block, true);
}

// ---- Responses ----------------------------------------------------------------------------------

void Answer::take_responses_event(const Json& root) {
  const std::string_view type = string_in(root, "type");
  Json found;
  const std::uint64_t item = index_in(root, "output_index");
  const std::uint64_t part = item << 32 | index_in(root, "content_index");
  const std::string_view delta = string_in(root, "delta");
  if (type == "response.output_text.delta" || type == "response.refusal.delta") {
    if (!delta.empty()) token();
    text_.add(PieceKind::kText, part, delta);
  } else if (type == "response.reasoning_text.delta" ||
             type == "response.reasoning_summary_text.delta") {
    if (!delta.empty()) token();
    text_.add(PieceKind::kReasoning, part, delta);
  } else if (type == "response.function_call_arguments.delta") {
    if (!delta.empty()) token();
    text_.add(PieceKind::kCall, item, delta);
  } else if (type == "response.output_item.added") {
    if (find(root, "item", found) && string_in(found, "type") == "function_call") {
      token();
      text_.name(item, string_in(found, "name"));
    }
  } else if (type == "response.completed" || type == "response.incomplete" ||
             type == "response.failed") {
    is_whole_ = true;
    if (find(root, "response", found)) take_responses(found, false);
    if (type == "response.failed" && error_ == Error::kNone) error_ = Error::kOfServer;
    if (token_events_ == 0) token();
  } else if (type == "error") {
    if (!find(root, "error", found)) found = root;
    error(found);
  }
}

void Answer::take_responses(const Json& response, bool with_text) {
  Json found, details;
  if (find(response, "error", found)) error(found);
  if (find(response, "usage", found) && is_object(found)) {
    has_usage_ = true;
    prompt_.take(count_in(found, "input_tokens"));
    output_.take(count_in(found, "output_tokens"));
    if (find(found, "input_tokens_details", details)) {
      cached_.take(count_in(details, "cached_tokens"));
    }
  }
  if (!with_text || !find(response, "output", found) || !is_array(found)) return;
  std::uint64_t index = 0;
  for (const Json item : array_of(found)) take_responses_item(index++, item);
}

void Answer::take_responses_item(std::uint64_t index, const Json& item) {
  const std::string_view type = string_in(item, "type");
  Json parts;
  if (type == "function_call") {
    text_.name(index, string_in(item, "name"));
    text_.add(PieceKind::kCall, index, string_in(item, "arguments"));
    return;
  }
  if (type != "message" && type != "reasoning") return;
  const bool has_content = find(item, "content", parts) && is_array(parts);
  if (!has_content && (!find(item, "summary", parts) || !is_array(parts))) return;
  std::uint64_t part = index << 32;
  for (const Json one : array_of(parts)) {
    std::string_view text = string_in(one, "text");
    if (text.empty()) text = string_in(one, "refusal");
    text_.add(type == "message" ? PieceKind::kText : PieceKind::kReasoning, part++, text);
  }
}

// ---- SGLang -------------------------------------------------------------------------------------

// One object, or one for each prompt and answer.
void Answer::take_sglang(const Json& root) {
  if (is_array(root)) {
    std::uint64_t prompt = 0, cached = 0, output = 0;
    Json meta;
    for (const Json one : array_of(root)) {
      if (!find(one, "meta_info", meta)) continue;
      has_usage_ = true;
      const std::uint32_t figures[] = {count_in(meta, "prompt_tokens"),
                                       count_in(meta, "cached_tokens"),
                                       count_in(meta, "completion_tokens")};
      if (figures[0] != PICKD_UNKNOWN) prompt += figures[0];
      if (figures[1] != PICKD_UNKNOWN) cached += figures[1];
      if (figures[2] != PICKD_UNKNOWN) output += figures[2];
    }
    if (!has_usage_) return;
    const auto cut = [](std::uint64_t sum) {
      return sum < PICKD_UNKNOWN ? static_cast<std::uint32_t>(sum) : PICKD_UNKNOWN - 1;
    };
    prompt_.take(cut(prompt));
    cached_.take(cut(cached));
    output_.take(cut(output));
    return;
  }
  Json found, reason;
  if (find(root, "error", found)) error(found);
  const std::string_view text = string_in(root, "text");
  if (!text.empty()) token();
  if (index_in(root, "index") == 0) text_.replace(0, text);
  if (find(root, "output_ids", found) && is_array(found) && array_of(found).size() != 0) token();
  if (!find(root, "meta_info", found)) return;
  has_usage_ = true;
  prompt_.take(count_in(found, "prompt_tokens"));
  cached_.take(count_in(found, "cached_tokens"));
  output_.take(count_in(found, "completion_tokens"));
  if (find(found, "finish_reason", reason) && !reason.is_null()) {
    any_finished_ = true;
    if (token_events_ == 0) token();
  }
}

}  // namespace pickd::body
