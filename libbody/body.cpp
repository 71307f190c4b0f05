#include "libbody/body.hpp"

#include <errno.h>

#include "libbody/routes.hpp"

namespace pickd::body {

namespace {

constexpr std::string_view kSessionHeaders[] = {"x-session-id", "x-claude-code-session-id",
                                                "x-session-affinity"};
constexpr std::string_view kFairnessHeaders[] = {"x-llm-d-inference-fairness-id",
                                                 "x-gateway-inference-fairness-id"};

// An identifier as pickd takes it: what is too long by a digest of it, which is as good.
bool assign_id(List<char>& into, std::string_view id, std::size_t bytes_max) {
  into.clear();
  if (id.size() <= bytes_max) return into.append(id.data(), id.size());
  unsigned char digest[kDigestBytes];
  Canonical::digest(id, Mark::kOther, digest);
  for (const unsigned char byte : digest) {
    constexpr char kDigits[] = "0123456789abcdef";
    if (!into.push(kDigits[byte >> 4]) || !into.push(kDigits[byte & 15])) return false;
  }
  return true;
}

bool put_length_prefixed(List<char>& into, std::string_view text) {
  const std::uint64_t size = text.size();
  char bytes[sizeof size];
  for (std::size_t i = 0; i < sizeof size; ++i) bytes[i] = static_cast<char>(size >> (8 * i));
  return into.append(bytes, sizeof bytes) && into.append(text.data(), text.size());
}

std::uint32_t cut_tokens(std::uint64_t tokens) {
  return tokens < UINT32_MAX ? static_cast<std::uint32_t>(tokens) : UINT32_MAX - 1;
}

std::uint64_t tokens_of_bytes(std::uint64_t bytes) {
  return bytes / abi::kBytesPerToken + (bytes % abi::kBytesPerToken != 0 ? 1 : 0);
}

}  // namespace

bool Body::init(const BodyOptions& options, std::string_view session_header) {
  options_ = options;
  return session_header_.append(session_header.data(), session_header.size());
}

int Body::begin(std::string_view path, const Headers& headers, std::string_view tenant,
                std::size_t bytes_hint) {
  state_ = State::kReading;
  too_long_ = appended_ = false;
  encoded_ = !headers.is_plain();
  api_ = api_of(path);
  status_ = 0;
  bytes_ = 0;
  flags_ = 0;
  n_ = 1;
  max_tokens_ = UINT32_MAX;
  media_count_ = 0;
  tokens_beyond_ = 0;
  model_ = adapter_ = cache_salt_ = {};
  fields_.clear();
  extras_.clear();
  stream_.clear(options_.keep_bytes_max);
  buffer_.clear();
  buffer_.shrink(options_.keep_bytes_max);
  parser_.shrink(options_.keep_bytes_max);
  salt_.clear();
  tenant_.clear();

  std::string_view session, fairness;
  if (!session_header_.empty()) {
    session = headers.find(pickd::body::view(session_header_));
  } else {
    for (const std::string_view name : kSessionHeaders) {
      if (session.empty()) session = headers.find(name);
    }
  }
  for (const std::string_view name : kFairnessHeaders) {
    if (fairness.empty()) fairness = headers.find(name);
  }
  if (!assign_id(session_, session, abi::kSessionBytesMax) ||
      !assign_id(fairness_, fairness, abi::kFairnessIdBytesMax) ||
      !assign_id(request_id_, headers.find("x-request-id"), abi::kRequestIdBytesMax) ||
      !tenant_.append(tenant.data(), tenant.size())) {
    state_ = State::kIdle;
    return -ENOMEM;
  }
  // A hint only: what it promises may never come, so no more than is kept anyway.
  if (bytes_hint != 0 && bytes_hint <= options_.keep_bytes_max) buffer_.reserve(bytes_hint);
  return 0;
}

int Body::add(const void* data, std::size_t size) {
  if (state_ != State::kReading) return -EINVAL;
  bytes_ += size;
  if (too_long_ || bytes_ > options_.body_bytes_max) {
    too_long_ = true;
    buffer_.clear();
    buffer_.shrink(options_.keep_bytes_max);
    return -E2BIG;
  }
  if (size == 0) return 0;
  if (!buffer_.append(data, size)) {
    status_ = -ENOMEM;
    return -ENOMEM;
  }
  return 0;
}

int Body::end() {
  if (state_ != State::kReading) return -EINVAL;
  state_ = State::kEnded;
  if (status_ == 0) status_ = read();
  if (status_ != 0) {
    stream_.clear(options_.keep_bytes_max);
    extras_.clear();
    tokens_beyond_ = 0;
  }
  count(status_);
  return status_;
}

int Body::read() {
  // The tenant counts also where nothing else can be read.
  if (!make_salt({}, {})) return -ENOMEM;
  if (too_long_) return -E2BIG;
  if (bytes_ == 0) return -ENODATA;
  if (encoded_) return -EOPNOTSUPP;
  Json root;
  if (const int code = parser_.parse(buffer_, root); code != 0) return code;
  if (!is_object(root)) return -EBADMSG;
  fields_.read(object_of(root));
  read_facts(fields_);
  if (!read_ids(fields_) ||
      !make_salt(fields_.string(Field::kCacheSalt), fields_.string(Field::kExtraKey))) {
    return -ENOMEM;
  }
  return read_prompts(fields_);
}

int Body::read_prompts(const Fields& fields) {
  MessageWriter writer(stream_, canonical_, options_.media_tokens);
  PromptReader reader(stream_, writer, extras_);
  const int code = reader.read(api_, fields);
  media_count_ = writer.media_count() + static_cast<std::uint32_t>(extras_.extras.size());
  tokens_beyond_ = reader.tokens_beyond();
  if (reader.is_open_ended()) flags_ |= PICKD_BODY_OPEN_END;
  return code;
}

void Body::read_facts(const Fields& fields) {
  model_ = fields.string(Field::kModel);
  cache_salt_ = fields.string(Field::kCacheSalt);
  if (const Json* adapters = fields.get(Field::kLoraPath); adapters != nullptr) {
    adapter_ = string_of(*adapters);
    if (is_array(*adapters)) {  // one for each prompt
      for (const Json adapter : array_of(*adapters)) {
        if (adapter_.empty()) adapter_ = string_of(adapter);
      }
    }
  }
  if (fields.is_set(Field::kStream)) flags_ |= PICKD_BODY_STREAM;
  if (fields.is_set(Field::kContinueFinalMessage)) flags_ |= PICKD_BODY_OPEN_END;
  Json usage;
  if (const Json* options = fields.get(Field::kStreamOptions);
      options != nullptr && find(*options, "include_usage", usage) && is_true(usage)) {
    flags_ |= PICKD_BODY_USAGE;
  }
  read_limits(fields);
}

void Body::read_limits(const Fields& fields) {
  std::uint32_t n = fields.count(Field::kN);
  const std::uint32_t best_of = fields.count(Field::kBestOf);
  max_tokens_ = UINT32_MAX;
  for (const Field field :
       {Field::kMaxCompletionTokens, Field::kMaxTokens, Field::kMaxOutputTokens}) {
    if (max_tokens_ == UINT32_MAX) max_tokens_ = fields.count(field);
  }
  if (const Json* sampling = fields.get(Field::kSamplingParams); sampling != nullptr) {
    Json first = *sampling;
    if (is_array(first) && array_of(first).size() != 0) first = *array_of(first).begin();
    n = count_in(first, "n");
    max_tokens_ = count_in(first, "max_new_tokens");
    if (max_tokens_ == UINT32_MAX) max_tokens_ = count_in(first, "max_tokens");
  }
  n_ = n == UINT32_MAX || n == 0 ? 1 : n;
  if (best_of != UINT32_MAX && best_of > n_) n_ = best_of;
}

bool Body::read_ids(const Fields& fields) {
  if (session_.empty()) {
    std::string_view session = fields.string(Field::kSessionId);
    for (const Field field : {Field::kSessionParams, Field::kConversation}) {
      const Json* json = fields.get(field);
      if (json == nullptr || !session.empty()) continue;
      session = is_string(*json) ? string_of(*json) : string_in(*json, "id");
    }
    if (!assign_id(session_, session, abi::kSessionBytesMax)) return false;
  }
  if (!request_id_.empty()) return true;
  std::string_view id = fields.string(Field::kRequestId);
  if (id.empty()) id = fields.string(Field::kRid);
  return assign_id(request_id_, id, abi::kRequestIdBytesMax);
}

// A lone cache_salt stays as it is: events of engines name it so. Else a frame, in which every part
// has its length; it begins with a byte that no decoded text has.
bool Body::make_salt(std::string_view cache_salt, std::string_view extra_key) {
  salt_.clear();
  if (tenant_.empty() && extra_key.empty()) return true;
  return salt_.push('\xFF') && put_length_prefixed(salt_, pickd::body::view(tenant_)) &&
         put_length_prefixed(salt_, cache_salt) && put_length_prefixed(salt_, extra_key);
}

void Body::count(int status) const {
  pickd_body_counters* counters = options_.counters;
  body::count(counters, Counter::kBodies);
  body::count(counters, Counter::kBodyBytes, bytes_);
  switch (-status) {
    case 0: {
      bool any = false;
      for (std::size_t i = 0; i < stream_.prompt_count(); ++i) {
        any = any || stream_.prompt(i).has_content || stream_.prompt(i).token_count != 0;
      }
      if (!any) body::count(counters, Counter::kBlank);
      break;
    }
    case ENODATA: body::count(counters, Counter::kEmpty); break;
    case EBADMSG: body::count(counters, Counter::kMalformed); break;
    case E2BIG: body::count(counters, Counter::kTooLong); break;
    case EOPNOTSUPP: body::count(counters, Counter::kEncoded); break;
    case ENOENT: body::count(counters, Counter::kUnknownPath); break;
    case ENOMEM: body::count(counters, Counter::kNoMemory); break;
    default: body::count(counters, Counter::kUnknownForm); break;
  }
}

// ---- What was read ------------------------------------------------------------------------------

std::uint64_t Body::prompt_tokens(std::size_t index) const {
  const Prompt& prompt = stream_.prompt(index);
  return prompt.of_tokens ? prompt.token_count : tokens_of_bytes(prompt.bytes);
}

std::size_t Body::longest() const {
  std::size_t longest = 0;
  for (std::size_t i = 1; i < stream_.prompt_count(); ++i) {
    if (prompt_tokens(i) > prompt_tokens(longest)) longest = i;
  }
  return longest;
}

int Body::request(std::size_t index, pickd_request& request) const {
  const bool any = index == PICKD_BODY_LONGEST;
  const std::size_t count = stream_.prompt_count();
  if (!any && index >= count) return -EINVAL;
  request.model = slice(model_);
  request.adapter = slice(adapter_);
  request.salt = slice(salt_.empty() ? cache_salt_ : pickd::body::view(salt_));
  request.session_id = slice(pickd::body::view(session_));
  request.fairness_id = slice(pickd::body::view(fairness_));
  request.request_id = slice(pickd::body::view(request_id_));
  request.text = nullptr;
  request.text_count = 0;
  request.token_ids = nullptr;
  request.token_count = 0;
  request.extras = nullptr;
  request.extra_count = 0;
  request.extra_stride = 0;
  request.flags &= ~(PICKD_REQUEST_STREAM | PICKD_REQUEST_MEDIA);
  if ((flags_ & PICKD_BODY_STREAM) != 0) request.flags |= PICKD_REQUEST_STREAM;
  if (media_count_ != 0) request.flags |= PICKD_REQUEST_MEDIA;

  request.expected_output_tokens = 0;
  if (api_ == PICKD_BODY_EMBEDDINGS) {
    request.expected_output_tokens = 1;
  } else if (max_tokens_ <= kTellingOutputTokensMax) {
    request.expected_output_tokens =
        cut_tokens(std::uint64_t{max_tokens_ == 0 ? 1 : max_tokens_} * n_);
  }
  if (count == 0) {
    // The size says what work there is where the engine will read what this library could not.
    const bool engine_reads = status_ != 0 && status_ != -EBADMSG && status_ != -ENODATA;
    request.prompt_tokens = engine_reads ? cut_tokens(tokens_of_bytes(bytes_)) : 0;
    return 0;
  }

  std::uint64_t tokens = any ? tokens_beyond_ : prompt_tokens(index);
  for (std::size_t i = 0; any && i < count; ++i) tokens += prompt_tokens(i);
  request.prompt_tokens = cut_tokens(tokens);
  if (any && api_ == PICKD_BODY_EMBEDDINGS) return 0;
  const Prompt& prompt = stream_.prompt(any ? longest() : index);
  if (prompt.of_tokens) {
    request.token_ids = stream_.tokens(prompt);
    request.token_count = prompt.token_count;
    request.extras = extras_.extras.data();
    request.extra_count = extras_.extras.size();
  } else if (prompt.has_content) {
    request.text = stream_.segments(prompt);
    request.text_count = prompt.segment_count;
  }
  return 0;
}

void Body::info(pickd_body_info& info) const {
  info.api = api_;
  info.status = status_;
  info.flags = flags_;
  info.n = n_;
  info.max_tokens = max_tokens_;
  info.prompt_count = static_cast<std::uint32_t>(stream_.prompt_count());
  info.media_count = media_count_;
  info.reserved = 0;
  info.model = slice(model_);
  info.adapter = slice(adapter_);
  info.salt = slice(salt_.empty() ? cache_salt_ : pickd::body::view(salt_));
  info.session_id = slice(pickd::body::view(session_));
  info.request_id = slice(pickd::body::view(request_id_));
  info.fairness_id = slice(pickd::body::view(fairness_));
  info.bytes = slice(buffer_.text());
}

// ---- The next turn ------------------------------------------------------------------------------

bool Body::can_append() const {
  return status_ == 0 && n_ == 1 && stream_.prompt_count() == 1 && !stream_.prompt(0).of_tokens &&
         stream_.prompt(0).has_content && api_ != PICKD_BODY_EMBEDDINGS;
}

PromptStream& Body::reopen() {
  appended_ = true;
  stream_.reopen_prompt();
  stream_.set_copying(true);
  return stream_;
}

int Body::close() {
  stream_.end_prompt();
  return stream_.out_of_memory() ? -ENOMEM : 0;
}

}  // namespace pickd::body
