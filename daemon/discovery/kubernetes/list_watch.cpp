#include "daemon/discovery/kubernetes/list_watch.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/base/clock.hpp"
#include "daemon/base/random.hpp"
#include "daemon/discovery/kubernetes/objects.hpp"

namespace pickd::discovery::kubernetes {

namespace {

using nlohmann::json;

constexpr std::uint64_t kMsInNs = 1'000'000;
constexpr std::uint32_t kQuietExtraMs = 30'000;
constexpr std::uint32_t kDoublingsMax = 16;
constexpr std::size_t kErrorBytesMax = 16 * 1024;
constexpr std::uint64_t kShortNs = 5'000'000'000;
constexpr int kGone = 410;
constexpr std::uint32_t kPagesMax = 1000;  // of a list; some may be empty
// Beginnings, ends, keys and values. A page of nothing but "[]" would be 20 times its size.
constexpr std::size_t kElementsMax = 2'000'000;
constexpr int kDepthMax = 64;

// Discarded, as what is no JSON, when it has more elements, or deeper ones, than anything that is
// meant.
// What the callback refuses is not built.
json parse(std::string_view text) {
  std::size_t elements = 0;
  const auto count = [&elements](int depth, json::parse_event_t, const json&) {
    elements = depth > kDepthMax ? kElementsMax + 1 : elements + 1;
    return elements <= kElementsMax;
  };
  json parsed = json::parse(text, count, false);
  if (elements > kElementsMax) return json(json::value_t::discarded);
  return parsed;
}

}  // namespace

ListWatch::ListWatch(net::Reactor& reactor, const net::http::Url& server,
                     net::http::ClientOptions client, ListWatchOptions options,
                     ListWatchHooks hooks)
    : reactor_(reactor),
      client_(reactor, server, std::move(client)),
      options_(std::move(options)),
      hooks_(std::move(hooks)) {}

ListWatch::~ListWatch() {
  reactor_.cancel(timer_);
  reactor_.cancel(steady_);
}

void ListWatch::start() { again(0, true); }

std::string ListWatch::target(const std::string& more) const {
  std::string out = options_.path + "?" + more;
  if (!options_.query.empty()) out += "&" + options_.query;
  return out;
}

void ListWatch::list() {
  doing_ = Doing::kListing;
  net::http::Request request;
  request.target = target("limit=" + std::to_string(kPageObjects) +
                          (more_.empty() ? "" : "&continue=" + encoded(more_)));
  request.accept = "application/json";
  request.idle_timeout_ms = options_.list_timeout_ms;
  request.total_timeout_ms = options_.list_timeout_ms;
  request.body_bytes_max = kPageBytesMax;
  buffer_.clear();
  complaint_.clear();
  client_.get(request, *this);
}

void ListWatch::watch() {
  doing_ = Doing::kWatching;
  told_any_ = false;
  watch_began_ns_ = base::monotonic_ns();
  // Spread over a quarter, so that the watches of a fleet do not end together.
  const std::uint32_t spread_s = std::max<std::uint32_t>(1, options_.watch_s / 4);
  const auto seconds = options_.watch_s + static_cast<std::uint32_t>(base::random_u64() % spread_s);
  net::http::Request request;
  request.target = target("watch=1&allowWatchBookmarks=true&resourceVersion=" + encoded(version_) +
                          "&timeoutSeconds=" + std::to_string(seconds));
  request.accept = "application/json";
  request.idle_timeout_ms = std::uint64_t{seconds} * 1000 + kQuietExtraMs;
  request.total_timeout_ms = 0;
  request.body_bytes_max = 0;
  buffer_.clear();
  complaint_.clear();
  client_.get(request, *this);
  reactor_.cancel(steady_);
  steady_ = reactor_.after(kShortNs, [this] {
    if (doing_ == Doing::kWatching && status_ == 200) over();
  });
}

void ListWatch::again(std::uint64_t delay_ms, bool from_list) {
  doing_ = Doing::kNothing;
  if (from_list) {
    more_.clear();
    listed_ = 0;
    pages_ = 0;
  }
  timer_ = reactor_.after(delay_ms * kMsInNs, [this, from_list] {
    timer_ = 0;
    if (from_list) {
      hooks_.list_begins();
      list();
    } else {
      watch();
    }
  });
}

void ListWatch::fail(const std::string& why, bool from_list) {
  troubled_ = true;
  list_troubled_ = doing_ == Doing::kListing;
  again(pause_ms(std::max(failures_++, too_old_)), from_list);
  hooks_.trouble(why);
}

// Twice as long with each time; between half of it and all, so that a fleet does not ask in step.
std::uint64_t ListWatch::pause_ms(std::uint32_t times) const {
  const std::uint32_t doublings = std::min(times, kDoublingsMax);
  const std::uint64_t longest_ms =
      std::min(options_.back_off_min_ms << doublings, options_.back_off_max_ms);
  return longest_ms / 2 + base::random_u64() % (longest_ms / 2 + 1);
}

// What ended as it may is gone on with at once, unless the same just happened: a server may end
// everything as it may, again and again.
std::uint64_t ListWatch::soon_ms() {
  const std::uint64_t now_ns = base::monotonic_ns();
  const bool again = went_on_ns_ != 0 && now_ns - went_on_ns_ < kShortNs;
  went_on_ns_ = now_ns;
  return again ? pause_ms(0) : 0;
}

// Lists that can be read say nothing of watches that fail: those are well when one has lasted, or
// ended as it may.
void ListWatch::over() {
  failures_ = 0;
  if (!troubled_) return;
  troubled_ = false;
  hooks_.trouble("");
}

bool ListWatch::head(const net::http::Head& head) {
  status_ = head.status;
  return true;
}

bool ListWatch::body(std::string_view piece) {
  if (status_ != 200) {
    // A Status object that says why; its beginning is enough for the log.
    const std::size_t room = kErrorBytesMax - std::min(kErrorBytesMax, buffer_.size());
    buffer_ += piece.substr(0, room);
    return true;
  }
  if (doing_ == Doing::kListing) {
    buffer_ += piece;  // the client bounds the body
    return true;
  }
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    if (buffer_.size() + std::min(end, piece.size()) > kLineBytesMax) {
      complaint_ = "an event of more than " + std::to_string(kLineBytesMax) + " bytes";
      list_anew_ = true;
      return false;
    }
    buffer_ += piece.substr(0, end);
    if (end == std::string_view::npos) return true;
    piece.remove_prefix(end + 1);
    const std::string line = std::exchange(buffer_, {});
    if (!line.empty() && !take_line(line)) return false;
  }
  return true;
}

