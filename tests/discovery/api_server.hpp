// A stand-in for a Kubernetes API server: real HTTP/1.1 on a loopback port, over TLS where it is
// given a certificate, lists in pages, watches
// in chunks from a resource version on, bookmarks, 410 Gone, tokens, and connections that break.
// Holds what a test puts there. A thread a connection.
#pragma once

#include <openssl/ssl.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "daemon/base/fd.hpp"
#include "tests/net/http/certificates.hpp"

namespace pickd::discovery::test {

class ApiServer {
 public:
  using Json = nlohmann::json;

  // With certificates, which must outlive it: over TLS.
  explicit ApiServer(const net::http::test::Certificates* certificates = nullptr);
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  std::string url() const {
    return (tls_ ? "https" : "http") + std::string("://127.0.0.1:") + std::to_string(port_);
  }

  // Makes a collection known; one that is not is 404.
  void serve(const std::string& path);
  void put(const std::string& path, Json object);  // added, or modified when the name is there
  void remove(const std::string& path, const std::string& name);

  void bookmark();      // to every watch
  void forget_past();   // every version before now is too old: 410 for those who come with one
  void expire_watch();  // the watches that run get an ERROR event with code 410
  void end_watches();   // in order, as after timeoutSeconds
  void cut_watches();   // as a proxy or a crash does
  void say(const std::string& bytes);  // these bytes as a line of every watch
  void need_token(const std::string& token);
  void answer(int status);  // to everything from now on; 0: as it should
  void cut_pages(bool on);  // lists end in the middle
  // What a server that means no good, or is broken, does from now on.
  enum class Lie {
    kNone,
    kEndlessList,     // every page is followed by another one
    kEventAndEnd,     // every watch tells of something, with an old version, and ends in order
    kEventAndExpire,  // and ends with "your version is too old"
    kNonsense         // every watch says what is no event
  };
  void lie(Lie lie, Json object = {});  // of this object

  int lists(const std::string& path) const { return count("L " + path); }
  int watches(const std::string& path) const { return count("W " + path); }  // that began
  int running_watches() const;
  int refused() const;                       // for their token
  std::vector<std::string> targets() const;  // of all requests

 private:
  struct Event {
    std::uint64_t version;
    std::string type;
    Json object;
  };
  struct Collection {
    std::map<std::string, Json> objects;
    std::vector<Event> events;
  };
  struct Query {
    std::string path;
    std::map<std::string, std::string> values;
  };

  // A connection; the thread that serves it is the only one that reads and writes.
  struct Line {
    int fd;
    SSL* ssl;  // nullptr: plain
    ssize_t read(char* to, std::size_t size) const;
    bool send(const std::string& bytes) const;
  };

  int count(const std::string& what) const;
  void accept_all();
  void serve_connection(int fd);
  void serve_line(const Line& line);
  bool respond(const Line& line, const std::string& head);
  bool respond_list(const Line& line, const Query& query);
  bool respond_watch(const Line& line, const Query& query);
  static bool matches(const Json& object, const Query& query);
  static Query parse_target(const std::string& target);
  static bool send_json(const Line& line, int status, const Json& body);
  static std::string chunk(const std::string& bytes);
  static Json status(int code, const std::string& message);

  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> tls_{nullptr, ::SSL_CTX_free};
  base::Fd listener_;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Collection> collections_;
  std::map<std::string, int> counts_;
  std::vector<std::string> targets_;
  std::uint64_t version_ = 1000;
  std::uint64_t oldest_ = 0;
  std::uint64_t bookmarks_ = 0;
  std::uint64_t expires_ = 0;
  std::uint64_t ends_ = 0;
  std::uint64_t cuts_ = 0;
  std::vector<std::string> said_;
  std::string token_;
  int status_ = 0;
  int refused_ = 0;
  int running_watches_ = 0;
  bool cut_pages_ = false;
  Lie lie_ = Lie::kNone;
  Json lie_object_;
  bool stopping_ = false;
  std::set<int> connections_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace pickd::discovery::test
