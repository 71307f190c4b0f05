// Reports: what each kind does to what the ticket holds, its status for the client, its counters.
#include "daemon/workers/report_handler.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "daemon/endpoints/endpoint_table.hpp"
#include "daemon/endpoints/failure_word.hpp"

namespace pickd::workers {
namespace {

class Reports : public ::testing::Test {
 protected:
  Reports() {
    for (const char* name : {"a", "b"}) {
      endpoints::EndpointSpec spec;
      spec.name = name;
      spec.address = spec.name + ":80";
      if (!table_.add(spec, "test", 10).ok()) throw std::runtime_error("add");
    }
    endpoints::NewReservation made;
    made.ticket = kTicket;
    made.endpoint = handle("a");
    made.uncached_tokens = 100;
    made.uid = kUid;
    made.tick = 10;
    reservations_.reserve(made);
  }
  std::uint64_t handle(const char* name) const {
    const auto& endpoint = *store_.current().find_name(name);
    return abi::endpoint_handle(endpoint.id, endpoint.generation);
  }
  int apply(abi::ReportKind kind, std::string_view fallback = "", std::uint32_t uid = kUid) {
    DecodedReport report{kTicket, kind, 120, 20, 30, fallback};
    return handler_.apply(report, uid, 50 * abi::kTickNs, store_.current(), counters_);
  }
  int apply_usage(abi::ReportKind kind, const endpoints::Usage& usage) {
    DecodedReport report{
        kTicket, kind, usage.prompt_tokens, usage.cached_tokens, usage.output_tokens, ""};
    return handler_.apply(report, kUid, 50 * abi::kTickNs, store_.current(), counters_);
  }
  std::uint64_t requests(const char* name) const {
    return abi::CountWord{records_[store_.current().find_name(name)->id].inflight_requests.load()}
        .count();
  }
  std::uint64_t tokens(const char* name) const {
    return abi::CountWord{records_[store_.current().find_name(name)->id].inflight_tokens.load()}
        .count();
  }
  abi::EndpointState state(const char* name) const {
    return static_cast<abi::EndpointState>(
        records_[store_.current().find_name(name)->id].state.load());
  }
  abi::FailureWord failures(const char* name) const {
    return {records_[store_.current().find_name(name)->id].failures.load()};
  }
  std::uint32_t generation(const char* name) const {
    return store_.current().find_name(name)->generation;
  }
  std::uint64_t counted(abi::Counter counter) const {
    return row_[static_cast<std::uint32_t>(counter)].load();
  }