// One event of a watch. False ends the watch; `complaint_` and `list_anew_` say how to go on.
bool ListWatch::take_line(std::string_view line) {
  const json event = parse(line);
  const json* object = member(event, "object");
  if (object == nullptr || !object->is_object()) {
    complaint_ = "an event that is none";
    list_anew_ = true;
    return false;
  }
  const std::string type = text_at(event, "type");
  if (type == "ERROR") return take_error(*object);
  const std::string version = text_at(*object, "metadata", "resourceVersion");
  if (!version.empty()) version_ = version;
  told_any_ = true;
  too_old_ = 0;
  if (type == "ADDED" || type == "MODIFIED") hooks_.changed(*object);
  if (type == "DELETED") hooks_.deleted(*object);
  return true;  // a bookmark is its version; what else there may be some day is no matter of ours
}

bool ListWatch::take_error(const json& status) {
  list_anew_ = true;
  if (number_at(status, "code") == kGone) return false;  // ordinary: the version is too old
  complaint_ = "the watch ended: " + printable(text_at(status, "message"));
  return false;
}

void ListWatch::take_page() {
  const json page = parse(buffer_);
  buffer_ = {};
  const json* items = member(page, "items");
  const std::string version = text_at(page, "metadata", "resourceVersion");
  // An empty list is `"items": []` or null.
  const bool whole =
      page.is_object() && (items == nullptr || items->is_array() || items->is_null());
  if (!whole || version.empty()) return fail("the list is not one of Kubernetes", true);
  more_ = text_at(page, "metadata", "continue");
  const std::size_t count = items == nullptr || !items->is_array() ? 0 : items->size();
  listed_ += count;
  ++pages_;
  if (listed_ > kObjectsMax || (!more_.empty() && pages_ == kPagesMax)) {
    return fail("the list has more than " + std::to_string(kObjectsMax) + " objects or " +
                    std::to_string(kPagesMax) + " pages; choose fewer by their labels",
                true);
  }
  for (std::size_t at = 0; at < count; ++at) hooks_.found((*items)[at]);
  if (!more_.empty()) return list();
  version_ = version;
  if (list_troubled_) over();
  hooks_.list_ends();
  watch();
}

// What an answer that is not 200 means, and what would help.
std::string ListWatch::refusal(int status) const {
  const std::string said = text_at(parse(buffer_), "message");
  std::string out = "the API server answers " + std::to_string(status);
  if (!said.empty()) out += ": " + printable(said);
  if (status == 401) out += "; is the token file that of a service account?";
  if (status == 403) out += "; its service account needs get, list and watch on " + options_.path;
  if (status == 404) out += "; there is no " + options_.path;
  return out;
}

void ListWatch::done(const net::http::Outcome& outcome) {
  const bool listing = doing_ == Doing::kListing;
  const bool list_anew = std::exchange(list_anew_, false);
  status_ = 0;
  if (outcome.status == kGone || (list_anew && complaint_.empty())) {
    // The version or the continue token is too old, which is ordinary, so at once; but a server may
    // say so of everything that it gives.
    if (too_old_++ == 0) return again(soon_ms(), true);
    return fail("the API server takes no version that it gave", true);
  }
  if (!complaint_.empty()) return fail(complaint_, listing || list_anew);
  if (!listing && outcome.status == 200) return watch_ended();
  if (outcome.failure != net::http::Failure::kNone) {
    return fail(outcome.text.empty() ? net::http::failure_name(outcome.failure) : outcome.text,
                listing);
  }
  if (outcome.status != 200) {
    if (outcome.status == 404 && hooks_.unknown) {
      again(pause_ms(failures_++), true);
      return hooks_.unknown();
    }
    return fail(refusal(outcome.status), listing);
  }
  take_page();
}

// However a watch ends that began well (its time is over, a proxy's limit, a restarted server), it
// is gone on with from the newest version. Those that end at once and told nothing get pauses
// between.
void ListWatch::watch_ended() {
  over();
  const bool lasted = base::monotonic_ns() - watch_began_ns_ >= kShortNs;
  if (lasted) too_old_ = 0;
  silent_ = told_any_ || lasted ? 0 : silent_ + 1;
  again(silent_ == 0 ? soon_ms() : pause_ms(silent_), false);
}

}  // namespace pickd::discovery::kubernetes
