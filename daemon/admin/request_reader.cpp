#include "daemon/admin/request_reader.hpp"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

namespace pickd::admin {

namespace {

namespace beast = boost::beast;
using BeastError = boost::beast::error_code;
using BeastView = boost::beast::string_view;

constexpr int kBadRequest = 400;
constexpr int kContentTooLarge = 413;
constexpr int kHeadTooLarge = 431;
constexpr int kVersionNotSupported = 505;

// Gets the elements of one head from Beast; keeps those that somebody asks for.
struct Core final : beast::http::basic_parser<true> {
  Request request;
  std::string target;
  int version = 0;
  int hosts = 0;
  bool upgrades = false;

  void on_request_impl(beast::http::verb, BeastView method, BeastView what, int number,
                       BeastError&) override {
    request.method.assign(method.data(), method.size());
    target.assign(what.data(), what.size());
    version = number;
  }
  void on_field_impl(beast::http::field name, BeastView, BeastView value, BeastError&) override {
    if (name == beast::http::field::host) {
      ++hosts;
      request.host.assign(value.data(), value.size());
    } else if (name == beast::http::field::accept) {
      if (!request.accept.empty()) request.accept += ',';
      request.accept.append(value.data(), value.size());
    } else if (name == beast::http::field::upgrade) {
      upgrades = true;
    }
  }
  void on_header_impl(BeastError&) override {}
  void on_response_impl(int, BeastView, int, BeastError&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, BeastError&) override {}
  std::size_t on_body_impl(BeastView body, BeastError&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, BeastView, BeastError&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, BeastView body, BeastError&) override {
    return body.size();
  }
  void on_finish_impl(BeastError&) override {}
};

}  // namespace

std::string_view Request::parameter(std::string_view name) const {
  std::string_view rest = query;
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name)
      return pair.substr(equals + 1);
  }
  return {};
}

RequestReader::RequestReader(std::size_t head_bytes_max) : head_bytes_max_(head_bytes_max) {}
RequestReader::~RequestReader() = default;

RequestReader::State RequestReader::refuse(int status, const char* why) {
  status_ = status;
  why_ = why;
  left_.clear();
  return state_ = State::kRefused;
}

RequestReader::State RequestReader::feed(std::string_view bytes) {
  if (state_ == State::kRefused) return state_;
  left_ += bytes;
  return state_ == State::kReady ? state_ : look();
}

RequestReader::State RequestReader::next() {
  if (state_ != State::kReady) return state_;
  state_ = State::kMore;
  request_ = {};
  return look();
}

RequestReader::State RequestReader::look() {
  if (left_.empty()) return state_;
  Core core;
  core.header_limit(static_cast<std::uint32_t>(head_bytes_max_));
  BeastError error;
  const std::size_t taken = core.put(boost::asio::const_buffer(left_.data(), left_.size()), error);
  if (error == beast::http::error::header_limit)
    return refuse(kHeadTooLarge, "the head of the request is too large");
  if (error == beast::http::error::bad_version)
    return refuse(kVersionNotSupported, "this is HTTP/1.1");
  if (error && error != beast::http::error::need_more)
    return refuse(kBadRequest, "this is no HTTP request");
  if (!core.is_header_done()) {
    return left_.size() > head_bytes_max_
               ? refuse(kHeadTooLarge, "the head of the request is too large")
               : state_;
  }
  if (!core.is_done()) return refuse(kContentTooLarge, "a request has no body here");
  if (core.upgrades) return refuse(kBadRequest, "no other protocol is spoken here");
  if (core.hosts > 1) return refuse(kBadRequest, "a request has one Host");
  if (core.hosts == 0 && core.version > 10) return refuse(kBadRequest, "the Host is missing");
  if (core.target.empty() || core.target[0] != '/')
    return refuse(kBadRequest, "the target of the request is a path");
  request_ = std::move(core.request);
  request_.keep_alive = core.keep_alive();
  const std::size_t question = core.target.find('?');
  request_.path = core.target.substr(0, question);
  if (question != std::string::npos) request_.query = core.target.substr(question + 1);
  left_.erase(0, taken);
  return state_ = State::kReady;
}

}  // namespace pickd::admin
