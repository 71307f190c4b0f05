// The epoll loop of the engine. See server.hpp.
#include "tools/enginesim/server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>

#include "daemon/base/clock.hpp"

namespace pickd::enginesim {

namespace {

constexpr std::size_t kBodyBytesMax = std::size_t{64} << 20;
// Bytes a client may send ahead while its answer is still under way.
constexpr std::size_t kAheadBytesMax = 64 * 1024;
// A reader this far behind is dropped: an engine does not buffer without end for it.
constexpr std::size_t kUnsentBytesMax = std::size_t{16} << 20;

double wall_s() { return static_cast<double>(base::clock_ns(CLOCK_REALTIME)) / 1e9; }

base::Result<void> watch(const base::Fd& epoll, int fd, std::uint32_t events,
                         int operation = EPOLL_CTL_ADD) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll.get(), operation, fd, &event) < 0) return base::errno_error("epoll_ctl");
  return {};
}

}  // namespace

Server::Connection::Connection(int fd) : socket(fd), reader(kBodyBytesMax) {}

Server::Server(const ServerOptions& options)
    : options_(options), engine_(options.engine), process_start_s_(wall_s()) {}

base::Result<std::unique_ptr<Server>> Server::make(const ServerOptions& options) {
  std::unique_ptr<Server> server(new Server(options));
  if (auto listening = server->listen(); !listening) return listening.error();
  return server;
}

base::Result<void> Server::listen() {
  epoll_ = base::Fd(::epoll_create1(EPOLL_CLOEXEC));
  timer_ = base::Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  listener_ = base::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!epoll_.valid() || !timer_.valid() || !listener_.valid()) return base::errno_error("sockets");

  const int on = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(options_.port);
  if (::inet_pton(AF_INET, options_.host.c_str(), &address.sin_addr) != 1) {
    return base::Error{-EINVAL,
                       "--host must be an IPv4 address such as 127.0.0.1, not " + options_.host};
  }
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_.get(), generic, size) < 0 || ::listen(listener_.get(), SOMAXCONN) < 0) {
    return base::errno_error("listen on " + options_.host + ":" + std::to_string(options_.port));
  }
  if (::getsockname(listener_.get(), generic, &size) < 0) return base::errno_error("getsockname");
  port_ = ntohs(address.sin_port);

  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  signals_ = base::Fd(::signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals_.valid()) return base::errno_error("signalfd");

  for (const base::Fd* fd : {&timer_, &listener_, &signals_}) {
    if (auto watched = watch(epoll_, fd->get(), EPOLLIN); !watched) return watched;
  }
  return {};
}

base::Result<void> Server::run() {
  for (;;) {
    epoll_event ready[64];
    const int count = ::epoll_wait(epoll_.get(), ready, std::size(ready), -1);
    if (count < 0 && errno != EINTR) return base::errno_error("epoll_wait");
    for (int i = 0; i < count; ++i) {
      const int fd = ready[i].data.fd;
      if (fd == signals_.get()) return {};
      if (fd == timer_.get()) {
        on_timer();
      } else if (fd == listener_.get()) {
        accept_all();
      } else if (const auto found = connections_.find(fd); found != connections_.end()) {
        on_connection(*found->second, ready[i].events);
      }
    }
    // After the whole batch: requests that came together begin together.
    if (!engine_.in_step()) start_step();
  }
}

void Server::accept_all() {
  for (;;) {
    base::Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      // Out of descriptors: the listener would stay readable and the loop spin. drop() brings it
      // back.
      accepting_ = errno != EMFILE && errno != ENFILE;
      if (!accepting_) watch(epoll_, listener_.get(), 0, EPOLL_CTL_MOD).ok();
      return;
    }
    const int on = 1;  // each token is a small packet that must not wait for the next
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const int fd = socket.get();
    if (!watch(epoll_, fd, EPOLLIN | EPOLLRDHUP)) continue;
    connections_.emplace(fd, std::make_unique<Connection>(socket.release()));
  }
}

void Server::on_connection(Connection& connection, std::uint32_t events) {
  if ((events & EPOLLOUT) != 0 && !send_out(connection)) return drop(connection);
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0) return;
  if (!receive(connection) || !read_requests(connection)) drop(connection);
}

// False when the peer is gone or sends more ahead than it may.
bool Server::receive(Connection& connection) {
  char bytes[64 * 1024];
  for (;;) {
    const ssize_t got = ::recv(connection.socket.get(), bytes, sizeof bytes, 0);
    if (got > 0) {
      connection.in.append(bytes, static_cast<std::size_t>(got));
      if (connection.answer && connection.in.size() > kAheadBytesMax) return false;
      if (connection.in.size() >= kAheadBytesMax)
        return true;  // parse first: bodies need no second copy
      continue;
    }
    return got < 0 && (errno == EAGAIN || errno == EINTR);
  }
}

