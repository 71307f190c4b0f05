// A small DNS server for tests: answers over UDP and TCP on a loopback port what it was told to.
// Runs on a thread of its own until it goes.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/base/fd.hpp"

namespace pickd::nettests {

inline constexpr int kTypeA = 1;
inline constexpr int kTypeCname = 5;
inline constexpr int kTypeAaaa = 28;
inline constexpr int kTypeSrv = 33;
inline constexpr int kServfail = 2;
inline constexpr int kNxdomain = 3;

class DnsServer {
 public:
  struct Record {
    int type;
    std::uint32_t ttl_s;
    std::string data;  // as on the wire; see a(), aaaa(), srv(), cname()
  };
  struct Answer {
    int rcode = 0;
    std::vector<Record> records = {};
    bool silent = false;     // no answer at all
    bool truncated = false;  // over UDP: nothing but the bit that says "ask over TCP"
    bool garbage = false;    // bytes that are no message
  };

  DnsServer() : bell_(::eventfd(0, EFD_CLOEXEC)) {
    // A port that is free for one kind may be taken for the other: then another one.
    constexpr int kTries = 100;
    for (int tried = 0; !tcp_.valid(); ++tried) {
      udp_ = open(SOCK_DGRAM, 0);
      tcp_ = open(SOCK_STREAM, port_);
      if (!udp_.valid() || (!tcp_.valid() && tried == kTries)) throw std::runtime_error("bind");
    }
    ::listen(tcp_.get(), 16);
    thread_ = std::thread([this] { run(); });
  }
  ~DnsServer() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote = ::write(bell_.get(), &one, sizeof one);
    thread_.join();
  }
  DnsServer(const DnsServer&) = delete;
  DnsServer& operator=(const DnsServer&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // What it says from now on; a name and type it was not told of are NXDOMAIN.
  void set(const std::string& name, int type, Answer answer) {
    const std::lock_guard lock(mutex_);
    answers_[{name, type}] = std::move(answer);
  }
  // Questions for this name and type so far.
  int asked(const std::string& name, int type) const {
    const std::lock_guard lock(mutex_);
    const auto at = asked_.find({name, type});
    return at == asked_.end() ? 0 : at->second;
  }
  int asked_over_tcp() const { return over_tcp_; }

  static Record a(const std::string& address, std::uint32_t ttl_s = 60) {
    in_addr bytes{};
    ::inet_pton(AF_INET, address.c_str(), &bytes);
    return {kTypeA, ttl_s, {reinterpret_cast<const char*>(&bytes), sizeof bytes}};
  }
  static Record aaaa(const std::string& address, std::uint32_t ttl_s = 60) {
    in6_addr bytes{};
    ::inet_pton(AF_INET6, address.c_str(), &bytes);
    return {kTypeAaaa, ttl_s, {reinterpret_cast<const char*>(&bytes), sizeof bytes}};
  }
  static Record cname(const std::string& target, std::uint32_t ttl_s = 60) {
    return {kTypeCname, ttl_s, wire_name(target)};
  }
  static Record srv(const std::string& target, std::uint16_t port, std::uint32_t ttl_s = 60,
                    std::uint16_t priority = 0, std::uint16_t weight = 0) {
    return {kTypeSrv, ttl_s, u16(priority) + u16(weight) + u16(port) + wire_name(target)};
  }

  // A whole message with these records in answer to one question.
  static std::string message(std::uint16_t id, const std::string& question, const Answer& answer,
                             bool over_tcp) {
    const bool cut = answer.truncated && !over_tcp;
    const auto flags = static_cast<std::uint16_t>(0x8180 | (cut ? 0x0200 : 0) | answer.rcode);
    std::string out = u16(id) + u16(flags) + u16(1);
    out += u16(static_cast<std::uint16_t>(cut ? 0 : answer.records.size())) + u16(0) + u16(0);
    out += question;
    if (cut) return out;
    for (const Record& record : answer.records) {
      out += u16(0xC00C) + u16(static_cast<std::uint16_t>(record.type)) + u16(1);  // the asked name
      out += u16(static_cast<std::uint16_t>(record.ttl_s >> 16)) +
             u16(static_cast<std::uint16_t>(record.ttl_s)) +
             u16(static_cast<std::uint16_t>(record.data.size())) + record.data;
    }
    return out;
  }

  // The question section for a name.
  static std::string question(const std::string& name, int type) {
    return wire_name(name) + u16(static_cast<std::uint16_t>(type)) + u16(1);
  }

 private:
  static std::string u16(std::uint16_t value) {
    return {static_cast<char>(value >> 8), static_cast<char>(value & 0xFF)};
  }
  static std::string wire_name(const std::string& name) {
    std::string out;
    for (std::size_t from = 0; from < name.size();) {
      std::size_t dot = name.find('.', from);
      if (dot == std::string::npos) dot = name.size();
      out += static_cast<char>(dot - from) + name.substr(from, dot - from);
      from = dot + 1;
    }
    return out + '\0';
  }

  base::Fd open(int kind, std::uint16_t port) {
    base::Fd fd(::socket(AF_INET, kind | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(port);
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) return {};
    socklen_t size = sizeof at;
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    return fd;
  }

  void run() {
    while (true) {
      pollfd waiting[] = {
          {bell_.get(), POLLIN, 0}, {udp_.get(), POLLIN, 0}, {tcp_.get(), POLLIN, 0}};
      if (::poll(waiting, 3, -1) < 0) continue;
      if (waiting[0].revents != 0) return;
      if (waiting[1].revents != 0) serve_udp();
      if (waiting[2].revents != 0) serve_tcp();
    }
  }

  // The bytes to send back; none for silence.
  std::string answer_to(const std::string& query, bool over_tcp) {
    if (query.size() < 17) return "";
    std::string name;
    std::size_t at = 12;
    while (at < query.size() && query[at] != 0) {
      const auto length = static_cast<std::size_t>(query[at]);
      name += (name.empty() ? "" : ".") + query.substr(at + 1, length);
      at += length + 1;
    }
    if (at + 5 > query.size()) return "";
    const int type =
        static_cast<unsigned char>(query[at + 1]) << 8 | static_cast<unsigned char>(query[at + 2]);
    const auto id = static_cast<std::uint16_t>(static_cast<unsigned char>(query[0]) << 8 |
                                               static_cast<unsigned char>(query[1]));
    const std::lock_guard lock(mutex_);
    ++asked_[{name, type}];
    if (over_tcp) ++over_tcp_;
    const auto known = answers_.find({name, type});
    const Answer answer = known == answers_.end() ? Answer{.rcode = kNxdomain} : known->second;
    if (answer.silent) return "";
    std::string out = message(id, query.substr(12, at + 5 - 12), answer, over_tcp);
    if (answer.garbage) out.resize(out.size() - 3);
    return out;
  }

  void serve_udp() {
    char bytes[1500];
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t got =
        ::recvfrom(udp_.get(), bytes, sizeof bytes, 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (got <= 0) return;
    const std::string answer = answer_to({bytes, static_cast<std::size_t>(got)}, false);
    if (answer.empty()) return;
    ::sendto(udp_.get(), answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
  }

  void serve_tcp() {
    const base::Fd peer(::accept4(tcp_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    unsigned char length[2];
    if (::recv(peer.get(), length, 2, MSG_WAITALL) != 2) return;
    std::string query(static_cast<std::size_t>(length[0] << 8 | length[1]), '\0');
    if (::recv(peer.get(), query.data(), query.size(), MSG_WAITALL) <= 0) return;
    const std::string answer = answer_to(query, true);
    const std::string framed = u16(static_cast<std::uint16_t>(answer.size())) + answer;
    ::send(peer.get(), framed.data(), framed.size(), MSG_NOSIGNAL);
    char rest;
    ::recv(peer.get(), &rest, 1, 0);  // until the other side is done with it
  }

  base::Fd bell_;
  base::Fd udp_;
  base::Fd tcp_;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, Answer> answers_;
  std::map<std::pair<std::string, int>, int> asked_;
  std::atomic<int> over_tcp_{0};
  std::thread thread_;
};

}  // namespace pickd::nettests
