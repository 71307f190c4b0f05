// Endpoint notes: what was last noticed of each endpoint, in words for people: pickctl endpoints,
// the log. Decides nothing. Control thread only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "abi/state_layout.hpp"

namespace pickd::endpoints {

struct EndpointNote {
  std::uint32_t scrape_failures = 0;  // in a row
  std::string last_failure;           // words for the newest of them
  std::string engine;                 // as its page told; empty: none was read
};

class EndpointNotes {
 public:
  // Of one generation: what was noticed of the engine before is forgotten.
  EndpointNote& note(std::uint32_t id, std::uint32_t generation);

  void scrape_ok(std::uint32_t id, std::uint32_t generation, std::string engine);
  void scrape_failed(std::uint32_t id, std::uint32_t generation, std::string words);

 private:
  struct Kept {
    std::uint32_t generation = 0;
    EndpointNote note;
  };
  std::vector<Kept> kept_;  // by id
};

// Why an endpoint gets no picks, or only when no other is ready; empty when it is ready.
std::string why_not_ready(abi::EndpointState state, const EndpointNote& note);

}  // namespace pickd::endpoints
