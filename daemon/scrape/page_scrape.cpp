#include "daemon/scrape/page_scrape.hpp"

#include <algorithm>

#include "daemon/base/clock.hpp"
#include "daemon/base/log.hpp"

namespace pickd::scrape {

namespace {

constexpr std::uint64_t kMillisecondNs = 1'000'000;
// An engine that fails now this way, now that, is worth a line now and then, not one a scrape.
constexpr std::uint64_t kSayEveryNs = 10'000 * kMillisecondNs;

std::uint32_t generation_of(const abi::EndpointRecord& record) {
  return abi::LifeWord{record.life.load(std::memory_order_relaxed)}.generation();
}

std::string path_of(const std::string& path) {
  return path.substr(0, 1) == "/" ? path : "/" + path;
}

}  // namespace

PageScrape::PageScrape(ScrapeContext& context, const net::http::Url& url)
    : context_(&context),
      client_(*context.reactor, url, context.client),
      // A URL of its own is read whatever path the others have.
      has_page_(!context.config.path.empty() || url.target != path_of(context.config.health_path)),
      target_(url.target) {}

PageScrape::~PageScrape() {
  if (timer_ != 0) context_->reactor->cancel(timer_);
  give_readers_back();
}

void PageScrape::set_members(std::vector<PageMember> members) { members_ = std::move(members); }

void PageScrape::start(std::uint64_t delay_ns) {
  timer_ = context_->reactor->after(delay_ns, [this] {
    timer_ = 0;
    begin();
  });
}

void PageScrape::begin() {
  began_ns_ = base::monotonic_ns();
  began_tick_ = context_->tick_now();
  asked_ = members_;
  for (PageMember& member : asked_) {
    member.generation = generation_of(context_->records[member.id]);
    context_->listener->scrape_sent(member.id);
  }
  ask(context_->config.health_path.empty() ? Stage::kPage : Stage::kHealth);
}

void PageScrape::ask(Stage stage) {
  stage_ = stage;
  is_page_ = false;
  net::http::Request request;
  request.target = stage == Stage::kHealth ? path_of(context_->config.health_path) : target_;
  request.accept = stage == Stage::kHealth ? "*/*" : "text/plain;version=0.0.4, */*;q=0.1";
  request.idle_timeout_ms = 0;  // the whole time is short enough
  request.total_timeout_ms = context_->config.timeout_ms;
  request.body_bytes_max = context_->config.page_bytes_max;
  client_.get(request, *this);
}

void PageScrape::take_readers() {
  for (const PageMember& member : asked_) {
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

void PageScrape::give_readers_back() {
  for (PageReader& reader : readers_) context_->idle_readers.push_back(std::move(reader));
  readers_.clear();
}

bool PageScrape::head(const net::http::Head& head) {
  is_page_ = stage_ == Stage::kPage && head.status >= 200 && head.status < 300;
  if (is_page_) take_readers();
  return true;
}

bool PageScrape::body(std::string_view piece) {
  for (PageReader& reader : readers_) reader.feed(piece);
  return true;
}

void PageScrape::done(const net::http::Outcome& outcome) {
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

bool PageScrape::same(const PageMember& member) const {
  const abi::EndpointRecord& record = context_->records[member.id];
  return generation_of(record) == member.generation &&
         record.state.load(std::memory_order_relaxed) !=
             static_cast<std::uint32_t>(abi::EndpointState::kFree);
}

void PageScrape::tell(const PageMember& member, const PageFacts& facts) {
  const endpoints::LoadNotes notes =
      context_->listener->scrape_ok(member.id, facts.facts, facts.engine, context_->tick_now());
  if (!notes.restarted) return;
  context_->counters.add(abi::Counter::engines_restarted);
  spdlog::info("endpoint \"{}\": its engine restarted; what was known of it is forgotten",
               member.name);
}

void PageScrape::read_page() {
  std::string_view refused;
  bool known = false;
  for (std::size_t at = 0; at < asked_.size() && at < readers_.size(); ++at) {
    const PageFacts facts = readers_[at].finish();
    if (at == 0) context_->counters.add(abi::Counter::scrape_bad_lines, facts.bad_lines);
    refused = facts.refused;
    known = known || !facts.engine.empty();
    if (!refused.empty() || facts.engine.empty()) continue;
    if (same(asked_[at])) {
      tell(asked_[at], facts);
    } else {
      context_->counters.add(abi::Counter::scrapes_dropped);
    }
  }
  if (refused.empty() && known) {
    context_->counters.add(abi::Counter::scrapes);
    return end(Verdict::kGood, "", "");
  }
  context_->counters.add(abi::Counter::scrapes_unreadable);
  const std::string reason =
      refused.empty() ? "no metrics of an engine that is known" : std::string(refused);
  end(Verdict::kAlive, reason, client_.url().text() + ": " + reason);
}

void PageScrape::end(Verdict verdict, const std::string& reason, const std::string& text) {
  stage_ = Stage::kIdle;
  give_readers_back();
  const std::uint64_t tick = context_->tick_now();
  for (const PageMember& member : asked_) {
    if (verdict == Verdict::kGood) break;  // told one by one
    if (!same(member)) {
      context_->counters.add(abi::Counter::scrapes_dropped);
    } else if (verdict == Verdict::kAlive) {
      context_->listener->scrape_unreadable(member.id, reason, tick);
    } else {
      context_->listener->scrape_failed(member.id, reason, tick);
    }
  }
  say(reason, text);
  schedule();
}

std::string PageScrape::who() const {
  if (members_.empty()) return client_.url().text();
  std::string words = "endpoint \"" + members_.front().name + "\"";
  if (members_.size() > 1) words += " and " + std::to_string(members_.size() - 1) + " more";
  return words;
}

// Once a change of reason, not once a scrape.
void PageScrape::say(const std::string& reason, const std::string& text) {
  if (!reason.empty()) ++failures_;
  const std::uint64_t now_ns = base::monotonic_ns();
  if (reason != said_ && (said_ns_ == 0 || now_ns - said_ns_ >= kSayEveryNs)) {
    if (reason.empty()) {
      spdlog::info("{}: scraped again, after {} scrapes without load", who(), failures_);
    } else {
      spdlog::warn("{}: not scraped: {}", who(), text);
    }
    said_ = reason;
    said_ns_ = now_ns;
  }
  if (said_.empty() && reason.empty()) failures_ = 0;
}

void PageScrape::schedule() {
  const std::uint64_t interval_ns = context_->config.interval_ms * kMillisecondNs;
  const auto interval_ticks =
      static_cast<std::uint32_t>(std::max<std::uint64_t>(1, interval_ns / abi::kTickNs));
  // A tenth up or down, so that no two engines stay in step with each other or with anything else.
  const auto jitter_ns = [this](std::uint64_t span_ns) {
    return span_ns / 10 * context_->random.below(1 << 16) >> 16;
  };
  const std::uint64_t now_ns = base::monotonic_ns();
  std::uint64_t due_ns = began_ns_ + interval_ns - interval_ns / 10 + 2 * jitter_ns(interval_ns);
  std::uint64_t probe_tick = UINT64_MAX;
  for (const PageMember& member : members_)
    probe_tick = std::min(probe_tick,
                          context_->listener->probe_tick(member.id, began_tick_, interval_ticks));
  if (probe_tick != UINT64_MAX && probe_tick != began_tick_ + interval_ticks) {
    const std::uint64_t wait_ns =
        probe_tick > began_tick_ ? (probe_tick - began_tick_) * abi::kTickNs : 0;
    due_ns = began_ns_ + wait_ns + jitter_ns(wait_ns);
  }
  // One that answers as late as this is not asked again at once.
  due_ns = std::max(due_ns, now_ns + interval_ns / 4);
  start(due_ns - now_ns);
}

}  // namespace pickd::scrape
