#include "daemon/endpoints/endpoint_notes.hpp"

#include <utility>

namespace pickd::endpoints {

namespace {

std::string failures(const EndpointNote& note) {
  const std::string count = note.scrape_failures == 1
                                ? "a scrape failed"
                                : std::to_string(note.scrape_failures) + " scrapes failed in a row";
  return note.last_failure.empty() ? count : count + ": " + note.last_failure;
}

}  // namespace

EndpointNote& EndpointNotes::note(std::uint32_t id, std::uint32_t generation) {
  if (id >= kept_.size()) kept_.resize(id + 1);
  Kept& kept = kept_[id];
  if (kept.generation != generation) kept = {generation, {}};
  return kept.note;
}

void EndpointNotes::scrape_ok(std::uint32_t id, std::uint32_t generation, std::string engine) {
  note(id, generation) = {0, "", std::move(engine)};
}

void EndpointNotes::scrape_failed(std::uint32_t id, std::uint32_t generation, std::string words) {
  EndpointNote& kept = note(id, generation);
  ++kept.scrape_failures;
  kept.last_failure = std::move(words);
}

std::string why_not_ready(abi::EndpointState state, const EndpointNote& note) {
  switch (state) {
    case abi::EndpointState::kReady: return "";
    case abi::EndpointState::kDraining: return "it drains: an operator said so";
    case abi::EndpointState::kStarting:
      return note.scrape_failures == 0 ? "it has not answered yet" : failures(note);
    case abi::EndpointState::kSuspect:
    case abi::EndpointState::kDown:
      return note.scrape_failures == 0 ? "requests failed there" : failures(note);
    default: return "";
  }
}

}  // namespace pickd::endpoints
