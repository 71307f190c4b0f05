// An answer through the C interface, and the pieces that answers are made of.
#pragma once

#include "tests/libbody/support.hpp"

namespace pickd::body {

struct FreeAnswer {
  void operator()(pickd_answer* answer) const { pickd_answer_free(answer); }
};

inline constexpr char kEvents[] = "text/event-stream; charset=utf-8";
inline constexpr char kJson[] = "application/json";

// One answer, read in pieces of `step` bytes.
class Answered {
 public:
  Answered(pickd_body_api api, std::string_view bytes, std::string_view type = kEvents,
           std::size_t step = SIZE_MAX, int http_status = 200,
           const pickd_answer_options* options = nullptr, const HeaderList& headers = {}) {
    pickd_answer* made = nullptr;
    EXPECT_EQ(pickd_answer_new(options, &made), 0);
    answer_.reset(made);
    std::vector<pickd_attribute> list;
    if (!type.empty()) list.push_back({slice_of("Content-Type"), slice_of(type)});
    for (const auto& [name, value] : headers) list.push_back({slice_of(name), slice_of(value)});
    pickd_answer_head head = PICKD_ANSWER_HEAD_INIT;
    head.api = api;
    head.status = http_status;
    head.headers = list.data();
    head.header_count = list.size();
    head.flags = PICKD_ANSWER_KEEP_TEXT;
    EXPECT_EQ(pickd_answer_begin(made, &head), 0);
    while (!bytes.empty()) {
      const std::vector<char> piece(
          bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(std::min(step, bytes.size())));
      const int told = pickd_answer_add(made, piece.data(), piece.size());
      EXPECT_GE(told, 0);
      came |= told;
      if ((told & PICKD_ANSWER_FIRST_TOKEN) != 0) {
        ++first_tokens;
        first_token_at = bytes_read;
      }
      bytes_read += piece.size();
      bytes.remove_prefix(piece.size());
    }
    status = pickd_answer_end(made);
    EXPECT_EQ(pickd_answer_report(made, &report), 0);
  }
  pickd_answer* get() const { return answer_.get(); }

  int status = -1;
  int came = 0;
  int first_tokens = 0;
  std::size_t first_token_at = 0;
  std::size_t bytes_read = 0;
  pickd_report_info report = PICKD_REPORT_INIT;

 private:
  std::unique_ptr<pickd_answer, FreeAnswer> answer_;
};

inline std::string usage(std::uint32_t prompt, std::uint32_t output, std::uint32_t cached) {
  return R"("usage": {"prompt_tokens": )" + std::to_string(prompt) + R"(, "completion_tokens": )" +
         std::to_string(output) + R"(, "prompt_tokens_details": {"cached_tokens": )" +
         std::to_string(cached) + "}}";
}
// Data of several lines is one event.
inline std::string event(std::string data, const std::string& end = "\n") {
  for (std::size_t at = 0; (at = data.find('\n', at)) != std::string::npos; ++at)
    data.replace(at, 1, end + "data: ");
  return "data: " + data + end + end;
}
inline std::string delta(const std::string& fields, const std::string& finish = "null") {
  return R"({"choices": [{"index": 0, "delta": {)" + fields + R"(}, "finish_reason": )" + finish +
         R"(}], "usage": null})";
}

inline std::string chat_stream(const std::string& end = "\n") {
  return ": a comment" + end + end + event(delta(R"("role": "assistant", "content": "")"), end) +
         event(delta(R"("content": "Within ")"), end) +
         event(delta(R"("content": "30 d\u00e9")"), end) +
         event(delta(R"("content": "")", R"("stop")"), end) +
         event(R"({"choices": [], )" + usage(412, 7, 384) + "}", end) + event("[DONE]", end);
}

inline void expect_usage(const pickd_report_info& report, std::uint32_t prompt,
                         std::uint32_t cached, std::uint32_t output) {
  EXPECT_EQ(report.prompt_tokens, prompt);
  EXPECT_EQ(report.cached_tokens, cached);
  EXPECT_EQ(report.output_tokens, output);
}

}  // namespace pickd::body
