// ScrapeListener: who is told what scrapes say, one endpoint at a time. The daemon's is
// endpoints::EngineWatch; words and rules are explained there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/endpoints/engine_facts.hpp"
#include "daemon/endpoints/told_load.hpp"

namespace pickd::scrape {

class ScrapeListener {
 public:
  virtual ~ScrapeListener() = default;
  virtual void scrape_sent(std::uint16_t id) = 0;
  // `engine`: whose names the page has.
  virtual endpoints::LoadNotes scrape_ok(std::uint16_t id, const endpoints::EngineFacts& facts,
                                         std::string_view engine, std::uint64_t tick) = 0;
  // `words`: what is wrong, for people; empty where no page was asked for and it lives.
  virtual void scrape_unreadable(std::uint16_t id, const std::string& words,
                                 std::uint64_t tick) = 0;
  virtual void scrape_failed(std::uint16_t id, const std::string& words, std::uint64_t tick) = 0;
  virtual std::uint64_t probe_tick(std::uint16_t id, std::uint64_t last_tick,
                                   std::uint32_t interval_ticks) = 0;
};

}  // namespace pickd::scrape
