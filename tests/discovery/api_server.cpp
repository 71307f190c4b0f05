#include "tests/discovery/api_server.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <csignal>
#include <stdexcept>

namespace pickd::discovery::test {

ApiServer::ApiServer(const net::http::test::Certificates* certificates)
    : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (certificates != nullptr) {
    tls_.reset(::SSL_CTX_new(::TLS_server_method()));
    if (::SSL_CTX_use_certificate(tls_.get(), certificates->leaf()) != 1 ||
        ::SSL_CTX_use_PrivateKey(tls_.get(), certificates->key()) != 1) {
      throw std::runtime_error("certificate");
    }
  }
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&at), size) != 0 ||
      ::listen(listener_.get(), 64) != 0) {
    throw std::runtime_error("bind");
  }
  ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &size);
  port_ = ntohs(at.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

ApiServer::~ApiServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const int fd : connections_) ::shutdown(fd, SHUT_RDWR);
  }
  changed_.notify_all();
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
}

void ApiServer::serve(const std::string& path) {
  const std::lock_guard lock(mutex_);
  collections_[path];
}

void ApiServer::put(const std::string& path, Json object) {
  {
    const std::lock_guard lock(mutex_);
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    const std::string name = object["metadata"]["name"];
    Collection& collection = collections_[path];
    const bool known = collection.objects.contains(name);
    collection.objects[name] = object;
    collection.events.push_back({version_, known ? "MODIFIED" : "ADDED", std::move(object)});
  }
  changed_.notify_all();
}

void ApiServer::remove(const std::string& path, const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    Collection& collection = collections_[path];
    Json object = collection.objects.at(name);
    collection.objects.erase(name);
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    collection.events.push_back({version_, "DELETED", std::move(object)});
  }
  changed_.notify_all();
}

void ApiServer::bookmark() {
  {
    const std::lock_guard lock(mutex_);
    ++version_;  // something happened in another collection
    ++bookmarks_;
  }
  changed_.notify_all();
}

void ApiServer::forget_past() {
  const std::lock_guard lock(mutex_);
  oldest_ = ++version_;
  for (auto& [path, collection] : collections_) collection.events.clear();
}

void ApiServer::expire_watch() {
  {
    const std::lock_guard lock(mutex_);
    ++expires_;
  }
  changed_.notify_all();
}

void ApiServer::end_watches() {
  {
    const std::lock_guard lock(mutex_);
    ++ends_;
  }
  changed_.notify_all();
}

void ApiServer::cut_watches() {
  {
    const std::lock_guard lock(mutex_);
    ++cuts_;
  }
  changed_.notify_all();
}

void ApiServer::say(const std::string& bytes) {
  {
    const std::lock_guard lock(mutex_);
    said_.push_back(bytes);
  }
  changed_.notify_all();
}

void ApiServer::need_token(const std::string& token) {
  const std::lock_guard lock(mutex_);
  token_ = token;
}

void ApiServer::answer(int status) {
  const std::lock_guard lock(mutex_);
  status_ = status;
}

void ApiServer::cut_pages(bool on) {
  const std::lock_guard lock(mutex_);
  cut_pages_ = on;
}

int ApiServer::running_watches() const {
  const std::lock_guard lock(mutex_);
  return running_watches_;
}

int ApiServer::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

std::vector<std::string> ApiServer::targets() const {
  const std::lock_guard lock(mutex_);
  return targets_;
}

int ApiServer::count(const std::string& what) const {
  const std::lock_guard lock(mutex_);
  const auto at = counts_.find(what);
  return at == counts_.end() ? 0 : at->second;
}

void ApiServer::accept_all() {
  while (true) {
    const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      if (fd >= 0) ::close(fd);
      return;
    }
    if (fd < 0) continue;
    connections_.insert(fd);
    threads_.emplace_back([this, fd] { serve_connection(fd); });
  }
}

void ApiServer::serve_connection(int fd) {
  // OpenSSL writes without MSG_NOSIGNAL. Blocked in this thread only: a child must not inherit it.
  sigset_t pipe;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  Line line{fd, tls_ ? ::SSL_new(tls_.get()) : nullptr};
  if (line.ssl != nullptr) ::SSL_set_fd(line.ssl, fd);
  if (line.ssl == nullptr || ::SSL_accept(line.ssl) == 1) serve_line(line);
  ::SSL_free(line.ssl);
  const std::lock_guard lock(mutex_);
  connections_.erase(fd);
  ::close(fd);
}

