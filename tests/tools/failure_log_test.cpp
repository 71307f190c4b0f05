// What the request log of a run with failing engines proves.
#include "tools/demo/failure_log.hpp"

#include <gtest/gtest.h>

namespace pickd::demo {
namespace {

FailureLog log_of(const std::vector<std::string>& lines) {
  FailureLog log;
  log.begin_outage("a", "killed", 100);
  log.end_outage("a", 200);
  for (const std::string& line : lines) EXPECT_TRUE(log.add_line(line)) << line;
  return log;
}

TEST(FailureLog, FindsNothingWrongWhenTheNextAttemptGoesElsewhere) {
  const FailureLog log = log_of({"send 90 0.0 a 1", "send 110 1.0 a 1", "fail 120 0.0 a 1 reset",
                                 "send 121 0.0 b 2", "fail 130 1.0 a 1 reset", "send 131 1.0 b 2",
                                 "done 140 0.0 b 2", "done 150 1.0 b 2"});
  EXPECT_EQ(log.wrongs(), std::vector<std::string>{});
  EXPECT_EQ(log.requests(), 2U);
  EXPECT_EQ(log.retried(), 2U);
  EXPECT_EQ(log.answered_by("b"), 2U);
  const Outage outage = log.outages().at(0);
  EXPECT_EQ(outage.first_failure_us, 120);
  EXPECT_EQ(outage.failed, 2U) << "what was under way fails too";
}

TEST(FailureLog, SeesARequestThatGoesToADeadEngineAfterItsFirstFailure) {
  const FailureLog log = log_of({"send 110 0.0 a 1", "fail 120 0.0 a 1 refused", "send 121 0.0 b 2",
                                 "done 130 0.0 b 2", "send 131 1.0 a 1", "fail 132 1.0 a 1 refused",
                                 "send 133 1.0 b 2", "done 140 1.0 b 2"});
  EXPECT_EQ(log.outages().at(0).sent_after, 1U);
  EXPECT_EQ(log.wrongs().size(), 1U);
}

TEST(FailureLog, LetsAnEngineServeAgainWhenItIsBack) {
  const FailureLog log = log_of({"send 110 0.0 a 1", "fail 120 0.0 a 1 refused", "send 121 0.0 b 2",
                                 "done 130 0.0 b 2", "send 200 1.0 a 1", "done 210 1.0 a 1"});
  EXPECT_EQ(log.wrongs(), std::vector<std::string>{});
  EXPECT_EQ(log.outages().at(0).served_again, 1U);
}

TEST(FailureLog, CountsARequestAsLostThatNobodyAnswered) {
  EXPECT_EQ(log_of({"send 10 0.0 a 1", "fail 20 0.0 a 1 reset", "lost 20 0.0"}).lost(), 1U);
  EXPECT_EQ(log_of({"send 10 0.0 a 1"}).wrongs().size(), 1U) << "without a word about it, too";
  EXPECT_EQ(log_of({"lost 10 0.0"}).lost(), 1U) << "it had no endpoint at all";
  EXPECT_EQ(FailureLog().wrongs().size(), 1U) << "a run without requests proves nothing";
}

TEST(FailureLog, HasWordsForWhatFailed) {
  EXPECT_EQ(FailureLog::words_of("fail 120 3.1 a 2 Couldn't connect"),
            "request 3.1, attempt 2: a: Couldn't connect");
  EXPECT_EQ(FailureLog::words_of("lost 120 3.1"), "request 3.1 is lost");
  EXPECT_EQ(FailureLog::words_of("send 120 3.1 a 1"), "");
}

TEST(FailureLog, TakesNoLineThatIsNone) {
  FailureLog log;
  for (const char* line : {"", "turn a ok 1 2 3 4 5 0 -", "send", "send x 0.0 a 1", "send 1 0.0",
                           "send 1x 0.0 a 1", "sent 1 0.0 a 1"})
    EXPECT_FALSE(log.add_line(line)) << line;
  EXPECT_EQ(log.requests(), 0U);
}

}  // namespace
}  // namespace pickd::demo
