// The bytes of answers: whole, in pieces, and such that must be refused.
#include <gtest/gtest.h>

#include "daemon/net/http/response_reader.hpp"

namespace pickd::net::http {
namespace {

using State = ResponseReader::State;

struct Collector final : ResponseSink {
  bool head(const Head& head) override {
    status = head.status;
    content_type = head.content_type;
    ++heads;
    return take_head;
  }
  bool body(std::string_view piece) override {
    text += piece;
    return text.size() < stop_after;
  }
  void done(const Outcome&) override { FAIL() << "the reader never says done"; }

  int status = 0;
  int heads = 0;
  std::string content_type;
  std::string text;
  bool take_head = true;
  std::size_t stop_after = SIZE_MAX;
};

class ResponseReaderTest : public ::testing::Test {
 protected:
  // Feeds in pieces of `step` bytes.
  State read(std::string_view bytes, std::size_t step = SIZE_MAX) {
    collected_ = Collector();
    collected_.take_head = take_head_;
    collected_.stop_after = stop_after_;
    reader_.begin(limits_, collected_);
    State state = State::kMore;
    while (!bytes.empty()) {
      const std::string piece(bytes.substr(0, step));  // its own memory: overreads show
      bytes.remove_prefix(piece.size());
      state = reader_.feed(piece);
    }
    return state;
  }
  Failure refused(std::string_view bytes) {
    for (const std::size_t step : {SIZE_MAX, std::size_t{1}}) {
      EXPECT_EQ(read(bytes, step), State::kFailed) << bytes;
      EXPECT_FALSE(reader_.keep_alive());
    }
    return reader_.failure();
  }

