// Server: one engine behind HTTP/1.1, in real time. One thread: an epoll loop and a timer that ends
// the engine's steps; between events it sleeps. Knows sockets and the clock; what a request costs
// is the engine's business.
//
//   POST /v1/completions   POST /reset_prefix_cache   GET /metrics   GET /health   GET /v1/models
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/base/fd.hpp"
#include "daemon/base/result.hpp"
#include "tools/common/http.hpp"
#include "tools/enginesim/completion.hpp"
#include "tools/enginesim/engine.hpp"
#include "tools/enginesim/metrics.hpp"

namespace pickd::enginesim {

struct ServerOptions {
  std::string host = "127.0.0.1";   // an IPv4 address
  std::uint16_t port = 0;           // 0: any free one
  std::vector<std::string> names;   // [0] the model, then its LoRA adapters
  double answer_tokens_mean = 128;  // of answers that end by themselves
  EngineOptions engine;
};

class Server {
 public:
  static base::Result<std::unique_ptr<Server>> make(const ServerOptions& options);

  std::uint16_t port() const { return port_; }

  // Serves until SIGTERM or SIGINT.
  base::Result<void> run();

 private:
  // A request of a connection that the engine works on.
  struct Answer {
    std::uint64_t id;
    CompletionWriter writer;
    std::string text;  // of an answer that is not streamed
    std::uint64_t seed;
    std::size_t prompt_tokens;
    std::uint32_t output_tokens;
    bool stream;
    bool include_usage;
    bool continuous_usage;
    bool ends_by_itself;
    bool keep_alive;
    std::uint64_t arrived_ns;
    std::uint64_t last_token_ns;
  };

  struct Connection {
    explicit Connection(int fd);
    base::Fd socket;
    tools::HttpRequestReader reader;
    std::string in;
    std::string out;
    std::unique_ptr<Answer> answer;  // at most one: a connection's requests are answered in order
    bool close_when_sent = false;
    bool wants_write = false;
  };

  explicit Server(const ServerOptions& options);
  base::Result<void> listen();
  void accept_all();
  void on_connection(Connection& connection, std::uint32_t events);
  bool receive(Connection& connection);
  bool read_requests(Connection& connection);
  bool send_out(Connection& connection);
  void drop(Connection& connection);

  void answer_request(Connection& connection, const tools::HttpRequest& request);
  void begin_completion(Connection& connection, const tools::HttpRequest& request);
  void send_error(Connection& connection, int status, std::string_view type,
                  std::string_view message, bool keep_alive);

  void start_step();
  void on_timer();
  void on_token(const TokenEvent& event, std::uint64_t now_ns);

  ServerOptions options_;
  Engine engine_;
  RequestHistograms histograms_;
  double process_start_s_;
  base::Fd epoll_;
  base::Fd listener_;
  base::Fd timer_;
  base::Fd signals_;
  bool accepting_ = true;  // false while there are no descriptors left
  std::uint16_t port_ = 0;
  std::uint64_t next_id_ = 1;
  std::unordered_map<int, std::unique_ptr<Connection>> connections_;  // by descriptor
  std::unordered_map<std::uint64_t, Connection*> by_request_;
  std::vector<TokenEvent> events_;  // of the last step; kept to reuse its memory
};

}  // namespace pickd::enginesim
