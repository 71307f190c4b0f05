// Words for people about endpoints.
#include "daemon/endpoints/endpoint_notes.hpp"

#include <gtest/gtest.h>

namespace pickd::endpoints {
namespace {

using State = abi::EndpointState;

TEST(EndpointNotes, SayNothingOfAReadyEndpointAndSomethingOfEveryOther) {
  EXPECT_EQ(why_not_ready(State::kReady, {}), "");
  for (const State state : {State::kSuspect, State::kDown, State::kDraining, State::kStarting})
    EXPECT_NE(why_not_ready(state, {}), "");
}

TEST(EndpointNotes, TellFailedScrapesFromFailedRequests) {
  EndpointNotes notes;
  EXPECT_EQ(why_not_ready(State::kSuspect, notes.note(3, 1)), "requests failed there");
  notes.scrape_failed(3, 1, "connect: Connection refused");
  EXPECT_EQ(why_not_ready(State::kSuspect, notes.note(3, 1)),
            "a scrape failed: connect: Connection refused");
  notes.scrape_failed(3, 1, "time-out");
  EXPECT_EQ(why_not_ready(State::kDown, notes.note(3, 1)), "2 scrapes failed in a row: time-out");
}

TEST(EndpointNotes, ForgetFailuresWhenAScrapeIsAnsweredAndTheEngineWithItsGeneration) {
  EndpointNotes notes;
  notes.scrape_failed(3, 1, "reset");
  notes.scrape_ok(3, 1, "vllm");
  EXPECT_EQ(notes.note(3, 1).scrape_failures, 0U);
  EXPECT_EQ(notes.note(3, 1).engine, "vllm");
  EXPECT_EQ(notes.note(3, 2).engine, "") << "another generation is another engine";
}

}  // namespace
}  // namespace pickd::endpoints
