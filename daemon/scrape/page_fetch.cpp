#include "daemon/scrape/page_fetch.hpp"

#include <utility>

namespace pickd::scrape {

namespace {

std::string path_of(const std::string& path) {
  return path.substr(0, 1) == "/" ? path : "/" + path;
}

}  // namespace

PageFetch::PageFetch(ScrapeContext& context, const net::http::Url& url, std::function<void()> done)
    : context_(&context),
      client_(*context.reactor, url, context.client),
      done_(std::move(done)),
      // A URL of its own is read whatever path the others have.
      has_page_(!context.config.path.empty() || url.target != path_of(context.config.health_path)),
      target_(url.target) {}

PageFetch::~PageFetch() { give_readers_back(); }

void PageFetch::start(const std::vector<PageMember>& members) {
  members_ = &members;
  result_ = {};
  ask(context_->config.health_path.empty() ? Stage::kPage : Stage::kHealth);
}

void PageFetch::ask(Stage stage) {
  stage_ = stage;
  net::http::Request request;
  request.target = stage == Stage::kHealth ? path_of(context_->config.health_path) : target_;
  request.accept = stage == Stage::kHealth ? "*/*" : "text/plain;version=0.0.4, */*;q=0.1";
  request.idle_timeout_ms = 0;  // the whole time is short enough
  request.total_timeout_ms = context_->config.timeout_ms;
  request.body_bytes_max = context_->config.page_bytes_max;
  client_.get(request, *this);
}

void PageFetch::take_readers() {
  for (const PageMember& member : *members_) {
    std::vector<PageReader>& idle = context_->idle_readers;
    if (idle.empty()) {
      readers_.emplace_back(context_->specs);
    } else {
      readers_.push_back(std::move(idle.back()));
      idle.pop_back();
    }
    readers_.back().begin(member.engine.empty() ? context_->config.engine : member.engine,
                          member.rank);
  }
}

void PageFetch::give_readers_back() {
  for (PageReader& reader : readers_) context_->idle_readers.push_back(std::move(reader));
  readers_.clear();
}

bool PageFetch::head(const net::http::Head& head) {
  const bool is_page = stage_ == Stage::kPage && head.status >= 200 && head.status < 300;
  if (is_page) take_readers();
  return true;
}

bool PageFetch::body(std::string_view piece) {
  for (PageReader& reader : readers_) reader.feed(piece);
  return true;
}

void PageFetch::done(const net::http::Outcome& outcome) {
  const Judged judged = judge(outcome, stage_ == Stage::kHealth);
  if (judged.verdict != Verdict::kGood) {
    context_->counters.add(judged.counter);
    return end(judged.verdict, judged.reason, outcome.text);
  }
  if (stage_ == Stage::kHealth) {
    if (has_page_) return ask(Stage::kPage);
    return end(Verdict::kAlive, "", "");
  }
  read_page();
}

void PageFetch::read_page() {
  std::string_view refused;
  bool known = false;
  for (PageReader& reader : readers_) {
    result_.pages.push_back(reader.finish());
    refused = result_.pages.back().refused;
    known = known || !result_.pages.back().engine.empty();
  }
  if (!result_.pages.empty())
    context_->counters.add(abi::Counter::scrape_bad_lines, result_.pages.front().bad_lines);
  if (refused.empty() && known) {
    context_->counters.add(abi::Counter::scrapes);
    return end(Verdict::kGood, "", "");
  }
  context_->counters.add(abi::Counter::scrapes_unreadable);
  const std::string reason =
      refused.empty() ? "no metrics of an engine that is known" : std::string(refused);
  end(Verdict::kAlive, reason, client_.url().text() + ": " + reason);
}

void PageFetch::end(Verdict verdict, const std::string& reason, const std::string& text) {
  stage_ = Stage::kIdle;
  give_readers_back();
  result_.verdict = verdict;
  result_.reason = reason;
  result_.text = text;
  done_();
}

}  // namespace pickd::scrape