  ResponseReader reader_;
  Collector collected_;
  ReaderLimits limits_{1024, 0};
  bool take_head_ = true;
  std::size_t stop_after_ = SIZE_MAX;
};

TEST_F(ResponseReaderTest, ReadsABodyOfKnownLengthCutAnywhere) {
  const std::string answer =
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: 11\r\n\r\n"
      "hello\nworld";
  for (std::size_t step = 1; step <= answer.size(); ++step) {
    ASSERT_EQ(read(answer, step), State::kDone) << step;
    EXPECT_EQ(collected_.text, "hello\nworld");
    EXPECT_EQ(collected_.status, 200);
    EXPECT_EQ(collected_.content_type, "text/plain; version=0.0.4");
    EXPECT_EQ(collected_.heads, 1);
    EXPECT_TRUE(reader_.keep_alive());
  }
}

TEST_F(ResponseReaderTest, ReadsChunksWithExtensionsAndTrailersCutAnywhere) {
  const std::string answer =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n6;a=b;c=\"d\"\r\n world\r\n0\r\nX-Sum: 1\r\nContent-Type: x\r\n\r\n";
  for (std::size_t step = 1; step <= answer.size(); ++step) {
    ASSERT_EQ(read(answer, step), State::kDone) << step;
    EXPECT_EQ(collected_.text, "hello world");
    EXPECT_EQ(collected_.content_type, "");
    EXPECT_TRUE(reader_.keep_alive());
  }
}

TEST_F(ResponseReaderTest, ReadsToTheEndOfTheConnectionWithoutALength) {
  EXPECT_EQ(read("HTTP/1.0 200 OK\r\n\r\nhello"), State::kMore);
  EXPECT_EQ(reader_.feed_end(), State::kDone);
  EXPECT_EQ(collected_.text, "hello");
  EXPECT_FALSE(reader_.keep_alive());
}

TEST_F(ResponseReaderTest, TellsAnAnswerThatIsCutShort) {
  for (const char* cut :
       {"HTTP/1.1 200 OK\r\nContent-Len", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"}) {
    EXPECT_EQ(read(cut), State::kMore) << cut;
    EXPECT_EQ(reader_.feed_end(), State::kFailed) << cut;
    EXPECT_EQ(reader_.failure(), Failure::kReset);
  }
}

TEST_F(ResponseReaderTest, PassesOverInterimAnswers) {
  EXPECT_EQ(read("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            State::kDone);
  EXPECT_EQ(collected_.status, 200);
  EXPECT_EQ(collected_.heads, 1);
  EXPECT_EQ(refused("HTTP/1.1 101 Switching Protocols\r\n\r\n"), Failure::kMalformed);
  std::string flood;
  for (int i = 0; i < 100; ++i) flood += "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_EQ(refused(flood), Failure::kMalformed);
}

TEST_F(ResponseReaderTest, DoesNotReuseAConnectionThatSaysCloseOrSaysMore) {
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"),
            State::kDone);
  EXPECT_FALSE(reader_.keep_alive());
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n"),
            State::kDone);
  EXPECT_EQ(collected_.text, "ok");
  EXPECT_FALSE(reader_.keep_alive());
}

TEST_F(ResponseReaderTest, TellsStatusesAndTheirBodies) {
  EXPECT_EQ(read("HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nsad\n"), State::kDone);
  EXPECT_EQ(collected_.status, 500);
  EXPECT_EQ(collected_.text, "sad\n");
  EXPECT_EQ(read("HTTP/1.1 204 Nothing\r\n\r\n"), State::kDone);
  EXPECT_EQ(collected_.status, 204);
}

TEST_F(ResponseReaderTest, RefusesRedirectsAndCompression) {
  EXPECT_EQ(refused("HTTP/1.1 302 Found\r\nLocation: http://other/\r\nContent-Length: 0\r\n\r\n"),
            Failure::kRedirect);
  EXPECT_EQ(refused("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx"),
            Failure::kEncoded);
  EXPECT_EQ(collected_.heads, 0);
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 1\r\n\r\nx"),
            State::kDone);
  EXPECT_EQ(read("HTTP/1.1 500 Oops\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx"),
            State::kDone);
  EXPECT_EQ(collected_.text, "") << "compressed words of an error are of no use";
}

TEST_F(ResponseReaderTest, RefusesFramingThatReadsTwoWays) {
  for (const char* head : {"Content-Length: 2\r\nContent-Length: 3\r\n",
                           "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
                           "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: gzip\r\n",
                           "Transfer-Encoding: chunked, chunked\r\n", "Content-Length: -1\r\n",
                           "Content-Length: 0x10\r\n", "Content-Length: 99999999999999999999\r\n",
                           "No colon\r\n", "Space : x\r\n"}) {
    EXPECT_EQ(refused(std::string("HTTP/1.1 200 OK\r\n") + head + "\r\n2\r\nok\r\n0\r\n\r\n"),
              Failure::kMalformed)
        << head;
  }
  for (const char* body : {"x\r\n", "\r\n", "-1\r\nx", "5\r\nhelloXX", "5\nhello\r\n0\r\n\r\n",
                           "11111111111111111\r\nx"}) {
    EXPECT_EQ(refused(std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") + body +
                      "zzzz\r\n"),
              Failure::kMalformed)
        << body;
  }
}

TEST_F(ResponseReaderTest, RefusesWhatIsNotHttp) {
  for (const char* bytes :
       {"SSH-2.0-OpenSSH\r\n", "\x15\x03\x01", "HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 999 OK\r\n\r\n", "ICY 200 OK\r\n\r\n"}) {
    EXPECT_EQ(refused(bytes), Failure::kMalformed) << bytes;
  }
}

TEST_F(ResponseReaderTest, BoundsHeadsChunkHeadersAndTrailers) {
  const std::string flood = "X: " + std::string(2000, 'x') + "\r\n";
  EXPECT_EQ(refused("HTTP/1.1 200 OK\r\n" + flood + "\r\n"), Failure::kHeadTooLarge);
  std::string many = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 200; ++i) many += "X: yyyyy\r\n";
  EXPECT_EQ(refused(many), Failure::kHeadTooLarge);
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(read(chunked + "5;" + std::string(2000, 'e'), 1), State::kFailed);
  EXPECT_EQ(reader_.failure(), Failure::kHeadTooLarge);
  EXPECT_EQ(read(chunked + "0\r\n" + flood, 1), State::kFailed);
  EXPECT_EQ(reader_.failure(), Failure::kHeadTooLarge);
}

TEST_F(ResponseReaderTest, BoundsBodiesHoweverTheyAreFramed) {
  limits_.body_bytes_max = 10;
  EXPECT_EQ(refused("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n"), Failure::kBodyTooLarge);
  EXPECT_EQ(refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "6\r\nsixsix\r\n6\r\nsixsix\r\n"),
            Failure::kBodyTooLarge);
  EXPECT_EQ(refused("HTTP/1.0 200 OK\r\n\r\nelevenbytes"), Failure::kBodyTooLarge);
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"), State::kDone);
}

TEST_F(ResponseReaderTest, StopsWhenTheSinkWantsNoMore) {
  stop_after_ = 3;
  EXPECT_EQ(refused("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"), Failure::kStopped);
  take_head_ = false;
  EXPECT_EQ(refused("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"), Failure::kStopped);
  EXPECT_EQ(collected_.text, "");
}

TEST_F(ResponseReaderTest, KeepsNoMoreOfAStreamThanAPiece) {
  read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "4000\r\n" + std::string(0x4000, 'x') + "\r\n";
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(reader_.feed(chunk), State::kMore);
    ASSERT_EQ(collected_.text.size(), 0x4000U);
    collected_.text.clear();
  }
}

}  // namespace
}  // namespace pickd::net::http
