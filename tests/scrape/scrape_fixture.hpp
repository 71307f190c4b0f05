// A scraper on a reactor of its own, endpoints in a table, and a listener that remembers.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <algorithm>
#include <map>

#include "daemon/base/clock.hpp"
#include "daemon/base/log.hpp"
#include "daemon/scrape/scraper.hpp"
#include "tests/endpoints/table_fixture.hpp"
#include "tests/net/http/client_fixture.hpp"

namespace pickd::scrape::test {

using net::http::test::Peer;
using net::http::test::ScriptServer;

// A page as vLLM writes it.
inline std::string vllm_page(int waiting, int running, const std::string& labels = "") {
  const std::string all = "{engine=\"0\",model_name=\"m\"" + labels + "} ";
  return "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting" + all +
         std::to_string(waiting) + "\nvllm:num_requests_running" + all + std::to_string(running) +
         "\nvllm:kv_cache_usage_perc" + all + "0.25\n";
}

struct Listener final : ScrapeListener {
  struct Told {
    int sent = 0;
    int ok = 0;
    int unreadable = 0;
    int failed = 0;
    endpoints::EngineFacts facts;
    std::string engine;
    std::string words;
  };

  void scrape_sent(std::uint16_t id) override { change(id).sent += 1; }
  endpoints::LoadNotes scrape_ok(std::uint16_t id, const endpoints::EngineFacts& facts,
                                 std::string_view engine, std::uint64_t) override {
    Told& one = change(id);
    one.facts = facts;
    one.engine = engine;
    one.ok += 1;
    return {};
  }
  void scrape_unreadable(std::uint16_t id, const std::string& words, std::uint64_t) override {
    Told& one = change(id);
    one.words = words;
    one.unreadable += 1;
  }
  void scrape_failed(std::uint16_t id, const std::string& words, std::uint64_t) override {
    Told& one = change(id);
    one.words = words;
    one.failed += 1;
  }
  std::uint64_t probe_tick(std::uint16_t id, std::uint64_t last_tick,
                           std::uint32_t interval_ticks) override {
    return last_tick + (rare.contains(id) ? 1'000'000 : interval_ticks);
  }

  Told& change(std::uint16_t id) { return told[id]; }
  std::map<std::uint16_t, Told> told;
  std::map<std::uint16_t, bool> rare;  // asked again in half a day only
};

// Log lines of level warn and info.
class LogLines {
 public:
  LogLines() : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<Sink>();
    sink_ = sink.get();
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", std::move(sink)));
  }
  ~LogLines() { spdlog::set_default_logger(before_); }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;
  int count(const std::string& words) const {
    return static_cast<int>(std::count_if(
        sink_->lines.begin(), sink_->lines.end(),
        [&](const std::string& line) { return line.find(words) != std::string::npos; }));
  }
  std::string text() const {
    std::string all;
    for (const std::string& line : sink_->lines) all += line + "\n";
    return all;
  }

 private:
  struct Sink final : spdlog::sinks::base_sink<std::mutex> {
    void sink_it_(const spdlog::details::log_msg& message) override {
      lines.emplace_back(message.payload.data(), message.payload.size());
    }
    void flush_() override {}
    std::vector<std::string> lines;
  };
  std::shared_ptr<spdlog::logger> before_;
  Sink* sink_ = nullptr;
};

// What it reads of the scraper's state it reads on the reactor's thread.
class ScrapeTest : public endpoints::test::EndpointTableTest {
 protected:
  ScrapeTest() : EndpointTableTest(64) {
    config_.interval_ms = 100;
    config_.timeout_ms = 60'000;  // none that a busy machine could reach
    config_.connect_timeout_ms = 60'000;
  }
  ~ScrapeTest() override {
    loop_.run([this] { scraper_.reset(); });
  }

  void put(const std::string& name, const ScriptServer& server,
           std::uint32_t rank = abi::kUnknown32) {
    endpoints::EndpointSpec made =
        endpoints::test::spec(name, "127.0.0.1:" + std::to_string(server.port()));
    made.rank = rank;
    specs_.push_back(made);
  }
  // The endpoints that were put, and a scraper of them; `before` it asks the first of them.
  void go(const std::function<void()>& before = [] {}) {
    loop_.run([this, &before] {
      ASSERT_TRUE(table_.replace(specs_, "file", kTick).ok());
      before();
      auto made =
          Scraper::create(config_, {&loop_.reactor(), nullptr, &store_, &listener_, records_.get(),
                                    row_, [] { return base::monotonic_ns() / abi::kTickNs; }, 1});
      ASSERT_TRUE(made.ok()) << made.error().text;
      scraper_ = std::move(*made);
      scraper_->follow();
    });
  }
  // Waits until `reached` holds, on the reactor's thread, between its turns.
  void until(const std::function<bool()>& reached) {
    for (bool there = false; !there;) {
      loop_.run([&] { there = reached(); });
      if (!there) std::this_thread::yield();
    }
  }
  Listener::Told& of(const std::string& name) { return listener_.told[endpoint(name).id]; }
  std::uint64_t counter(abi::Counter counter) const {
    return row_[static_cast<std::uint32_t>(counter)].load();
  }

  config::ScrapeConfig config_ = config::Config().scrape;
  std::vector<endpoints::EndpointSpec> specs_;
  abi::Word row_[abi::kCountersMax]{};
  Listener listener_;
  net::http::test::ReactorThread loop_;
  std::unique_ptr<Scraper> scraper_;
};

}  // namespace pickd::scrape::test
