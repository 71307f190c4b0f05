#include "daemon/net/http/http_client.hpp"

#include <algorithm>

#include "daemon/base/clock.hpp"
#include "daemon/net/http/bearer_token.hpp"
#include "daemon/net/http/connection.hpp"
#include "daemon/net/http/response_reader.hpp"
#include "daemon/net/resolver.hpp"

namespace pickd::net::http {

namespace {

constexpr std::uint64_t kMillisecondNs = 1'000'000;
constexpr std::uint64_t kNever = UINT64_MAX;
constexpr int kUnauthorized = 401;
constexpr std::size_t kAddressesMax = 8;  // of one name, tried in turn

std::uint64_t after_ms(std::uint64_t now_ns, std::uint64_t delay_ms) {
  return delay_ms == 0 ? kNever : now_ns + delay_ms * kMillisecondNs;
}

}  // namespace

class HttpClient::Impl final : Connection::Owner, ResponseSink {
 public:
  Impl(Reactor& reactor, Url url, ClientOptions options)
      : reactor_(&reactor),
        url_(std::move(url)),
        options_(std::move(options)),
        connection_(reactor, *this) {}
  ~Impl() override { cancel(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void get(const Request& request, ResponseSink& sink);
  void cancel();
  bool busy() const { return stage_ != Stage::kIdle; }
  const Url& url() const { return url_; }

 private:
  enum class Stage : std::uint8_t { kIdle, kConnecting, kWaiting };

  void connect();
  void resolved(const DnsAnswer& answer);
  void dial(std::vector<Address> addresses);
  void finish_later(Failure failure, const char* text);
  void stop_asking();
  void send_request();
  std::string request_text();
  void finish(Failure failure, std::string text);
  void finish_answer();

  bool connection_open() override;
  bool connection_received(std::string_view bytes) override;
  void connection_ended(Failure failure, const std::string& text) override;

  bool head(const Head& head) override;
  bool body(std::string_view piece) override;
  void done(const Outcome&) override {}  // the reader does not call it

  void watch_the_clock();
  void stop_the_clock();
  void time_is_up();

  Reactor* reactor_;
  Url url_;
  ClientOptions options_;
  Connection connection_;
  ResponseReader reader_;

  Stage stage_ = Stage::kIdle;
  Request request_;
  ResponseSink* sink_ = nullptr;
  bool reused_ = false;       // this exchange runs on a kept-alive connection
  bool retried_ = false;      // such a one was dead, and this is the one after it
  bool asked_again_ = false;  // after 401, with another token
  bool swallow_ = false;      // this answer is that 401
  std::uint64_t idle_since_ns_ = 0;
  std::uint64_t quiet_due_ns_ = kNever;  // of connecting, or of the next byte
  std::uint64_t total_due_ns_ = kNever;
  std::uint64_t timer_due_ns_ = kNever;
  Reactor::TimerId timer_ = 0;
  Resolver::QuestionId question_ = 0;
};

void HttpClient::Impl::get(const Request& request, ResponseSink& sink) {
  const std::uint64_t now_ns = base::monotonic_ns();
  request_ = request;
  sink_ = &sink;
  retried_ = false;
  asked_again_ = false;
  total_due_ns_ = after_ms(now_ns, request_.total_timeout_ms);
  reused_ =
      connection_.is_open() && now_ns - idle_since_ns_ <= options_.keep_alive_ms * kMillisecondNs;
  if (reused_) return send_request();
  connect();
}

void HttpClient::Impl::connect() {
  stage_ = Stage::kConnecting;
  quiet_due_ns_ = after_ms(base::monotonic_ns(), options_.connect_timeout_ms);
  watch_the_clock();
  if (url_.tls && options_.tls == nullptr)
    return finish_later(Failure::kTls, "no TLS settings were given for https");
  std::vector<Address> literal(1);
  if (read_address(url_.host, url_.port, literal[0])) return dial(std::move(literal));
  if (options_.resolver == nullptr)
    return finish_later(Failure::kResolve, "must be an address here, not a name");
  question_ = options_.resolver->ask_addresses(
      url_.host, [this](const DnsAnswer& answer) { resolved(answer); });
}

void HttpClient::Impl::resolved(const DnsAnswer& answer) {
  question_ = 0;
  std::vector<Address> addresses;
  for (const DnsRecord& record : answer.records) {
    Address address;
    if (addresses.size() < kAddressesMax && read_address(record.address, url_.port, address))
      addresses.push_back(address);
  }
  if (!addresses.empty()) return dial(std::move(addresses));
  finish(Failure::kResolve,
         answer.status == DnsAnswer::Status::kFailed ? answer.error : "the name has no address");
}

void HttpClient::Impl::dial(std::vector<Address> addresses) {
  connection_.open(std::move(addresses), url_.tls ? options_.tls : nullptr, url_.host);
}

void HttpClient::Impl::finish_later(Failure failure, const char* text) {
  stop_the_clock();
  timer_ = reactor_->after(0, [this, failure, text] {
    timer_ = 0;
    finish(failure, text);
  });
}

std::string HttpClient::Impl::request_text() {
  std::string text = "GET " + (request_.target.empty() ? url_.target : request_.target) +
                     " HTTP/1.1\r\nHost: " + url_.authority() +
                     "\r\nUser-Agent: pickd\r\nAccept: " + request_.accept +
                     "\r\nAccept-Encoding: identity\r\n";
  for (const auto& [name, value] : request_.fields) text += name + ": " + value + "\r\n";
  if (options_.token != nullptr) {
    const std::string& token = options_.token->value(base::monotonic_ns());
    if (!token.empty()) text += "Authorization: Bearer " + token + "\r\n";
  }
  return text + "\r\n";
}

void HttpClient::Impl::send_request() {
  stage_ = Stage::kWaiting;
  swallow_ = false;
  quiet_due_ns_ = after_ms(base::monotonic_ns(), request_.idle_timeout_ms);
  watch_the_clock();
  reader_.begin({options_.head_bytes_max, request_.body_bytes_max}, *this);
  connection_.send(request_text());
}

void HttpClient::Impl::stop_asking() {
  if (question_ != 0) options_.resolver->cancel(question_);
  question_ = 0;
}

void HttpClient::Impl::cancel() {
  stop_the_clock();
  stop_asking();
  connection_.close();
  stage_ = Stage::kIdle;
  sink_ = nullptr;
}

// The last thing that is done: the sink may destroy the client or ask for more.
void HttpClient::Impl::finish(Failure failure, std::string text) {
  Outcome outcome;
  outcome.failure = failure;
  outcome.status = stage_ == Stage::kWaiting ? reader_.status() : 0;
  outcome.reused = reused_;
  outcome.sent_all = stage_ == Stage::kWaiting && connection_.sent_all();
  if (failure != Failure::kNone || outcome.status < 200 || outcome.status > 299) {
    outcome.text = url_.text() + ": ";
    outcome.text += failure != Failure::kNone ? failure_name(failure)
                                              : "status " + std::to_string(outcome.status);
    if (!text.empty()) outcome.text += ", " + text;
  }
  stop_the_clock();
  stop_asking();
  if (failure != Failure::kNone || !reader_.keep_alive()) connection_.close();
  idle_since_ns_ = base::monotonic_ns();
  stage_ = Stage::kIdle;
  ResponseSink* sink = std::exchange(sink_, nullptr);
  sink->done(outcome);
}

void HttpClient::Impl::finish_answer() {
  if (!swallow_) return finish(Failure::kNone, "");
  asked_again_ = true;
  if (reader_.keep_alive()) return send_request();
  connection_.close();
  connect();
}

bool HttpClient::Impl::connection_open() {
  send_request();
  return true;
}

bool HttpClient::Impl::connection_received(std::string_view bytes) {
  if (stage_ != Stage::kWaiting) {
    connection_.close();  // words that nobody asked for: whatever follows would be taken for theirs
    return false;
  }
  quiet_due_ns_ = after_ms(base::monotonic_ns(), request_.idle_timeout_ms);
  switch (reader_.feed(bytes)) {
    case ResponseReader::State::kMore: return true;
    case ResponseReader::State::kDone: finish_answer(); return false;
    case ResponseReader::State::kFailed: break;
  }
  finish(reader_.failure(), reader_.text());
  return false;
}

void HttpClient::Impl::connection_ended(Failure failure, const std::string& text) {
  if (stage_ == Stage::kIdle) return;
  if (stage_ == Stage::kConnecting)
    return finish(failure == Failure::kNone ? Failure::kReset : failure, text);
  if (reused_ && !reader_.got_some() && !retried_) {
    retried_ = true;
    reused_ = false;
    return connect();
  }
  if (failure == Failure::kNone && reader_.feed_end() == ResponseReader::State::kDone)
    return finish_answer();
  finish(failure == Failure::kNone ? Failure::kReset : failure, text);
}

bool HttpClient::Impl::head(const Head& head) {
  if (head.status == kUnauthorized && options_.token != nullptr && !asked_again_)
    swallow_ = options_.token->refresh(base::monotonic_ns());
  return swallow_ || sink_->head(head);
}

bool HttpClient::Impl::body(std::string_view piece) { return swallow_ || sink_->body(piece); }

// One timer stands for both limits. Bytes only move the due time; a timer that comes too early is
// set again.
void HttpClient::Impl::watch_the_clock() {
  const std::uint64_t due_ns = std::min(quiet_due_ns_, total_due_ns_);
  if (timer_ != 0 && timer_due_ns_ <= due_ns) return;
  stop_the_clock();
  if (due_ns == kNever) return;
  const std::uint64_t now_ns = base::monotonic_ns();
  timer_due_ns_ = due_ns;
  timer_ = reactor_->after(due_ns > now_ns ? due_ns - now_ns : 0, [this] { time_is_up(); });
}

void HttpClient::Impl::stop_the_clock() {
  if (timer_ != 0) reactor_->cancel(timer_);
  timer_ = 0;
}

void HttpClient::Impl::time_is_up() {
  timer_ = 0;
  const std::uint64_t now_ns = base::monotonic_ns();
  if (now_ns < std::min(quiet_due_ns_, total_due_ns_)) return watch_the_clock();
  if (now_ns >= total_due_ns_) {
    return finish(Failure::kTotalTimeout,
                  "not done after " + std::to_string(request_.total_timeout_ms) + " ms");
  }
  if (stage_ == Stage::kConnecting) {
    return finish(Failure::kConnectTimeout,
                  "nothing after " + std::to_string(options_.connect_timeout_ms) + " ms");
  }
  finish(Failure::kTimeout, "no byte for " + std::to_string(request_.idle_timeout_ms) + " ms");
}

HttpClient::HttpClient(Reactor& reactor, Url url, ClientOptions options)
    : impl_(std::make_unique<Impl>(reactor, std::move(url), std::move(options))) {}
HttpClient::~HttpClient() = default;

void HttpClient::get(const Request& request, ResponseSink& sink) { impl_->get(request, sink); }
void HttpClient::cancel() { impl_->cancel(); }
bool HttpClient::busy() const { return impl_->busy(); }
const Url& HttpClient::url() const { return impl_->url(); }

}  // namespace pickd::net::http
