#include "daemon/admin/admin_server.hpp"

#include <unistd.h>

#include <charconv>

#include "daemon/admin/listen.hpp"
#include "daemon/admin/metrics_page.hpp"
#include "daemon/admin/page.hpp"
#include "daemon/admin/state_json.hpp"

namespace pickd::admin {

namespace {

constexpr std::uint64_t kSampleNs = 1'000'000'000;
constexpr std::size_t kRecentPicks = 16;

ServerLimits limits_of(const config::AdminConfig& config) {
  ServerLimits limits;
  limits.connections_max = config.connections_max;
  limits.request_within_ms = config.request_within_ms;
  limits.idle_ms = config.idle_ms;
  return limits;
}

Answer json(std::string body) {
  Answer answer;
  answer.content_type = "application/json";
  answer.body = std::move(body);
  return answer;
}

Answer verdict(const std::vector<Check>& checks) {
  Answer answer = json(checks_json(checks));
  answer.status = all_good(checks) ? 200 : 503;
  return answer;
}

}  // namespace

base::Result<std::unique_ptr<AdminServer>> AdminServer::create(const config::AdminConfig& config,
                                                               net::Reactor& reactor,
                                                               state::Counters& counters,
                                                               Source& source) {
  if (config.listen.empty() && config.socket.empty()) return std::unique_ptr<AdminServer>();
  if (auto checked = check(config); !checked) return checked.error();
  std::unique_ptr<AdminServer> server(new AdminServer(config, reactor, counters, source));
  if (auto listens = server->listen(); !listens) return listens.error();
  if (config.page) server->sample();
  return server;
}

AdminServer::AdminServer(const config::AdminConfig& config, net::Reactor& reactor,
                         state::Counters& counters, Source& source)
    : config_(config),
      reactor_(&reactor),
      source_(&source),
      page_(page_answer()),
      http_(reactor, counters, limits_of(config),
            [this](const Request& request) { return answer(request); }) {}

AdminServer::~AdminServer() {
  if (sample_timer_ != 0) reactor_->cancel(sample_timer_);
  if (owns_socket_file_) ::unlink(config_.socket.c_str());
}

base::Result<void> AdminServer::listen() {
  if (!config_.listen.empty()) {
    auto address = read_tcp_address(config_.listen);
    if (!address) return address.error();
    auto socket = listen_tcp(*address);
    if (!socket) return socket.error();
    places_.push_back("http://" + bound_to(socket->get()) + "/");
    if (auto served = http_.serve(std::move(*socket), false); !served) return served;
  }
  if (config_.socket.empty()) return {};
  auto socket = listen_unix_stream(config_.socket, static_cast<std::uint32_t>(config_.mode));
  if (!socket) return socket.error();
  owns_socket_file_ = true;
  places_.push_back(config_.socket);
  return http_.serve(std::move(*socket), true);
}

void AdminServer::sample() {
  history_.add(source_->facts());
  sample_timer_ = reactor_->after(kSampleNs, [this] { sample(); });
}

Answer AdminServer::metrics(const Request& request) {
  const MetricsFormat format = format_for(request.accept);
  Answer answer;
  answer.content_type = content_type(format);
  answer.body = metrics_page(source_->facts(), format, config_.endpoints_max);
  answer.fields.emplace_back("Vary", "Accept");
  return answer;
}

Answer AdminServer::state(const Request& request) {
  const std::string_view text = request.parameter("since");
  std::uint64_t since = 0;
  std::from_chars(text.data(), text.data() + text.size(), since);  // what is no number is 0
  return json(
      state_json(source_->facts(), source_->readiness(), history_, since, config_.endpoints_max));
}

Answer AdminServer::answer(const Request& request) {
  if (request.path == "/metrics") return metrics(request);
  if (request.path == "/healthz") return verdict(source_->health());
  if (request.path == "/readyz") return verdict(source_->readiness());
  if (config_.page) {
    if (request.path == "/") return page_;
    if (request.path == "/api/state") return state(request);
    if (request.path == "/api/picks") return json(picks_json(source_->recent_picks(kRecentPicks)));
  }
  return words(404, config_.page ? "there are /, /metrics, /healthz and /readyz"
                                 : "there are /metrics, /healthz and /readyz");
}

}  // namespace pickd::admin
