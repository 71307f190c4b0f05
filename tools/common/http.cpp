// HTTP/1.1 with Boost.Beast's parser. See http.hpp.
#include "tools/common/http.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>

#include <charconv>
#include <optional>

namespace pickd::tools {

namespace http = boost::beast::http;

namespace {

constexpr std::uint32_t kHeadBytesMax = 16 * 1024;

std::string_view reason_of(int status) {
  const boost::beast::string_view text =
      http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)));
  return {text.data(), text.size()};
}

}  // namespace

struct HttpRequestReader::Parser {
  std::optional<http::request_parser<http::string_body>> request;
  bool begun = false;
  bool continue_told = false;
};

HttpRequestReader::HttpRequestReader(std::size_t body_bytes_max)
    : body_bytes_max_(body_bytes_max), parser_(std::make_unique<Parser>()) {
  restart();
}

HttpRequestReader::~HttpRequestReader() = default;

void HttpRequestReader::restart() {
  parser_->request.emplace();
  parser_->request->eager(true);
  parser_->request->header_limit(kHeadBytesMax);
  parser_->request->body_limit(body_bytes_max_);
  parser_->begun = false;
  parser_->continue_told = false;
}

HttpRequestReader::State HttpRequestReader::read(std::string& bytes) {
  auto& request = *parser_->request;
  while (!request.is_done()) {
    if (bytes.empty()) return State::kMore;
    parser_->begun = true;
    boost::beast::error_code error;
    const std::size_t used = request.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
    bytes.erase(0, used);
    if (error == http::error::need_more) {
      // The parser wants a whole head in one piece and leaves a partial one to us.
      if (bytes.size() > kHeadBytesMax) return State::kTooLarge;
      return State::kMore;
    }
    if (error == http::error::body_limit || error == http::error::header_limit) {
      return State::kTooLarge;
    }
    if (error) return State::kBad;
  }
  return State::kReady;
}

HttpRequest HttpRequestReader::take() {
  auto message = parser_->request->release();
  HttpRequest taken;
  taken.method = std::string(message.method_string());
  taken.target = std::string(message.target());
  taken.keep_alive = message.keep_alive();
  taken.body = std::move(message.body());
  restart();
  return taken;
}

bool HttpRequestReader::wants_continue() {
  auto& request = *parser_->request;
  if (parser_->continue_told || !request.is_header_done() || request.is_done()) return false;
  parser_->continue_told = true;
  return boost::beast::iequals(request.get()[http::field::expect], "100-continue");
}

bool HttpRequestReader::in_request() const { return parser_->begun; }

std::string http_answer(int status, std::string_view content_type, std::string_view body,
                        bool keep_alive) {
  std::string out = "HTTP/1.1 " + std::to_string(status) + ' ';
  out += reason_of(status);
  out += "\r\nContent-Type: ";
  out += content_type;
  out += "\r\nContent-Length: " + std::to_string(body.size());
  out += keep_alive ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n";
  out += body;
  return out;
}

std::string http_chunked_head(std::string_view content_type, bool keep_alive) {
  std::string out = "HTTP/1.1 200 OK\r\nContent-Type: ";
  out += content_type;
  out += "\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked";
  out += keep_alive ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n";
  return out;
}

void append_http_chunk(std::string& out, std::string_view bytes) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, bytes.size(), 16).ptr;
  out.append(digits, end);
  out += "\r\n";
  out += bytes;
  out += "\r\n";
}

}  // namespace pickd::tools