  static constexpr endpoints::Ticket kTicket{5, 6};
  static constexpr std::uint32_t kUid = 1000;
  std::unique_ptr<abi::EndpointRecord[]> records_{new abi::EndpointRecord[8]()};
  std::unique_ptr<abi::Reservation[]> slots_{new abi::Reservation[64]()};
  abi::Word high_water_{1};
  abi::Word row_[abi::kCountersMax]{};
  endpoints::TopologyStore store_;
  endpoints::EndpointTable table_{{records_.get(), 8, &high_water_, 0}, store_};
  endpoints::Reservations reservations_{slots_.get(), 64, records_.get()};
  state::Counters counters_{row_};
  ReportHandler handler_{reservations_, records_.get()};
};

TEST_F(Reports, OfTheFirstTokenGiveTheTokensBack) {
  EXPECT_EQ(apply(abi::ReportKind::kFirstToken), 0);
  EXPECT_EQ(requests("a"), 1U);
  EXPECT_EQ(tokens("a"), 0U);
  EXPECT_EQ(counted(abi::Counter::reports), 1U);
}

TEST_F(Reports, OfProgressAndOfTheFirstTokenRenewTheLease) {
  for (const auto kind : {abi::ReportKind::kProgress, abi::ReportKind::kFirstToken}) {
    EXPECT_EQ(apply(kind), 0);
    std::uint32_t cursor = 0;
    EXPECT_EQ(reservations_.expire_slice(&cursor, 64, 60, 20), 0U) << "picked at 10, renewed at 50";
  }
  std::uint32_t cursor = 0;
  EXPECT_EQ(reservations_.expire_slice(&cursor, 64, 80, 20), 1U);
}

TEST_F(Reports, OfTheEndGiveAllBackAndCountTheUsage) {
  EXPECT_EQ(apply(abi::ReportKind::kDone), 0);
  EXPECT_EQ(requests("a"), 0U);
  EXPECT_EQ(counted(abi::Counter::requests_done), 1U);
  EXPECT_EQ(counted(abi::Counter::reported_prompt_tokens), 120U);
  EXPECT_EQ(counted(abi::Counter::reported_cached_tokens), 20U);
  EXPECT_EQ(counted(abi::Counter::output_tokens), 30U);
}

// Field case 98: an engine that tells its usage in pieces. What comes last adds to it, and does not
// make the prompt one of no tokens.
TEST_F(Reports, KeepTheUsageThatWasToldBeforeTheEnd) {
  constexpr std::uint32_t kNone = abi::kUnknown32;
  EXPECT_EQ(apply_usage(abi::ReportKind::kFirstToken, {100, 60, 1}), 0);
  EXPECT_EQ(apply_usage(abi::ReportKind::kProgress, {kNone, kNone, 10}), 0);
  EXPECT_EQ(apply_usage(abi::ReportKind::kProgress, {kNone, kNone, kNone}), 0);
  DecodedReport end{kTicket, abi::ReportKind::kDone, kNone, kNone, 20, ""};
  EXPECT_EQ(handler_.apply(end, kUid, 60 * abi::kTickNs, store_.current(), counters_), 0);
  EXPECT_EQ(end.prompt_tokens, 100U) << "whoever records the end is told too";
  EXPECT_EQ(counted(abi::Counter::reported_prompt_tokens), 100U);
  EXPECT_EQ(counted(abi::Counter::reported_cached_tokens), 60U);
  EXPECT_EQ(counted(abi::Counter::output_tokens), 20U);
}

TEST_F(Reports, OfAnEndWithoutUsageHaveTheNewestThatWasTold) {
  EXPECT_EQ(apply_usage(abi::ReportKind::kProgress, {100, 60, 10}), 0);
  EXPECT_EQ(apply_usage(abi::ReportKind::kProgress, {100, 60, 30}), 0);
  EXPECT_EQ(apply_usage(abi::ReportKind::kDone, {}), 0);
  EXPECT_EQ(counted(abi::Counter::reported_prompt_tokens), 100U);
  EXPECT_EQ(counted(abi::Counter::output_tokens), 30U) << "the newest, not their sum";
}

TEST_F(Reports, OfALaterRequestKnowNothingOfWhatAnEarlierOneUsed) {
  EXPECT_EQ(apply_usage(abi::ReportKind::kProgress, {100, 60, 10}), 0);
  EXPECT_EQ(apply_usage(abi::ReportKind::kDone, {}), 0);
  endpoints::NewReservation again;
  again.ticket = kTicket;  // the same slot
  again.endpoint = handle("a");
  again.uid = kUid;
  ASSERT_TRUE(reservations_.reserve(again));
  EXPECT_EQ(apply_usage(abi::ReportKind::kProgress, {abi::kUnknown32, abi::kUnknown32, 5}), 0);
  EXPECT_EQ(apply_usage(abi::ReportKind::kDone, {}), 0);
  EXPECT_EQ(counted(abi::Counter::reported_prompt_tokens), 100U);
  EXPECT_EQ(counted(abi::Counter::output_tokens), 15U);
}

TEST_F(Reports, OfAFallbackForgetWhatTheOneBeforeTold) {
  EXPECT_EQ(apply_usage(abi::ReportKind::kFirstToken, {100, 60, 1}), 0);
  EXPECT_EQ(apply(abi::ReportKind::kFallback, "b"), 0);
  EXPECT_EQ(apply_usage(abi::ReportKind::kDone, {abi::kUnknown32, abi::kUnknown32, 7}), 0);
  EXPECT_EQ(counted(abi::Counter::reported_cached_tokens), 0U);
  EXPECT_EQ(counted(abi::Counter::output_tokens), 7U);
}

TEST_F(Reports, OfAFailureOrACancelGiveAllBackToo) {
  EXPECT_EQ(apply(abi::ReportKind::kFailed), 0);
  EXPECT_EQ(requests("a"), 0U);
  EXPECT_EQ(counted(abi::Counter::requests_failed), 1U);
  EXPECT_EQ(counted(abi::Counter::requests_done), 0U);
  EXPECT_EQ(apply(abi::ReportKind::kCancelled), -ESTALE);
}

TEST_F(Reports, OfAFallbackMoveTheRequestByNameOrAddress) {
  EXPECT_EQ(apply(abi::ReportKind::kFallback, "b"), 0);
  EXPECT_EQ(requests("a"), 0U);
  EXPECT_EQ(requests("b"), 1U);
  EXPECT_EQ(tokens("b"), 100U);
  EXPECT_EQ(apply(abi::ReportKind::kFallback, "a:80"), 0);
  EXPECT_EQ(requests("a"), 1U);
  EXPECT_EQ(counted(abi::Counter::requests_fallback), 2U);
}

TEST_F(Reports, OfAFallbackThatThereIsNotChangeNothing) {
  EXPECT_EQ(apply(abi::ReportKind::kFallback, "nobody"), -ENOENT);
  EXPECT_EQ(requests("a"), 1U);
  EXPECT_EQ(counted(abi::Counter::reports), 0U);
  EXPECT_EQ(counted(abi::Counter::reports_unknown), 1U);
}

TEST_F(Reports, OfAFailureMakeTheEndpointSuspectAtOnce) {
  EXPECT_EQ(state("a"), abi::EndpointState::kReady);
  EXPECT_EQ(apply(abi::ReportKind::kFailed), 0);
  EXPECT_EQ(state("a"), abi::EndpointState::kSuspect);
  EXPECT_EQ(state("b"), abi::EndpointState::kReady);
  EXPECT_EQ(failures("a").in_a_row(), 1U);
  EXPECT_EQ(failures("a").all(), 1U);
}

TEST_F(Reports, OfAFallbackSayThatTheOneBeforeFailed) {
  EXPECT_EQ(apply(abi::ReportKind::kFallback, "b"), 0);
  EXPECT_EQ(state("a"), abi::EndpointState::kSuspect);
  EXPECT_EQ(state("b"), abi::EndpointState::kReady);
  EXPECT_EQ(apply(abi::ReportKind::kFallback, "b"), 0);
  EXPECT_EQ(state("b"), abi::EndpointState::kReady) << "it stayed where it was";
}

TEST_F(Reports, OfACallerThatWentAwaySayNothingOfTheEndpoint) {
  EXPECT_EQ(apply(abi::ReportKind::kCancelled), 0);
  EXPECT_EQ(state("a"), abi::EndpointState::kReady);
  EXPECT_EQ(failures("a").all(), 0U);
}

TEST_F(Reports, OfAGoodEndEndARowOfFailures) {
  endpoints::note_failure(records_[1], generation("a"));
  endpoints::note_failure(records_[1], generation("a"));
  EXPECT_EQ(failures("a").in_a_row(), 2U);
  EXPECT_EQ(apply(abi::ReportKind::kDone), 0);
  EXPECT_EQ(failures("a").in_a_row(), 0U);
  EXPECT_EQ(failures("a").all(), 2U);
}

TEST_F(Reports, OfAFailureOfAnEngineThatIsGoneLeaveTheNextOneAlone) {
  ASSERT_TRUE(table_.reset("a", 20).ok());
  EXPECT_EQ(apply(abi::ReportKind::kFailed), -ESTALE);
  EXPECT_EQ(state("a"), abi::EndpointState::kReady);
  EXPECT_EQ(failures("a").all(), 0U);
}

TEST_F(Reports, OfAFailureDoNotTakeBackAnOperatorsDrain) {
  ASSERT_TRUE(table_.drain("a", true).ok());
  EXPECT_EQ(apply(abi::ReportKind::kFailed), 0);
  EXPECT_EQ(state("a"), abi::EndpointState::kDraining);
}

TEST_F(Reports, AreAppliedOnceAndThenStale) {
  EXPECT_EQ(apply(abi::ReportKind::kDone), 0);
  EXPECT_EQ(apply(abi::ReportKind::kDone), -ESTALE);
  EXPECT_EQ(counted(abi::Counter::requests_done), 1U);
  EXPECT_EQ(counted(abi::Counter::output_tokens), 30U) << "usage is not counted twice";
  EXPECT_EQ(counted(abi::Counter::reports_unknown), 1U);
}

TEST_F(Reports, OnATicketOfAnotherUserAreNotPermitted) {
  EXPECT_EQ(apply(abi::ReportKind::kDone, "", kUid + 1), -EPERM);
  EXPECT_EQ(requests("a"), 1U);
}

TEST_F(Reports, ForAGenerationThatIsGoneAreStaleAndCounted) {
  ASSERT_TRUE(table_.reset("a", 20).ok());
  EXPECT_EQ(apply(abi::ReportKind::kDone), -ESTALE);
  EXPECT_EQ(requests("a"), 0U);
  EXPECT_EQ(counted(abi::Counter::reports_stale_generation), 1U);
}

}  // namespace
}  // namespace pickd::workers
