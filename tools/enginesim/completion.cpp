// The completions API. See completion.hpp.
#include "tools/enginesim/completion.hpp"

#include <limits>
#include <nlohmann/json.hpp>

namespace pickd::enginesim {

using nlohmann::json;

namespace {

base::Error bad(const std::string& text) { return {-EINVAL, text}; }

// Reads a member of `object` when it is there and not null.
base::Result<void> read_flag(const json& object, const char* name, bool& flag) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return {};
  if (!found->is_boolean()) return bad(std::string(name) + " must be true or false");
  flag = found->get<bool>();
  return {};
}

base::Result<std::vector<Token>> read_prompt(const json& prompt) {
  if (prompt.is_string()) {
    const auto& text = prompt.get_ref<const std::string&>();
    if (text.empty()) return bad("prompt must not be empty");
    return tokens_of(text);
  }
  const char* what = "prompt must be a string or a non-empty array of token ids (0..4294967295)";
  if (!prompt.is_array() || prompt.empty()) return bad(what);
  std::vector<Token> tokens;
  tokens.reserve(prompt.size());
  for (const json& id : prompt) {
    if (!id.is_number_unsigned()) return bad(what);
    const auto value = id.get<std::uint64_t>();
    if (value > std::numeric_limits<Token>::max()) return bad(what);
    tokens.push_back(static_cast<Token>(value));
  }
  return tokens;
}

json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"total_tokens", usage.prompt_tokens + usage.output_tokens},
          {"completion_tokens", usage.output_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

std::string quoted(std::string_view text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

base::Result<CompletionRequest> parse_completion(std::string_view body) {
  const json object = json::parse(body, nullptr, false);
  if (!object.is_object()) return bad("the body must be a JSON object");
  CompletionRequest request;

  const auto model = object.find("model");
  if (model != object.end() && !model->is_null()) {
    if (!model->is_string()) return bad("model must be a string");
    request.model = model->get<std::string>();
  }
  const auto salt = object.find("cache_salt");
  if (salt != object.end() && !salt->is_null()) {
    if (!salt->is_string()) return bad("cache_salt must be a string");
    request.salt = salt->get<std::string>();
  }
  const auto tokens_max = object.find("max_tokens");
  if (tokens_max != object.end() && !tokens_max->is_null()) {
    if (!tokens_max->is_number_unsigned() || *tokens_max < 1U ||
        *tokens_max > std::numeric_limits<std::uint32_t>::max()) {
      return bad("max_tokens must be a whole number of at least 1");
    }
    request.tokens_max = tokens_max->get<std::uint32_t>();
  }
  if (auto read = read_flag(object, "stream", request.stream); !read) return read.error();
  if (auto read = read_flag(object, "ignore_eos", request.ignore_eos); !read) return read.error();
  const auto options = object.find("stream_options");
  if (options != object.end() && !options->is_null()) {
    if (!options->is_object()) return bad("stream_options must be an object");
    if (auto read = read_flag(*options, "include_usage", request.include_usage); !read) {
      return read.error();
    }
    if (auto read = read_flag(*options, "continuous_usage_stats", request.continuous_usage);
        !read) {
      return read.error();
    }
  }
  const auto prompt = object.find("prompt");
  if (prompt == object.end()) return bad("prompt is missing");
  auto tokens = read_prompt(*prompt);
  if (!tokens) return tokens.error();
  request.prompt = std::move(*tokens);
  return request;
}

CompletionWriter::CompletionWriter(std::string_view id, std::string_view model,
                                   std::uint64_t created_s)
    : head_("{\"id\":" + quoted(id) + ",\"object\":\"text_completion\",\"created\":" +
            std::to_string(created_s) + ",\"model\":" + quoted(model) + ",\"choices\":[") {}

std::string CompletionWriter::event(std::string_view text, std::string_view finish_reason,
                                    const Usage* usage) const {
  std::string out = "data: " + head_ + "{\"index\":0,\"text\":" + quoted(text) +
                    ",\"logprobs\":null,\"finish_reason\":";
  out += finish_reason.empty() ? "null" : quoted(finish_reason);
  out += ",\"stop_reason\":null}]";
  if (usage != nullptr) out += ",\"usage\":" + usage_json(*usage).dump();
  return out + "}\n\n";
}

std::string CompletionWriter::usage_event(const Usage& usage) const {
  return "data: " + head_ + "],\"usage\":" + usage_json(usage).dump() + "}\n\n";
}

std::string CompletionWriter::whole(std::string_view text, std::string_view finish_reason,
                                    const Usage& usage) const {
  return head_ + "{\"index\":0,\"text\":" + quoted(text) +
         ",\"logprobs\":null,\"finish_reason\":" + quoted(finish_reason) +
         ",\"stop_reason\":null}],\"usage\":" + usage_json(usage).dump() + "}";
}

std::string error_body(int status, std::string_view type, std::string_view message) {
  const json error = {
      {"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", status}}}};
  return error.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string models_body(const std::vector<std::string>& names, std::uint64_t tokens_max,
                        std::uint64_t created_s) {
  json models = json::array();
  for (std::size_t i = 0; i < names.size(); ++i) {
    json model = {
        {"id", names[i]}, {"object", "model"}, {"created", created_s}, {"owned_by", "pickd"}};
    model["root"] = names[i];
    model["parent"] = i == 0 ? json(nullptr) : json(names[0]);
    if (i == 0) model["max_model_len"] = tokens_max;
    models.push_back(std::move(model));
  }
  return json{{"object", "list"}, {"data", std::move(models)}}.dump();
}

}  // namespace pickd::enginesim
