// Engines: what the daemon learns of the engines by itself: it owns the scraper, the watch over
// their health, and the resolver that names go through.
//
// Control thread only. Runs from the reactor's timers; changes of the endpoints reach it through
// the topology store.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/base/allowance.hpp"
#include "daemon/base/result.hpp"
#include "daemon/config/config.hpp"
#include "daemon/control/engine_room.hpp"
#include "daemon/endpoints/endpoint_notes.hpp"
#include "daemon/endpoints/engine_watch.hpp"
#include "daemon/net/reactor.hpp"
#include "daemon/net/resolver.hpp"
#include "daemon/scrape/scraper.hpp"

namespace pickd::control {

class Engines final : scrape::ScrapeListener {
 public:
  // The others outlive it. Begins at once, with the reactor's next turn.
  static base::Result<std::unique_ptr<Engines>> create(const config::Config& config,
                                                       net::Reactor& reactor, EngineRoom& room,
                                                       endpoints::EndpointNotes& notes);
  ~Engines() override;

  net::Resolver* resolver() { return resolver_.get(); }  // nullptr: names cannot be looked up
  const endpoints::EngineWatch& watch() const { return *watch_; }

 private:
  Engines(net::Reactor& reactor, EngineRoom& room, endpoints::EndpointNotes& notes)
      : reactor_(&reactor), room_(&room), notes_(&notes) {}
  std::uint32_t generation_of(std::uint16_t id) const;
  void follow_soon();
  void follow();
  void turn();
  void turn_later();
  void say(const endpoints::EngineWatch::Change& change, const std::string& name);

  void scrape_sent(std::uint16_t id) override;
  endpoints::LoadNotes scrape_ok(std::uint16_t id, const endpoints::EngineFacts& facts,
                                 std::string_view engine, std::uint64_t tick) override;
  void scrape_unreadable(std::uint16_t id, const std::string& words, std::uint64_t tick) override;
  void scrape_failed(std::uint16_t id, const std::string& words, std::uint64_t tick) override;
  std::uint64_t probe_tick(std::uint16_t id, std::uint64_t last_tick,
                           std::uint32_t interval_ticks) override;

  // An endpoint that comes and goes all the time is worth a line now and then.
  static constexpr std::uint32_t kLinesAtOnce = 6;
  static constexpr std::uint64_t kLinePauseTicks = 200;  // 10 s
  struct Said {
    base::Allowance lines{kLinesAtOnce, kLinePauseTicks};
    std::uint32_t left_out = 0;
  };

  net::Reactor* reactor_;
  EngineRoom* room_;
  endpoints::EndpointNotes* notes_;
  std::unique_ptr<net::Resolver> resolver_;
  std::unique_ptr<endpoints::EngineWatch> watch_;
  std::unique_ptr<scrape::Scraper> scraper_;  // none: nobody is scraped
  std::vector<Said> said_;                    // by id
  net::Reactor::TimerId follow_timer_ = 0;
  net::Reactor::TimerId turn_timer_ = 0;
};

}  // namespace pickd::control
