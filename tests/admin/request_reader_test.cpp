// Requests out of bytes: which are taken, which refused, whole and in pieces.
#include "daemon/admin/request_reader.hpp"

#include <gtest/gtest.h>

namespace pickd::admin {
namespace {

using State = RequestReader::State;
constexpr std::size_t kHeadMax = 1024;

struct Refusal {
  const char* name;
  std::string bytes;
  int status;
};

class RefusedRequest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedRequest, IsRefusedWithItsStatusWholeAndInPieces) {
  RequestReader whole(kHeadMax);
  EXPECT_EQ(whole.feed(GetParam().bytes), State::kRefused);
  EXPECT_EQ(whole.status(), GetParam().status) << whole.why();
  RequestReader pieces(kHeadMax);
  State state = State::kMore;
  for (const char byte : GetParam().bytes) {
    state = pieces.feed({&byte, 1});
    if (state != State::kMore) break;
  }
  EXPECT_EQ(state, State::kRefused);
  EXPECT_EQ(pieces.status(), GetParam().status) << pieces.why();
  EXPECT_EQ(pieces.feed("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), State::kRefused);
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedRequest,
    ::testing::Values(
        Refusal{"NoHttp", "hello there\r\n\r\n", 400},
        Refusal{"NoHost", "GET / HTTP/1.1\r\n\r\n", 400},
        Refusal{"TwoHosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        Refusal{"AnotherSitesTarget", "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        Refusal{"Upgrade",
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", 400},
        Refusal{"ABody", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 413},
        Refusal{"Chunks", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 413},
        Refusal{"TwoLengths",
                "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n", 400},
        Refusal{"LongTarget", "GET /" + std::string(2 * kHeadMax, 'x') + " HTTP/1.1\r\n\r\n", 431},
        Refusal{"LongField",
                "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(2 * kHeadMax, 'x') + "\r\n\r\n",
                431},
        Refusal{"Version2", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505}),
    [](const auto& refusal) { return refusal.param.name; });

TEST(RequestReader, GivesThePartsOfARequest) {
  RequestReader reader(kHeadMax);
  ASSERT_EQ(reader.feed("GET /api/state?since=12&x=%41 HTTP/1.1\r\nhost: 127.0.0.1:9\r\nAccept: "
                        "text/plain\r\nACCEPT: */*\r\n\r\n"),
            State::kReady);
  const Request& request = reader.request();
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/api/state");
  EXPECT_EQ(request.parameter("since"), "12");
  EXPECT_EQ(request.parameter("x"), "%41");
  EXPECT_EQ(request.parameter("sinc"), "");
  EXPECT_EQ(request.host, "127.0.0.1:9");
  EXPECT_EQ(request.accept, "text/plain,*/*");
  EXPECT_TRUE(request.keep_alive);
}

TEST(RequestReader, TakesRequestsThatComeTogetherOneAfterAnother) {
  RequestReader reader(kHeadMax);
  ASSERT_EQ(reader.feed("GET /a HTTP/1.1\r\nHost: h\r\n\r\nHEAD /b HTTP/1.0\r\n\r\nGET /c HT"),
            State::kReady);
  EXPECT_EQ(reader.request().path, "/a");
  ASSERT_EQ(reader.next(), State::kReady);
  EXPECT_EQ(reader.request().method, "HEAD");
  EXPECT_EQ(reader.request().path, "/b");
  EXPECT_FALSE(reader.request().keep_alive);
  ASSERT_EQ(reader.next(), State::kMore);
  EXPECT_TRUE(reader.in_request());
  ASSERT_EQ(reader.feed("TP/1.1\r\nHost: h\r\n\r\n"), State::kReady);
  EXPECT_EQ(reader.request().path, "/c");
  EXPECT_EQ(reader.next(), State::kMore);
  EXPECT_FALSE(reader.in_request());
}

}  // namespace
}  // namespace pickd::admin