bool Server::read_requests(Connection& connection) {
  using State = tools::HttpRequestReader::State;
  while (!connection.answer && !connection.close_when_sent) {
    const State state = connection.reader.read(connection.in);
    if (state == State::kMore) {
      if (connection.reader.wants_continue()) connection.out += "HTTP/1.1 100 Continue\r\n\r\n";
      break;
    }
    if (state == State::kBad) {
      send_error(connection, 400, "BadRequestError", "not an HTTP/1.1 request", false);
    } else if (state == State::kTooLarge) {
      send_error(connection, 413, "BadRequestError", "the request is larger than 64 MiB", false);
    } else {
      answer_request(connection, connection.reader.take());
    }
  }
  return send_out(connection);
}

// False when the connection is over.
bool Server::send_out(Connection& connection) {
  std::size_t sent = 0;
  while (sent < connection.out.size()) {
    const ssize_t wrote = ::send(connection.socket.get(), connection.out.data() + sent,
                                 connection.out.size() - sent, MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno != EAGAIN) return false;
    if (wrote < 0) break;
    sent += static_cast<std::size_t>(wrote);
  }
  connection.out.erase(0, sent);
  if (connection.out.size() > kUnsentBytesMax) return false;
  if (connection.out.empty() && connection.close_when_sent) return false;
  const bool wants_write = !connection.out.empty();
  if (wants_write != connection.wants_write) {
    connection.wants_write = wants_write;
    const std::uint32_t events = EPOLLIN | EPOLLRDHUP | (wants_write ? EPOLLOUT : 0U);
    return watch(epoll_, connection.socket.get(), events, EPOLL_CTL_MOD).ok();
  }
  return true;
}

// The client went away: what it asked for is freed at once.
void Server::drop(Connection& connection) {
  if (connection.answer) {
    engine_.abort(connection.answer->id);
    by_request_.erase(connection.answer->id);
    ++histograms_.aborted;
  }
  connections_.erase(connection.socket.get());
  if (!accepting_) accepting_ = watch(epoll_, listener_.get(), EPOLLIN, EPOLL_CTL_MOD).ok();
}

void Server::answer_request(Connection& connection, const tools::HttpRequest& request) {
  const std::string_view path =
      std::string_view(request.target).substr(0, request.target.find('?'));
  const auto answer = [&](std::string_view type, std::string_view body) {
    connection.out += tools::http_answer(200, type, body, request.keep_alive);
    connection.close_when_sent = !request.keep_alive;
  };
  struct Route {
    std::string_view path;
    std::string_view method;
  };
  static constexpr Route kRoutes[] = {{"/v1/completions", "POST"},
                                      {"/reset_prefix_cache", "POST"},
                                      {"/metrics", "GET"},
                                      {"/health", "GET"},
                                      {"/v1/models", "GET"}};
  const auto* route = std::ranges::find(kRoutes, path, &Route::path);
  if (route == std::end(kRoutes)) {
    return send_error(connection, 404, "NotFoundError", "no such path", request.keep_alive);
  }
  if (request.method != route->method) {
    return send_error(connection, 405, "BadRequestError",
                      "this path takes " + std::string(route->method), request.keep_alive);
  }
  if (path == "/v1/completions") return begin_completion(connection, request);
  if (path == "/reset_prefix_cache") {
    engine_.forget_prefixes();
    answer("application/json", "{}");
  } else if (path == "/metrics") {
    answer("text/plain; version=0.0.4; charset=utf-8",
           metrics_page(engine_, histograms_, options_.names, process_start_s_, wall_s()));
  } else if (path == "/health") {
    answer("text/plain", "");
  } else {
    answer("application/json", models_body(options_.names, engine_.sequence_tokens_max(),
                                           static_cast<std::uint64_t>(process_start_s_)));
  }
}

void Server::send_error(Connection& connection, int status, std::string_view type,
                        std::string_view message, bool keep_alive) {
  connection.out +=
      tools::http_answer(status, "application/json", error_body(status, type, message), keep_alive);
  connection.close_when_sent = !keep_alive;
}

