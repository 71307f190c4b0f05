#include "daemon/scrape/page_scrape.hpp"

#include <algorithm>

#include "daemon/base/clock.hpp"
#include "daemon/base/log.hpp"
#include "daemon/scrape/join_facts.hpp"

namespace pickd::scrape {

namespace {

constexpr std::uint64_t kMillisecondNs = 1'000'000;
// An engine that fails now this way, now that, is worth a line now and then, not one a scrape.
constexpr std::uint64_t kSayEveryNs = 10'000 * kMillisecondNs;

std::uint32_t generation_of(const abi::EndpointRecord& record) {
  return abi::LifeWord{record.life.load(std::memory_order_relaxed)}.generation();
}

}  // namespace

PageScrape::PageScrape(ScrapeContext& context, const std::vector<net::http::Url>& urls)
    : context_(&context), first_url_(urls.front().text()) {
  for (const net::http::Url& url : urls)
    fetches_.push_back(std::make_unique<PageFetch>(context, url, [this] { fetched(); }));
}

PageScrape::~PageScrape() {
  if (timer_ != 0) context_->reactor->cancel(timer_);
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
  open_ = fetches_.size();
  for (const auto& fetch : fetches_) fetch->start(asked_);
}

void PageScrape::fetched() {
  if (--open_ == 0) join();
}

bool PageScrape::same(const PageMember& member) const {
  const abi::EndpointRecord& record = context_->records[member.id];
  return generation_of(record) == member.generation &&
         record.state.load(std::memory_order_relaxed) !=
             static_cast<std::uint32_t>(abi::EndpointState::kFree);
}

// A rank that does not answer makes its engine one that does not: the others cannot do its part,
// and a sum without it would be no sum.
void PageScrape::join() {
  std::vector<PageFetch::Result> results;
  for (const auto& fetch : fetches_) results.push_back(fetch->take_result());
  const auto worst =
      std::max_element(results.begin(), results.end(),
                       [](const auto& a, const auto& b) { return a.verdict < b.verdict; });
  if (worst->verdict == Verdict::kGood) tell_all(results);
  end(worst->verdict, worst->reason, worst->text);
}

void PageScrape::tell_all(std::vector<PageFetch::Result>& results) {
  for (std::size_t at = 0; at < asked_.size(); ++at) {
    std::vector<endpoints::EngineFacts> pages;
    for (PageFetch::Result& result : results) {
      if (!result.pages[at].engine.empty()) pages.push_back(std::move(result.pages[at].facts));
    }
    if (!same(asked_[at])) {
      context_->counters.add(abi::Counter::scrapes_dropped);
    } else if (pages.size() != results.size()) {
      // Read for several endpoints, it may be of another engine than one of them was said to be.
      context_->listener->scrape_unreadable(asked_[at].id, "no metrics of its engine",
                                            context_->tick_now());
    } else {
      tell(asked_[at], join_facts(std::move(pages)), results.front().pages[at].engine);
    }
  }
}

void PageScrape::tell(const PageMember& member, const endpoints::EngineFacts& facts,
                      std::string_view engine) {
  const endpoints::LoadNotes notes =
      context_->listener->scrape_ok(member.id, facts, engine, context_->tick_now());
  if (notes.unsteady != unsteady_ && (notes.unsteady || notes.restarted)) {
    unsteady_ = notes.unsteady;
    if (unsteady_)
      spdlog::warn(
          "endpoint \"{}\": another start of its engine with nearly every page; are there several "
          "engines behind its address? Taken for one until it has been steady for a minute",
          member.name);
  }
  if (!notes.restarted) return;
  context_->counters.add(abi::Counter::engines_restarted);
  spdlog::info("endpoint \"{}\": its engine restarted; what was known of it is forgotten",
               member.name);
}

void PageScrape::end(Verdict verdict, const std::string& reason, const std::string& text) {
  const std::uint64_t tick = context_->tick_now();
  for (const PageMember& member : asked_) {
    if (verdict == Verdict::kGood) break;  // told one by one
    if (!same(member)) {
      context_->counters.add(abi::Counter::scrapes_dropped);
    } else if (verdict == Verdict::kAlive) {
      context_->listener->scrape_unreadable(member.id, reason, tick);
    } else if (verdict == Verdict::kFailed) {
      context_->listener->scrape_failed(member.id, reason, tick);
    }
  }
  say(reason, text);
  schedule();
}

std::string PageScrape::who() const {
  if (members_.empty()) return first_url_;
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