void ApiServer::serve_line(const Line& line) {
  std::string bytes;
  bool open = true;
  while (open) {
    std::size_t end;
    while ((end = bytes.find("\r\n\r\n")) == std::string::npos) {
      char piece[4096];
      const ssize_t got = line.read(piece, sizeof piece);
      if (got <= 0) return;
      bytes.append(piece, static_cast<std::size_t>(got));
    }
    open = respond(line, bytes.substr(0, end + 2));
    bytes.erase(0, end + 4);
  }
}

ssize_t ApiServer::Line::read(char* to, std::size_t size) const {
  return ssl == nullptr ? ::recv(fd, to, size, 0) : ::SSL_read(ssl, to, static_cast<int>(size));
}

bool ApiServer::Line::send(const std::string& bytes) const {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t sent =
        ssl == nullptr ? ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL)
                       : ::SSL_write(ssl, bytes.data() + at, static_cast<int>(bytes.size() - at));
    if (sent <= 0) return false;
    at += static_cast<std::size_t>(sent);
  }
  return true;
}

ApiServer::Query ApiServer::parse_target(const std::string& target) {
  const auto decode = [](const std::string& text) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (text[at] == '%' && at + 2 < text.size()) {
        out += static_cast<char>(std::stoi(text.substr(at + 1, 2), nullptr, 16));
        at += 2;
      } else {
        out += text[at];
      }
    }
    return out;
  };
  Query query;
  const std::size_t mark = target.find('?');
  query.path = decode(target.substr(0, mark));
  std::size_t from = mark;
  while (from != std::string::npos && from + 1 < target.size()) {
    const std::size_t end = target.find('&', from + 1);
    const std::string pair =
        target.substr(from + 1, end == std::string::npos ? end : end - from - 1);
    const std::size_t equals = pair.find('=');
    if (equals != std::string::npos)
      query.values[decode(pair.substr(0, equals))] = decode(pair.substr(equals + 1));
    from = end;
  }
  return query;
}

bool ApiServer::respond(const Line& line, const std::string& head) {
  const std::size_t space = head.find(' ');
  const std::string target = head.substr(space + 1, head.find(' ', space + 1) - space - 1);
  const Query query = parse_target(target);
  {
    const std::lock_guard lock(mutex_);
    targets_.push_back(target);
    if (!query.values.contains("watch")) ++counts_["L " + query.path];
    const bool known =
        token_.empty() || head.find("uthorization: Bearer " + token_ + "\r\n") != std::string::npos;
    if (!known) {
      ++refused_;
      return send_json(line, 401, status(401, "Unauthorized"));
    }
    if (status_ != 0) return send_json(line, status_, status(status_, "as the test wants it"));
    if (!collections_.contains(query.path))
      return send_json(line, 404, status(404, "the server could not find the requested resource"));
  }
  return query.values.contains("watch") ? respond_watch(line, query) : respond_list(line, query);
}

bool ApiServer::matches(const Json& object, const Query& query) {
  if (const auto field = query.values.find("fieldSelector"); field != query.values.end()) {
    const std::string name = object["metadata"]["name"];
    if (field->second != "metadata.name=" + name) return false;
  }
  const auto labels = query.values.find("labelSelector");
  if (labels == query.values.end()) return true;
  std::size_t from = 0;
  while (from <= labels->second.size()) {
    std::size_t end = labels->second.find(',', from);
    if (end == std::string::npos) end = labels->second.size();
    const std::string pair = labels->second.substr(from, end - from);
    const std::string key = pair.substr(0, pair.find('='));
    const Json has = object["metadata"].value("labels", Json::object());
    if (has.value(key, "") != pair.substr(pair.find('=') + 1)) return false;
    from = end + 1;
  }
  return true;
}

void ApiServer::lie(Lie lie, Json object) {
  const std::lock_guard lock(mutex_);
  lie_ = lie;
  lie_object_ = std::move(object);
}

