// What the tests of libpickd-body need: a body through the C interface, and the prefix keys that
// libpickd makes of it, with the hasher of the library itself.
#pragma once

#include <gtest/gtest.h>

#include <errno.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "abi/key.hpp"
#include "libclient/prompt_keys.hpp"
#include "pickd/body.h"

namespace pickd::body {

inline constexpr char kChat[] = "/v1/chat/completions";
inline constexpr char kCompletions[] = "/v1/completions";
inline constexpr char kResponses[] = "/v1/responses";
inline constexpr char kMessages[] = "/v1/messages";
inline constexpr char kEmbeddings[] = "/v1/embeddings";
inline constexpr char kSglang[] = "/generate";
inline constexpr char kVllm[] = "/inference/v1/generate";

inline pickd_slice slice_of(std::string_view text) { return {text.data(), text.size()}; }
inline std::string string_of(const pickd_slice& slice) {
  return slice.size == 0 ? std::string()
                         : std::string(static_cast<const char*>(slice.data), slice.size);
}

struct FreeBody {
  void operator()(pickd_body* body) const { pickd_body_free(body); }
};
using BodyHandle = std::unique_ptr<pickd_body, FreeBody>;
inline BodyHandle new_body(const pickd_body_options* options = nullptr) {
  pickd_body* body = nullptr;
  EXPECT_EQ(pickd_body_new(options, &body), 0);
  return BodyHandle(body);
}

using Keys = std::vector<std::uint64_t>;
using HeaderList = std::vector<std::pair<std::string, std::string>>;
inline constexpr std::size_t kBlockBytes = 256;

// The keys that a request of libpickd has.
inline Keys keys_of(const pickd_request& request) {
  std::array<std::uint8_t, abi::kHashSecretBytes> secret;
  for (std::size_t i = 0; i < secret.size(); ++i)
    secret[i] = static_cast<std::uint8_t>(i * 167 + 13);
  const abi::KeyHasher hasher(secret.data());
  client::Prompt prompt;
  pickd_slice ids{request.token_ids, request.token_count * sizeof(std::uint32_t)};
  prompt.segments = request.text;
  prompt.segment_count = request.text_count;
  if (request.token_count != 0) {
    EXPECT_EQ(request.text_count, 0U) << "both text and token ids";
    prompt.kind = abi::KeyKind::kTokens;
    prompt.segments = &ids;
    prompt.segment_count = 1;
  }
  for (std::size_t i = 0; i < prompt.segment_count; ++i) prompt.bytes += prompt.segments[i].size;
  prompt.extras = request.extras;
  prompt.extra_count = request.extra_count;
  prompt.extra_stride = sizeof(pickd_extra);
  const abi::KeyAlgorithm algorithm{1, prompt.kind, 1, 0, kBlockBytes};
  const pickd_slice& owner = request.adapter.size != 0 ? request.adapter : request.model;
  Keys keys(client::count_keys(prompt, algorithm));
  client::hash_prompt(
      hasher, algorithm,
      hasher.root(algorithm, owner.data, owner.size, request.salt.data, request.salt.size), prompt,
      static_cast<std::uint32_t>(keys.size()), keys.data());
  return keys;
}

// One body, read in pieces of `step` bytes.
class Read {
 public:
  Read(std::string_view path, std::string_view json, const HeaderList& headers = {},
       std::string_view tenant = {}, std::size_t step = SIZE_MAX,
       const pickd_body_options* options = nullptr)
      : body_(new_body(options)) {
    again(path, json, headers, tenant, step);
  }

  void again(std::string_view path, std::string_view json, const HeaderList& headers = {},
             std::string_view tenant = {}, std::size_t step = SIZE_MAX) {
    pickd_body_head head = PICKD_BODY_HEAD_INIT;
    std::vector<pickd_attribute> list;
    for (const auto& [name, value] : headers) list.push_back({slice_of(name), slice_of(value)});
    head.path = slice_of(path);
    head.headers = list.data();
    head.header_count = list.size();
    head.tenant = slice_of(tenant);
    EXPECT_EQ(pickd_body_begin(body_.get(), &head), 0);
    while (!json.empty()) {
      // A copy of just this size, so that reading beyond it is noticed.
      const std::vector<char> piece(
          json.begin(), json.begin() + static_cast<std::ptrdiff_t>(std::min(step, json.size())));
      pickd_body_add(body_.get(), piece.data(), piece.size());
      json.remove_prefix(piece.size());
    }
    status = pickd_body_end(body_.get());
    info = PICKD_BODY_INFO_INIT;
    EXPECT_EQ(pickd_body_read_info(body_.get(), &info), 0);
    EXPECT_EQ(info.status, status);
  }

  pickd_request request(std::size_t index = PICKD_BODY_LONGEST) const {
    pickd_request request = PICKD_REQUEST_INIT;
    EXPECT_EQ(pickd_body_request(body_.get(), index, &request), 0);
    return request;
  }
  Keys keys(std::size_t index = PICKD_BODY_LONGEST) const { return keys_of(request(index)); }
  // The bytes of the prompt.
  std::string text(std::size_t index = PICKD_BODY_LONGEST) const {
    std::string text;
    const pickd_request asked = request(index);
    for (std::size_t i = 0; i < asked.text_count; ++i) text += string_of(asked.text[i]);
    return text;
  }
  std::vector<std::uint32_t> tokens(std::size_t index = PICKD_BODY_LONGEST) const {
    const pickd_request asked = request(index);
    return {asked.token_ids, asked.token_ids + asked.token_count};
  }
  std::string model() const { return string_of(info.model); }
  pickd_body* get() const { return body_.get(); }

  int status = -1;
  pickd_body_info info = PICKD_BODY_INFO_INIT;

 private:
  BodyHandle body_;
};

// Leading blocks that two prompts share.
inline std::size_t shared(const Keys& a, const Keys& b) {
  std::size_t count = 0;
  while (count < a.size() && count < b.size() && a[count] == b[count]) ++count;
  return count;
}
inline bool share_nothing(const Keys& a, const Keys& b) {
  for (const std::uint64_t key : a) {
    if (std::find(b.begin(), b.end(), key) != b.end()) return false;
  }
  return !a.empty() && !b.empty();
}

// Text of some blocks, of which no block is like another.
inline std::string long_text(std::size_t bytes, std::string_view seed = "policy") {
  std::string text;
  for (std::size_t i = 0; text.size() < bytes; ++i)
    text += std::string(seed) + " " + std::to_string(i * 7919) + ". ";
  text.resize(bytes);
  return text;
}

inline std::string json_string(std::string_view text) { return "\"" + std::string(text) + "\""; }
inline std::string message(std::string_view role, std::string_view content) {
  return R"({"role": )" + json_string(role) + R"(, "content": )" + json_string(content) + "}";
}
// A chat body of one model, with these messages (JSON, with commas) and other fields before them.
inline std::string chat(const std::string& messages, const std::string& fields = "") {
  return R"({"model": "m", )" + fields + R"("messages": [)" + messages + "]}";
}

}  // namespace pickd::body
