// PageScrape: one metrics page, again and again: asks for it, has it read for each endpoint that it
// tells of, and says what came of it. Several endpoints share a page where one server answers for
// all ranks. When the next one is due is the scraper's word.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/base/random.hpp"
#include "daemon/config/config.hpp"
#include "daemon/net/http/http_client.hpp"
#include "daemon/net/reactor.hpp"
#include "daemon/scrape/listener.hpp"
#include "daemon/scrape/page_reader.hpp"
#include "daemon/scrape/verdict.hpp"
#include "daemon/state/counters.hpp"

namespace pickd::scrape {

// What all pages of a scraper share. Outlives them.
struct ScrapeContext {
  net::Reactor* reactor;
  ScrapeListener* listener;
  const abi::EndpointRecord* records;
  std::function<std::uint64_t()> tick_now;
  config::ScrapeConfig config;
  net::http::ClientOptions client;
  MetricSpecs specs;
  state::Counters counters;
  base::Random random;
  // Between pages; as many as ever ran at one time.
  std::vector<PageReader> idle_readers = {};
};

// One endpoint that a page tells of.
struct PageMember {
  std::uint16_t id = 0;
  std::uint32_t rank = abi::kUnknown32;
  std::string name;
  std::string engine;
  std::uint32_t generation = 0;  // of the record when the running scrape was sent
};

class PageScrape final : net::http::ResponseSink {
 public:
  PageScrape(ScrapeContext& context, const net::http::Url& url);
  ~PageScrape() override;
  PageScrape(const PageScrape&) = delete;
  PageScrape& operator=(const PageScrape&) = delete;

  // Who is told from now on. A scrape that runs is for those that it was sent for.
  void set_members(std::vector<PageMember> members);
  // The first one, after `delay_ns`; the others follow by themselves.
  void start(std::uint64_t delay_ns);

 private:
  enum class Stage : std::uint8_t { kIdle, kHealth, kPage };

  void begin();
  void ask(Stage stage);
  void take_readers();
  void give_readers_back();

  bool head(const net::http::Head& head) override;
  bool body(std::string_view piece) override;
  void done(const net::http::Outcome& outcome) override;

  void read_page();
  void end(Verdict verdict, const std::string& reason, const std::string& text);
  bool same(const PageMember& member) const;
  void tell(const PageMember& member, const PageFacts& facts);
  void say(const std::string& reason, const std::string& text);
  std::string who() const;
  void schedule();

  ScrapeContext* context_;
  net::http::HttpClient client_;
  bool has_page_;
  std::string target_;  // of the page
  std::vector<PageMember> members_;
  std::vector<PageMember> asked_;  // for whom the running scrape was sent
  std::vector<PageReader> readers_;
  Stage stage_ = Stage::kIdle;
  bool is_page_ = false;  // the head says that a page follows
  net::Reactor::TimerId timer_ = 0;
  std::uint64_t began_ns_ = 0;
  std::uint64_t began_tick_ = 0;

  std::string said_;            // the reason that was logged last; empty: good
  std::uint64_t said_ns_ = 0;   // when
  std::uint64_t failures_ = 0;  // since it was logged as good
};

}  // namespace pickd::scrape