bool ApiServer::respond_list(const Line& line, const Query& query) {
  Json page = {{"kind", "List"}, {"apiVersion", "v1"}, {"items", Json::array()}};
  bool cut = false;
  {
    const std::lock_guard lock(mutex_);
    cut = cut_pages_;
    const std::size_t limit = std::stoul(query.values.at("limit"));
    const auto token = query.values.find("continue");
    const std::string after = token == query.values.end() ? "" : token->second;
    page["metadata"]["resourceVersion"] = std::to_string(version_);
    for (const auto& [name, object] : collections_.at(query.path).objects) {
      if (name <= after || !matches(object, query)) continue;
      if (page["items"].size() == limit) {
        page["metadata"]["continue"] = page["items"].back()["metadata"]["name"];
        break;
      }
      page["items"].push_back(object);
    }
    if (lie_ == Lie::kEndlessList) {
      ++counts_["L endless"];
      page["items"] = Json::array();
      for (std::size_t at = 0; at < limit; ++at) {
        page["items"].push_back(lie_object_);
        page["items"].back()["metadata"]["name"] =
            std::to_string(counts_["L endless"]) + "-" + std::to_string(at);
      }
      page["metadata"]["continue"] = "more";
    }
  }
  if (!cut) return send_json(line, 200, page);
  const std::string body = page.dump();
  line.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
            std::to_string(body.size()) + "\r\n\r\n" + body.substr(0, body.size() / 2));
  return false;
}

bool ApiServer::respond_watch(const Line& line, const Query& query) {
  std::unique_lock lock(mutex_);
  std::uint64_t from = std::stoull(query.values.at("resourceVersion"));
  if (from < oldest_) {
    return send_json(line, 410, status(410, "too old resource version"));
  }
  std::uint64_t bookmarks = bookmarks_;
  const std::uint64_t ends = ends_;
  const std::uint64_t cuts = cuts_;
  const std::uint64_t expires = expires_;
  std::size_t said = said_.size();
  if (!line.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n")) {
    return false;
  }
  ++running_watches_;
  ++counts_["W " + query.path];
  bool open = true;
  while (open && !stopping_) {
    std::string lines;
    for (const Event& event : collections_.at(query.path).events) {
      if (event.version <= from || !matches(event.object, query)) continue;
      lines += Json{{"type", event.type}, {"object", event.object}}.dump() + "\n";
    }
    from = std::max(from, version_);
    if (bookmarks != bookmarks_) {
      bookmarks = bookmarks_;
      lines += Json{{"type", "BOOKMARK"},
                    {"object", {{"metadata", {{"resourceVersion", std::to_string(version_)}}}}}}
                   .dump() +
               "\n";
    }
    const bool lies = lie_ == Lie::kEventAndEnd || lie_ == Lie::kEventAndExpire;
    if (lie_ == Lie::kNonsense) lines += "nonsense\n";
    if (lies) lines += Json{{"type", "MODIFIED"}, {"object", lie_object_}}.dump() + "\n";
    for (; said < said_.size(); ++said) lines += said_[said] + "\n";
    if (expires != expires_ || lie_ == Lie::kEventAndExpire) {
      lines += Json{{"type", "ERROR"}, {"object", status(410, "too old resource version")}}.dump() +
               "\n";
    }
    // In two chunks, cut anywhere: a line is no chunk.
    const std::size_t half = lines.size() / 2;
    if (!lines.empty()) open = line.send(chunk(lines.substr(0, half)) + chunk(lines.substr(half)));
    if (cuts != cuts_) break;
    if (ends != ends_ || expires != expires_ || lies) {
      open = open && line.send("0\r\n\r\n");
      --running_watches_;
      return open;
    }
    changed_.wait(lock);
  }
  --running_watches_;
  return false;
}

bool ApiServer::send_json(const Line& line, int status, const Json& body) {
  const std::string text = body.dump();
  return line.send("HTTP/1.1 " + std::to_string(status) +
                   " Told\r\nContent-Type: application/json\r\nContent-Length: " +
                   std::to_string(text.size()) + "\r\n\r\n" + text);
}

std::string ApiServer::chunk(const std::string& bytes) {
  if (bytes.empty()) return "";
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return size + bytes + "\r\n";
}

ApiServer::Json ApiServer::status(int code, const std::string& message) {
  return {{"kind", "Status"}, {"apiVersion", "v1"}, {"code", code}, {"message", message}};
}

}  // namespace pickd::discovery::test
