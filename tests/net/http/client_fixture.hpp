// A reactor, a client and a sink that remembers, for tests over real sockets.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/net/http/bearer_token.hpp"
#include "daemon/net/http/http_client.hpp"
#include "daemon/net/http/tls.hpp"
#include "tests/net/http/script_server.hpp"

namespace pickd::net::http::test {

struct Recorder final : ResponseSink {
  bool head(const Head& head) override {
    ++heads;
    status = head.status;
    return true;
  }
  bool body(std::string_view piece) override {
    bytes += piece.size();
    largest = std::max(largest, piece.size());
    if (keep) text += piece;
    return !on_body || on_body();
  }
  void done(const Outcome& what) override {
    outcome = what;
    ++dones;
    if (on_done) on_done();
  }

  int heads = 0;
  int dones = 0;
  int status = 0;
  bool keep = true;
  std::string text;
  std::uint64_t bytes = 0;
  std::size_t largest = 0;
  std::optional<Outcome> outcome;
  std::function<bool()> on_body;
  std::function<void()> on_done;
};

// A reactor on a thread of its own, where everything that belongs to it is done.
class ReactorThread {
 public:
  ReactorThread() {
    auto made = make_epoll_reactor();
    if (!made) return;
    reactor_ = std::move(*made);
    reactor_->set_wake_handler([this] { run_tasks(); });
    thread_ = std::thread([this] { reactor_->run(); });
  }
  ~ReactorThread() {
    if (!thread_.joinable()) return;
    reactor_->stop();
    thread_.join();
  }
  ReactorThread(const ReactorThread&) = delete;
  ReactorThread& operator=(const ReactorThread&) = delete;

  Reactor& reactor() { return *reactor_; }
  // Runs `task` there and waits until it has returned.
  void run(std::function<void()> task) {
    std::promise<void> ran;
    {
      const std::lock_guard lock(mutex_);
      tasks_.emplace_back([&] {
        task();
        ran.set_value();
      });
    }
    reactor_->wake();
    ran.get_future().wait();
  }

 private:
  void run_tasks() {
    std::vector<std::function<void()>> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks) task();
  }

  std::unique_ptr<Reactor> reactor_;
  std::thread thread_;
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
};

class HttpClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // No limit that a busy machine could reach where a test does not mean to reach it.
    request_.idle_timeout_ms = 60'000;
    request_.total_timeout_ms = 0;
    options_.connect_timeout_ms = 60'000;
  }
  void TearDown() override {
    loop_.run([this] { client_.reset(); });
  }

  void make_client(const std::string& url) {
    auto parsed = parse_url(url);
    ASSERT_TRUE(parsed.ok()) << parsed.error().text;
    loop_.run([&] { client_ = std::make_unique<HttpClient>(loop_.reactor(), *parsed, options_); });
  }
  // One exchange, until it is done.
  Outcome ask(Recorder& sink) {
    std::promise<void> done;
    sink.on_done = [&done] { done.set_value(); };
    loop_.run([&] {
      client_->get(request_, sink);
      EXPECT_EQ(sink.dones, 0) << "the sink was called from inside get()";
      EXPECT_TRUE(client_->busy());
    });
    done.get_future().wait();
    loop_.run([&] { EXPECT_FALSE(client_->busy()); });
    EXPECT_EQ(sink.dones, 1);
    return sink.outcome.value_or(Outcome{});
  }
  Outcome ask() {
    Recorder sink;
    return ask(sink);
  }

  ReactorThread loop_;
  ClientOptions options_;
  Request request_;
  std::unique_ptr<HttpClient> client_;
};

}  // namespace pickd::net::http::test
