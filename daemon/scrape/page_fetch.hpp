// PageFetch: asks one server once for its health, where there is a path for it, and for its metrics
// page, which is read for each member while it comes. Over one kept connection, fetch after fetch.
// Says what it came to and nothing to anybody else: what follows from it is page_scrape.hpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/scrape/scrape_context.hpp"
#include "daemon/scrape/verdict.hpp"

namespace pickd::scrape {

class PageFetch final : net::http::ResponseSink {
 public:
  struct Result {
    Verdict verdict = Verdict::kFailed;
    std::string reason;            // as Judged::reason
    std::string text;              // for people
    std::vector<PageFacts> pages;  // with kGood: one a member, in their order
  };

  // `done` is called by the reactor's turn that ends a fetch, and may start the next one.
  PageFetch(ScrapeContext& context, const net::http::Url& url, std::function<void()> done);
  ~PageFetch() override;
  PageFetch(const PageFetch&) = delete;
  PageFetch& operator=(const PageFetch&) = delete;

  // Not while one runs. `members` must stay as they are until it is done.
  void start(const std::vector<PageMember>& members);
  // Of the fetch that is done; taken once.
  Result take_result() { return std::move(result_); }

 private:
  enum class Stage : std::uint8_t { kIdle, kHealth, kPage };

  void ask(Stage stage);
  void take_readers();
  void give_readers_back();

  bool head(const net::http::Head& head) override;
  bool body(std::string_view piece) override;
  void done(const net::http::Outcome& outcome) override;
  void read_page();
  void end(Verdict verdict, const std::string& reason, const std::string& text);

  ScrapeContext* context_;
  net::http::HttpClient client_;
  std::function<void()> done_;
  bool has_page_;
  std::string target_;  // of the page
  const std::vector<PageMember>* members_ = nullptr;
  std::vector<PageReader> readers_;
  Stage stage_ = Stage::kIdle;
  Result result_;
};

}  // namespace pickd::scrape
