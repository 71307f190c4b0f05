#include "daemon/net/http/response_reader.hpp"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <optional>

namespace pickd::net::http {

namespace {

namespace beast = boost::beast;
using BeastError = boost::beast::error_code;
using BeastView = boost::beast::string_view;

constexpr std::uint32_t kInterimMax = 8;
constexpr int kSwitchingProtocols = 101;
constexpr std::string_view kBegin = "HTTP/1.";
// Between chunks the parser takes it that this much is there ("0", two line ends). Every answer in
// chunks has it still to come there.
constexpr std::size_t kChunkHeaderBytesMin = 5;

std::string_view view(BeastView text) { return {text.data(), text.size()}; }

// Gets the elements of one message from Beast and passes them on; stores no field.
struct Core final : beast::http::basic_parser<false> {
  ResponseSink* sink = nullptr;
  Failure failure = Failure::kNone;
  const char* why = "";
  int status = 0;
  std::string content_type;
  bool encoded = false;
  std::uint64_t chunk_left = 0;

  bool between_chunks() const { return is_header_done() && chunked() && chunk_left == 0; }

  void refuse(Failure what, const char* text, BeastError& error) {
    failure = what;
    why = text;
    error = beast::http::error::bad_value;
  }

  void on_response_impl(int code, BeastView, int, BeastError& error) override {
    status = code;
    if (code < 100 || code > 599)
      refuse(Failure::kMalformed, "its status is not 100 to 599", error);
  }

  void on_field_impl(beast::http::field name, BeastView, BeastView value,
                     BeastError& error) override {
    if (is_header_done()) return;  // of a trailer
    if (name == beast::http::field::content_type) {
      content_type.assign(value.data(), value.size());
    } else if (name == beast::http::field::content_encoding) {
      encoded = encoded || !beast::iequals(value, "identity");
    } else if (name == beast::http::field::transfer_encoding && !beast::iequals(value, "chunked")) {
      refuse(Failure::kMalformed, "it has a Transfer-Encoding that is not chunked", error);
    }
  }

  void on_header_impl(BeastError& error) override {
    if (status / 100 == 1) return;
    if (status / 100 == 3)
      return refuse(Failure::kRedirect, "it sends elsewhere, which is not followed", error);
    if (encoded && status / 100 == 2)
      return refuse(Failure::kEncoded, "it is compressed, though identity was asked for", error);
    if (!sink->head({status, content_type})) refuse(Failure::kStopped, "", error);
  }

  std::size_t pass(BeastView body, BeastError& error) {
    // The body of an error that is compressed all the same is of no use to anybody.
    if (!encoded && !body.empty() && !sink->body(view(body))) refuse(Failure::kStopped, "", error);
    return body.size();
  }

  std::size_t on_body_impl(BeastView body, BeastError& error) override { return pass(body, error); }
  std::size_t on_chunk_body_impl(std::uint64_t left, BeastView body, BeastError& error) override {
    chunk_left = left - body.size();
    return pass(body, error);
  }
  void on_request_impl(beast::http::verb, BeastView, BeastView, int, BeastError&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, BeastError&) override {}
  void on_chunk_header_impl(std::uint64_t size, BeastView, BeastError&) override {
    chunk_left = size;
  }
  void on_finish_impl(BeastError&) override {}
};

}  // namespace

// Beast's parsers read one message each.
class ResponseReader::Parser {
 public:
  Parser() = default;

  void restart(const ReaderLimits& limits, ResponseSink* sink) {
    core_.emplace();
    core_->eager(true);
    core_->header_limit(limits.head_bytes_max);
    // Not boost::none: any length is greater than that.
    core_->body_limit(limits.body_bytes_max == 0 ? UINT64_MAX : limits.body_bytes_max);
    core_->sink = sink;
  }

  Core& core() { return *core_; }
  bool there() const { return core_.has_value(); }

