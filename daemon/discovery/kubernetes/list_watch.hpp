// List and watch: one collection of the Kubernetes API, kept up to date: listed page by page, then
// watched from the version of the list, resumed from the newest version after every end of a watch,
// listed anew when that version is too old.
//
// Reactor thread only; hooks run there and may not destroy the object. Bounded: a page and a line
// have a greatest size. Knows HTTP and the envelope of lists and events; what the objects mean is
// the hooks' matter. While the server cannot be reached nothing is told but trouble.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "daemon/net/http/http_client.hpp"
#include "daemon/net/reactor.hpp"

namespace pickd::discovery::kubernetes {

inline constexpr std::size_t kPageBytesMax = 32U << 20;
inline constexpr std::size_t kLineBytesMax = 8U << 20;
inline constexpr std::uint32_t kPageObjects = 100;
inline constexpr std::size_t kObjectsMax = 16'384;  // of a collection

struct ListWatchOptions {
  std::string path;   // "/api/v1/namespaces/ns/pods"
  std::string query;  // selectors, encoded: "labelSelector=app%3Dvllm"; may be empty
  std::uint64_t back_off_min_ms = 200;
  std::uint64_t back_off_max_ms = 30'000;
  // The server is asked to end a watch after about this long; one that says nothing for half a
  // minute longer is taken for dead.
  std::uint32_t watch_s = 120;
  std::uint64_t list_timeout_ms = 30'000;
};

struct ListWatchHooks {
  std::function<void()> list_begins;  // a new list: what it does not hold is gone
  std::function<void(const nlohmann::json& object)> found;  // in the list that began
  std::function<void()> list_ends;
  std::function<void(const nlohmann::json& object)> changed;  // added or modified
  std::function<void(const nlohmann::json& object)> deleted;
  std::function<void(const std::string& why)> trouble;  // empty: over
  // The server does not know the collection (404), most likely not its API group. In place of
  // trouble, and asked again after a pause all the same; empty: trouble.
  std::function<void()> unknown;
};

class ListWatch final : private net::http::ResponseSink {
 public:
  ListWatch(net::Reactor& reactor, const net::http::Url& server, net::http::ClientOptions client,
            ListWatchOptions options, ListWatchHooks hooks);
  ~ListWatch() override;

  void start();

 private:
  enum class Doing { kNothing, kListing, kWatching };

  void list();
  void watch();
  void again(std::uint64_t delay_ms, bool from_list);
  void fail(const std::string& why, bool from_list);
  std::uint64_t pause_ms(std::uint32_t times) const;
  std::uint64_t soon_ms();
  void watch_ended();
  std::string target(const std::string& more) const;
  bool take_line(std::string_view line);
  bool take_error(const nlohmann::json& status);
  void take_page();
  std::string refusal(int status) const;
  void over();  // what trouble there was

  bool head(const net::http::Head& head) override;
  bool body(std::string_view piece) override;
  void done(const net::http::Outcome& outcome) override;

  net::Reactor& reactor_;
  net::http::HttpClient client_;
  ListWatchOptions options_;
  ListWatchHooks hooks_;
  Doing doing_ = Doing::kNothing;
  std::string buffer_;       // a page, an error's body, or the line that has not ended
  std::string version_;      // of the newest thing told; a watch goes on from here
  std::string more_;         // the token of the next page
  std::size_t listed_ = 0;   // objects, by the list that runs
  std::uint32_t pages_ = 0;  // of it
  std::string complaint_;    // why the sink ended the exchange
  int status_ = 0;           // of the answer that is coming
  bool list_anew_ = false;
  bool told_any_ = false;  // by the watch that runs
  bool troubled_ = false;
  bool list_troubled_ = false;  // by a list
  std::uint32_t failures_ = 0;  // in a row
  std::uint32_t too_old_ = 0;   // versions in a row that the server gave and did not take
  std::uint32_t silent_ = 0;    // watches in a row that ended at once and told nothing
  std::uint64_t watch_began_ns_ = 0;
  std::uint64_t went_on_ns_ = 0;  // when soon_ms() was asked last
  net::Reactor::TimerId timer_ = 0;
  net::Reactor::TimerId steady_ = 0;  // since the watch that runs began
};

}  // namespace pickd::discovery::kubernetes
