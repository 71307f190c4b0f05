#include "tools/bench/page_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <unordered_map>

#include "daemon/base/fd.hpp"

namespace pickd::bench {

namespace {

constexpr std::uint32_t kNetwork = 0x7F010000;  // 127.1.0.0: loopback, and nobody else's
constexpr int kEventsAtOnce = 64;

// In the shape of vLLM's: the metrics that are read among histograms that are not.
std::string make_page(std::size_t bytes) {
  const std::string labels = "{engine=\"0\",model_name=\"meta-llama/Llama-3.1-8B-Instruct\"";
  std::string page =
      "# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
      "# TYPE vllm:num_requests_running gauge\n"
      "vllm:num_requests_running" +
      labels +
      "} 17.0\n"
      "# HELP vllm:num_requests_waiting Number of requests waiting to be processed.\n"
      "# TYPE vllm:num_requests_waiting gauge\n"
      "vllm:num_requests_waiting" +
      labels +
      "} 3.0\n"
      "# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.\n"
      "# TYPE vllm:kv_cache_usage_perc gauge\n"
      "vllm:kv_cache_usage_perc" +
      labels +
      "} 0.4375\n"
      "# HELP vllm:time_to_first_token_seconds Histogram of time to first token in seconds.\n"
      "# TYPE vllm:time_to_first_token_seconds histogram\n";
  for (int at = 0; page.size() < bytes; ++at) {
    page += "vllm:time_to_first_token_seconds_bucket" + labels + ",le=\"" +
            std::to_string(0.001 * at) + "\"} " + std::to_string(at * 37) + ".0\n";
  }
  return page;
}

sockaddr_in address_of(std::uint32_t index, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  // No .0 and no .255 as the last byte.
  address.sin_addr.s_addr = htonl(kNetwork + (index / 250 << 8) + 1 + index % 250);
  address.sin_port = htons(port);
  return address;
}

base::Fd listen_at(const sockaddr_in& address) {
  base::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const bool there =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(socket.get(), 16) == 0;
  if (!there)
    throw std::runtime_error(std::string("a loopback address to listen on: ") +
                             std::strerror(errno));
  return socket;
}

std::uint16_t port_of(const base::Fd& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

// One connection: an answer for each head that has come whole. False: it has ended.
bool serve(int socket, std::string& pending, const std::string& answer) {
  char bytes[4096];
  const ssize_t got = ::recv(socket, bytes, sizeof bytes, MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  pending.append(bytes, static_cast<std::size_t>(got));
  for (std::size_t end; (end = pending.find("\r\n\r\n")) != std::string::npos;) {
    pending.erase(0, end + 4);
    // The page fits the socket's buffer, and one is asked for at a time.
    if (::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(answer.size()))
      return false;
  }
  return true;
}

[[noreturn]] void run(const std::vector<base::Fd>& listeners, const std::string& page) {
  const std::string answer =
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: " +
      std::to_string(page.size()) + "\r\n\r\n" + page;
  const base::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  const auto watch = [&epoll](int fd, std::uint64_t data) {
    epoll_event event{EPOLLIN, {}};
    event.data.u64 = data;
    ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event);
  };
  constexpr std::uint64_t kListener = 1ULL << 32;
  for (const base::Fd& listener : listeners)
    watch(listener.get(), kListener | static_cast<std::uint32_t>(listener.get()));
  std::unordered_map<int, std::string> pending;
  while (true) {
    epoll_event events[kEventsAtOnce];
    const int count = ::epoll_wait(epoll.get(), events, kEventsAtOnce, -1);
    for (int at = 0; at < count; ++at) {
      const int fd = static_cast<int>(events[at].data.u64 & 0xFFFFFFFF);
      if ((events[at].data.u64 & kListener) != 0) {
        const int socket = ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
        if (socket < 0) continue;
        const int now = 1;
        ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
        watch(socket, static_cast<std::uint32_t>(socket));
        pending[socket].clear();
      } else if (!serve(fd, pending[fd], answer)) {
        pending.erase(fd);
        ::close(fd);
      }
    }
  }
}

}  // namespace

PageServer::PageServer(std::uint32_t addresses, std::size_t page_bytes)
    : page_(make_page(page_bytes)) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<base::Fd> listeners;
  std::uint16_t port = 0;
  for (std::uint32_t at = 0; at < addresses; ++at) {
    const sockaddr_in address = address_of(at, port);
    listeners.push_back(listen_at(address));
    port = port_of(listeners.back());
    char text[INET_ADDRSTRLEN];
    ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
    addresses_.push_back(std::string(text) + ":" + std::to_string(port));
  }
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  run(listeners, page_);
}

PageServer::~PageServer() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace pickd::bench