 private:
  std::optional<Core> core_;
};

ResponseReader::ResponseReader() : parser_(std::make_unique<Parser>()) {}
ResponseReader::~ResponseReader() = default;

void ResponseReader::begin(const ReaderLimits& limits, ResponseSink& sink) {
  limits_ = limits;
  sink_ = &sink;
  left_.clear();
  text_.clear();
  failure_ = Failure::kNone;
  state_ = State::kMore;
  interim_ = 0;
  got_some_ = false;
  extra_ = false;
  parser_->restart(limits_, sink_);
}

ResponseReader::State ResponseReader::fail(Failure failure, std::string text) {
  failure_ = failure;
  text_ = std::move(text);
  return state_ = State::kFailed;
}

// Takes what can be taken from the front of `bytes`.
ResponseReader::State ResponseReader::parse(std::string_view& bytes) {
  while (true) {
    Core& core = parser_->core();
    if (core.between_chunks() && bytes.size() < kChunkHeaderBytesMin) return state_;
    // Seen at once, where the parser would wait for the end of a head that never comes.
    if (core.status == 0 && bytes.substr(0, kBegin.size()) != kBegin.substr(0, bytes.size()))
      return fail(Failure::kMalformed, "it does not begin with HTTP/1.");
    BeastError error;
    const std::size_t taken =
        core.put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
    bytes.remove_prefix(taken);
    if (core.failure != Failure::kNone) return fail(core.failure, core.why);
    if (error == beast::http::error::header_limit)
      return fail(Failure::kHeadTooLarge,
                  "its head has more than " + std::to_string(limits_.head_bytes_max) + " bytes");
    if (error == beast::http::error::body_limit)
      return fail(Failure::kBodyTooLarge,
                  "its body has more than " + std::to_string(limits_.body_bytes_max) + " bytes");
    if (error && error != beast::http::error::need_more)
      return fail(Failure::kMalformed, error.message());
    if (core.is_done()) {
      if (core.status / 100 != 1) {
        extra_ = !bytes.empty();
        return state_ = State::kDone;
      }
      if (core.status == kSwitchingProtocols || ++interim_ > kInterimMax)
        return fail(Failure::kMalformed, "it answers with a status that nothing asked for");
      parser_->restart(limits_, sink_);
    }
    if (bytes.empty() || error == beast::http::error::need_more) return state_;
  }
}

ResponseReader::State ResponseReader::feed(std::string_view bytes) {
  if (state_ != State::kMore) {
    extra_ = extra_ || !bytes.empty();
    return state_;
  }
  if (bytes.empty()) return state_;
  got_some_ = true;
  if (left_.empty()) {
    if (parse(bytes) != State::kMore) return state_;
    left_.assign(bytes);
  } else {
    left_.append(bytes);
    std::string_view rest = left_;
    if (parse(rest) != State::kMore) return state_;
    left_.erase(0, left_.size() - rest.size());
  }
  if (left_.size() > limits_.head_bytes_max)
    return fail(Failure::kHeadTooLarge, "a chunk header or trailer has more than " +
                                            std::to_string(limits_.head_bytes_max) + " bytes");
  return state_;
}

ResponseReader::State ResponseReader::feed_end() {
  if (state_ != State::kMore) return state_;
  Core& core = parser_->core();
  if (!core.is_header_done() || !core.need_eof())
    return fail(Failure::kReset, "the connection ended before the whole answer came");
  BeastError error;
  core.put_eof(error);
  if (error) return fail(Failure::kReset, error.message());
  return state_ = State::kDone;
}

Failure ResponseReader::failure() const { return failure_; }
const std::string& ResponseReader::text() const { return text_; }
int ResponseReader::status() const { return parser_->there() ? parser_->core().status : 0; }
bool ResponseReader::got_some() const { return got_some_; }

bool ResponseReader::keep_alive() const {
  return state_ == State::kDone && !extra_ && parser_->there() && parser_->core().keep_alive();
}

}  // namespace pickd::net::http