void Server::begin_completion(Connection& connection, const tools::HttpRequest& request) {
  const auto parsed = parse_completion(request.body);
  if (!parsed)
    return send_error(connection, 400, "BadRequestError", parsed.error().text, request.keep_alive);
  const CompletionRequest& wanted = parsed.value();
  const std::string& name = wanted.model.empty() ? options_.names[0] : wanted.model;
  const auto found = std::ranges::find(options_.names, name);
  if (found == options_.names.end()) {
    return send_error(connection, 404, "NotFoundError", "The model `" + name + "` does not exist.",
                      request.keep_alive);
  }
  const std::uint64_t seed = answer_seed(wanted.prompt);
  const std::uint32_t own_length =
      wanted.ignore_eos ? wanted.tokens_max : answer_length(seed, options_.answer_tokens_mean);
  const std::uint32_t output_tokens = std::min(own_length, wanted.tokens_max);
  // What was asked for must fit, not what the answer will turn out to be: the client cannot know
  // that.
  if (wanted.prompt.size() + wanted.tokens_max > engine_.sequence_tokens_max()) {
    return send_error(connection, 400, "BadRequestError",
                      "This model's maximum context length is " +
                          std::to_string(engine_.sequence_tokens_max()) +
                          " tokens. The prompt has " + std::to_string(wanted.prompt.size()) +
                          " and max_tokens is " + std::to_string(wanted.tokens_max) + '.',
                      request.keep_alive);
  }
  const std::uint64_t id = next_id_++;
  const std::uint64_t now_ns = base::monotonic_ns();
  engine_.submit({id, static_cast<std::uint32_t>(wanted.prompt.size()), output_tokens,
                  static_cast<std::uint32_t>(found - options_.names.begin()),
                  block_keys(name, wanted.salt, wanted.prompt, seed, output_tokens,
                             options_.engine.block_tokens)});
  connection.answer.reset(new Answer{
      id,
      CompletionWriter("cmpl-" + std::to_string(id), name, static_cast<std::uint64_t>(wall_s())),
      "", seed, wanted.prompt.size(), output_tokens, wanted.stream, wanted.include_usage,
      wanted.continuous_usage, own_length <= wanted.tokens_max && !wanted.ignore_eos,
      request.keep_alive, now_ns, now_ns});
  by_request_[id] = &connection;
  if (wanted.stream)
    connection.out += tools::http_chunked_head("text/event-stream", request.keep_alive);
}

void Server::start_step() {
  const auto end_ns = engine_.begin_step(base::monotonic_ns());
  if (!end_ns) return;
  itimerspec at{};
  at.it_value.tv_sec = static_cast<time_t>(*end_ns / 1'000'000'000ULL);
  at.it_value.tv_nsec = static_cast<long>(*end_ns % 1'000'000'000ULL);
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

void Server::on_timer() {
  std::uint64_t expirations;
  if (::read(timer_.get(), &expirations, sizeof expirations) != sizeof expirations) return;
  events_.clear();
  engine_.end_step(events_);
  // The next step goes on while the tokens of this one are sent, as in an engine with an output
  // thread.
  start_step();
  const std::uint64_t now_ns = base::monotonic_ns();
  for (const TokenEvent& event : events_) on_token(event, now_ns);
}

void Server::on_token(const TokenEvent& event, std::uint64_t now_ns) {
  const auto found = by_request_.find(event.id);
  if (found == by_request_.end()) return;
  Connection& connection = *found->second;
  Answer& answer = *connection.answer;
  const auto since_s = [&](std::uint64_t then_ns) {
    return static_cast<double>(now_ns - then_ns) / 1e9;
  };
  (event.output_tokens == 1 ? histograms_.ttft : histograms_.itl)
      .add(since_s(answer.last_token_ns));
  answer.last_token_ns = now_ns;

  const std::string word = answer_word(answer.seed, event.output_tokens - 1);
  const Usage usage{answer.prompt_tokens, event.cached_tokens, event.output_tokens};
  const std::string_view reason = !event.finished ? "" : answer.ends_by_itself ? "stop" : "length";
  if (answer.stream) {
    tools::append_http_chunk(
        connection.out,
        answer.writer.event(word, reason, answer.continuous_usage ? &usage : nullptr));
  } else {
    answer.text += word;
  }
  if (event.finished) {
    histograms_.total.add(since_s(answer.arrived_ns));
    ++(answer.ends_by_itself ? histograms_.stopped : histograms_.cut);
    if (answer.stream) {
      if (answer.include_usage)
        tools::append_http_chunk(connection.out, answer.writer.usage_event(usage));
      tools::append_http_chunk(connection.out, CompletionWriter::done_event());
      tools::append_http_chunk(connection.out, "");
    } else {
      connection.out +=
          tools::http_answer(200, "application/json",
                             answer.writer.whole(answer.text, reason, usage), answer.keep_alive);
    }
    connection.close_when_sent = !answer.keep_alive;
    by_request_.erase(found);
    connection.answer.reset();
  }
  // A finished answer lets the next request of the connection begin.
  if (!(event.finished ? read_requests(connection) : send_out(connection))) drop(connection);
}

}  // namespace pickd::enginesim
