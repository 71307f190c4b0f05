// Arbitrary bytes as a request body and as an answer: read whole and in pieces, which must come to
// the same, for every API; then the answer behind its prompt.
//
// The first byte chooses the path, the second how long the pieces are and whether limits are small.
// What stands behind the first byte 00 is the answer, what stands before it is the body.
#include <errno.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "pickd/body.h"

namespace {

constexpr const char* kPaths[] = {
    "/v1/completions", "/v1/chat/completions",   "/v1/responses", "/v1/embeddings", "/v1/messages",
    "/generate",       "/inference/v1/generate", "/other"};

void check(bool holds) {
  if (!holds) std::abort();
}

pickd_body* new_body(bool small) {
  pickd_body_options options = PICKD_BODY_OPTIONS_INIT;
  options.body_bytes_max = small ? 200 : 0;
  options.keep_bytes_max = small ? 100 : 0;
  options.media_tokens = small ? 1 : 0;
  pickd_body* body = nullptr;
  check(pickd_body_new(&options, &body) == 0);
  return body;
}

// Everything that is read of a body, as one text.
std::string told(pickd_body* body, int status) {
  pickd_body_info info = PICKD_BODY_INFO_INIT;
  check(pickd_body_read_info(body, &info) == 0 && info.status == status);
  std::string all = std::to_string(status) + " " + std::to_string(info.flags) + " " +
                    std::to_string(info.n) + " " + std::to_string(info.max_tokens);
  for (const pickd_slice& slice :
       {info.model, info.adapter, info.salt, info.session_id, info.request_id}) {
    all += "|";
    if (slice.size != 0) all.append(static_cast<const char*>(slice.data), slice.size);
  }
  check(status == 0 || info.prompt_count == 0);
  for (std::size_t i = 0; i <= info.prompt_count && i < 100; ++i) {
    pickd_request request = PICKD_REQUEST_INIT;
    const std::size_t index = i == info.prompt_count ? PICKD_BODY_LONGEST : i;
    check(pickd_body_request(body, index, &request) == 0);
    check(request.text_count == 0 || request.token_count == 0);
    all += "#" + std::to_string(request.prompt_tokens) + ":";
    for (std::size_t s = 0; s < request.text_count; ++s) {
      all.append(static_cast<const char*>(request.text[s].data), request.text[s].size);
    }
    for (std::size_t t = 0; t < request.token_count; ++t) {
      all += std::to_string(request.token_ids[t]) + ",";
    }
    std::size_t before = 0;
    for (std::size_t e = 0; e < request.extra_count; ++e) {
      const pickd_extra& extra = request.extras[e];
      check(extra.offset >= before && extra.offset <= request.token_count);
      check(extra.digest.size == 16);
      all.append(static_cast<const char*>(extra.digest.data), extra.digest.size);
      before = extra.offset;
    }
  }
  return all;
}

std::string read_body(pickd_body* body, const char* path, std::string_view bytes,
                      std::size_t step) {
  pickd_body_head head = PICKD_BODY_HEAD_INIT;
  head.path = {path, std::strlen(path)};
  check(pickd_body_begin(body, &head) == 0);
  while (!bytes.empty()) {
    const std::string piece(bytes.substr(0, step));
    bytes.remove_prefix(piece.size());
    const int code = pickd_body_add(body, piece.data(), piece.size());
    check(code == 0 || code == -E2BIG);
  }
  return told(body, pickd_body_end(body));
}

std::string read_answer(pickd_answer* answer, pickd_body_api api, std::string_view bytes,
                        std::size_t step) {
  pickd_answer_head head = PICKD_ANSWER_HEAD_INIT;
  head.api = api;
  head.flags = PICKD_ANSWER_KEEP_TEXT;
  check(pickd_answer_begin(answer, &head) == 0);
  int came = 0;
  while (!bytes.empty()) {
    const std::string piece(bytes.substr(0, step));
    bytes.remove_prefix(piece.size());
    const int told = pickd_answer_add(answer, piece.data(), piece.size());
    check(told >= 0 && ((came & told) & (PICKD_ANSWER_FIRST_TOKEN | PICKD_ANSWER_ENDED)) == 0);
    came |= told;
  }
  const int status = pickd_answer_end(answer);
  pickd_report_info report = PICKD_REPORT_INIT;
  check(pickd_answer_report(answer, &report) == 0);
  check(report.kind >= PICKD_REPORT_DONE && report.kind <= PICKD_REPORT_CANCELLED);
  return std::to_string(status) + " " + std::to_string(came) + " " + std::to_string(report.kind) +
         " " + std::to_string(report.prompt_tokens) + " " + std::to_string(report.cached_tokens) +
         " " + std::to_string(report.output_tokens);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const char* path = kPaths[data[0] % 8];
  const bool small = (data[1] & 0x80) != 0;
  const std::size_t step = (data[1] & 0x7FU) + 1;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string_view json = bytes.substr(0, bytes.find('\0'));
  std::string_view stream = bytes.substr(json.size());
  if (!stream.empty()) stream.remove_prefix(1);

  pickd_body* body = new_body(small);
  const std::string whole = read_body(body, path, json, SIZE_MAX);
  check(whole == read_body(body, path, json, step));

  pickd_answer_options options = PICKD_ANSWER_OPTIONS_INIT;
  options.answer_bytes_max = small ? 200 : 0;
  options.text_bytes_max = small ? 50 : 0;
  pickd_answer* answer = nullptr;
  check(pickd_answer_new(&options, &answer) == 0);
  pickd_body_info info = PICKD_BODY_INFO_INIT;
  check(pickd_body_read_info(body, &info) == 0);
  const std::string all = read_answer(answer, info.api, stream, SIZE_MAX);
  check(all == read_answer(answer, info.api, stream, step));
  if (pickd_body_append(body, answer) == 0) told(body, 0);

  pickd_answer_free(answer);
  pickd_body_free(body);
  return 0;
}
