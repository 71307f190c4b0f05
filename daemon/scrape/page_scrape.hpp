// PageScrape: the metrics pages of an engine, again and again: has them fetched, joined and told to
// each endpoint that they are of, and says what came of it. Mostly it is one page; there are
// several where one endpoint stands for ranks with ports of their own. Several endpoints share a
// page where one server answers for all ranks. When the next one is due is the listener's word.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/scrape/page_fetch.hpp"
#include "daemon/scrape/scrape_context.hpp"

namespace pickd::scrape {

class PageScrape {
 public:
  // `urls`: at least one. They are asked at the same time, and the worst answer is that of all.
  PageScrape(ScrapeContext& context, const std::vector<net::http::Url>& urls);
  ~PageScrape();
  PageScrape(const PageScrape&) = delete;
  PageScrape& operator=(const PageScrape&) = delete;

  // Who is told from now on. A scrape that runs is for those that it was sent for.
  void set_members(std::vector<PageMember> members);
  // The first one, after `delay_ns`; the others follow by themselves.
  void start(std::uint64_t delay_ns);

 private:
  void begin();
  void fetched();
  void join();
  void tell_all(std::vector<PageFetch::Result>& results);
  void tell(const PageMember& member, const endpoints::EngineFacts& facts, std::string_view engine);
  void end(Verdict verdict, const std::string& reason, const std::string& text);
  bool same(const PageMember& member) const;
  void say(const std::string& reason, const std::string& text);
  std::string who() const;
  void schedule();

  ScrapeContext* context_;
  std::string first_url_;  // for people
  std::vector<std::unique_ptr<PageFetch>> fetches_;
  std::size_t open_ = 0;  // of the fetches
  std::vector<PageMember> members_;
  std::vector<PageMember> asked_;  // for whom the running scrape was sent
  net::Reactor::TimerId timer_ = 0;
  std::uint64_t began_ns_ = 0;
  std::uint64_t began_tick_ = 0;

  std::string said_;            // the reason that was logged last; empty: good
  std::uint64_t said_ns_ = 0;   // when
  std::uint64_t failures_ = 0;  // since it was logged as good
  bool unsteady_ = false;       // and said so
};

}  // namespace pickd::scrape
