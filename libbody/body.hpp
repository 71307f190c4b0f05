// A request body from its first byte to what a pick is asked with. The C functions are in
// body_calls.cpp.
#pragma once

#include <cstdint>
#include <string_view>

#include "libbody/canonical.hpp"
#include "libbody/counters.hpp"
#include "libbody/fields.hpp"
#include "libbody/headers.hpp"
#include "libbody/json.hpp"
#include "libbody/limits.hpp"
#include "libbody/prompt_reader.hpp"
#include "libbody/prompt_stream.hpp"
#include "pickd/body.h"

namespace pickd::body {

struct BodyOptions {
  std::size_t body_bytes_max = kBodyBytesDefault;
  std::size_t keep_bytes_max = kBodyKeepBytesDefault;
  std::uint32_t media_tokens = kMediaTokensDefault;
  pickd_body_counters* counters = nullptr;
};

class Body {
 public:
  // `session_header` may be empty. False: memory is out.
  bool init(const BodyOptions& options, std::string_view session_header);

  int begin(std::string_view path, const Headers& headers, std::string_view tenant,
            std::size_t bytes_hint);
  int add(const void* data, std::size_t size);
  int end();

  bool has_ended() const { return state_ == State::kEnded; }
  int request(std::size_t index, pickd_request& request) const;
  void info(pickd_body_info& info) const;

  // The prompt that an answer may be appended to; nullptr: there is none. Text that is written
  // behind reopen() is copied.
  bool can_append() const;
  bool has_appended() const { return appended_; }
  PromptStream& reopen();
  int close();
  Canonical& canonical() { return canonical_; }
  pickd_body_api api() const { return api_; }
  bool is_open_ended() const { return (flags_ & PICKD_BODY_OPEN_END) != 0; }
  std::uint32_t media_tokens() const { return options_.media_tokens; }

 private:
  enum class State : std::uint8_t { kIdle, kReading, kEnded };

  int read();
  int read_prompts(const Fields& fields);
  void read_facts(const Fields& fields);
  bool read_ids(const Fields& fields);
  void read_limits(const Fields& fields);
  bool make_salt(std::string_view cache_salt, std::string_view extra_key);
  void count(int status) const;
  std::size_t longest() const;
  std::uint64_t prompt_tokens(std::size_t index) const;

  BodyOptions options_;
  List<char> session_header_;

  // Of the body that is being read.
  State state_ = State::kIdle;
  bool too_long_ = false;
  bool encoded_ = false;
  bool appended_ = false;
  pickd_body_api api_ = PICKD_BODY_UNKNOWN;
  int status_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint32_t flags_ = 0;
  std::uint32_t n_ = 1;
  std::uint32_t max_tokens_ = UINT32_MAX;
  std::uint32_t media_count_ = 0;
  std::uint64_t tokens_beyond_ = 0;
  std::string_view model_;  // these point into the document
  std::string_view adapter_;
  std::string_view cache_salt_;
  List<char> session_;
  List<char> request_id_;
  List<char> fairness_;
  List<char> tenant_;
  List<char> salt_;  // framed; empty: cache_salt_ as it is

  JsonBuffer buffer_;
  JsonParser parser_;
  Fields fields_;
  Canonical canonical_;
  PromptStream stream_;
  TokenExtras extras_;
};

}  // namespace pickd::body

struct pickd_body : pickd::body::Body {};
