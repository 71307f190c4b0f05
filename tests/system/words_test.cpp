// The words of failures: those of the newest one, never of an older, with the setting that a
// refusal by the daemon names.
#include <sys/stat.h>
#include <unistd.h>

#include <grp.h>
#include <cerrno>

#include "tests/system/queue.hpp"

namespace pickd::systests {
namespace {

// A client whose last failure is another before each call.
class Words : public testing::Test {
 protected:
  // The words after `call`, which fails with `code`.
  std::string after(int code, const std::function<int()>& call) {
    Request request("hello");
    request.raw.priority = 99'999;
    const Result result;
    EXPECT_EQ(pick(client_, request, result), -EINVAL);
    EXPECT_NE(client_.last_error().find("99999"), std::string::npos) << client_.last_error();
    EXPECT_EQ(call(), code);
    EXPECT_EQ(client_.last_error().find("99999"), std::string::npos) << "an older failure's";
    return client_.last_error();
  }

  Daemon daemon_{{.rest = "reservations: {per_uid_max: 2}", .endpoints = 0}};
  Client client_{daemon_};
  Result result_;
};

void add_endpoint(const Client& client) {
  const char* model = "served";
  pickd_endpoint endpoint = PICKD_ENDPOINT_INIT;
  endpoint.name = "e0";
  endpoint.address = "10.0.0.1:8000";
  endpoint.models = &model;
  endpoint.model_count = 1;
  ASSERT_EQ(pickd_endpoint_add(client.get(), &endpoint), 0);
}

#define EXPECT_SAYS(words, part) EXPECT_NE((words).find(part), std::string::npos) << (words)

TEST_F(Words, OfAPickAreThoseOfItsRefusal) {
  add_endpoint(client_);
  Request unknown("hello");
  unknown.raw.model = pickd_string("nosuch");
  EXPECT_SAYS(after(-ENOENT, [&] { return pick(client_, unknown, result_); }), "nosuch");
  Request nobody("hello");
  nobody.subset({"e7"});
  EXPECT_SAYS(after(-EHOSTUNREACH, [&] { return pick(client_, nobody, result_); }), "subset");
  ASSERT_EQ(pickd_endpoint_drain(client_.get(), "e0", 1), 0);
  EXPECT_SAYS(after(-EHOSTUNREACH, [&] { return pick(client_, Request("hello"), result_); }),
              "no endpoint is ready");
  ASSERT_EQ(pickd_endpoint_drain(client_.get(), "e0", 0), 0);
  ASSERT_EQ(pick(client_, Request("hello"), result_), 0);
  ASSERT_EQ(pick(client_, Request("hello"), result_), 0);
  EXPECT_SAYS(after(-EAGAIN, [&] { return pick(client_, Request("hello"), result_); }),
              "reservations.per_uid_max");
}

TEST_F(Words, OfADegradedPickAreItsOwn) {
  add_endpoint(client_);
  daemon_.signal(SIGKILL);
  daemon_.reap();
  Request unknown("hello");
  unknown.raw.model = pickd_string("nosuch");
  const std::string words = after(-ENOENT, [&] { return pick(client_, unknown, result_); });
  EXPECT_SAYS(words, "nosuch");
  EXPECT_SAYS(words, "without the daemon");
}

TEST_F(Words, OfAReportAreThoseOfItsRefusal) {
  add_endpoint(client_);
  ASSERT_EQ(pick(client_, Request("hello"), result_), 0);
  const pickd_ticket ticket = result_.ticket();
  EXPECT_SAYS(
      after(-ENOENT, [&] { return client_.report(ticket, PICKD_REPORT_FALLBACK, "elsewhere"); }),
      "elsewhere");
  ASSERT_EQ(client_.report(ticket, PICKD_REPORT_DONE), 0);
  EXPECT_SAYS(after(-ESTALE, [&] { return client_.report(ticket, PICKD_REPORT_DONE); }), "ticket");
  EXPECT_SAYS(after(-ENOENT, [&] { return pickd_endpoint_remove(client_.get(), "nosuch"); }),
              "nosuch");
}

TEST_F(Words, OfAQueueAreThoseOfItsRefusal) {
  add_endpoint(client_);
  EXPECT_SAYS(after(-EINVAL,
                    [&] {
                      pickd_queue* queue = nullptr;
                      return pickd_queue_open(client_.get(), 5000, &queue);
                    }),
              "depth 5000");
  const Queue queue(client_, 1);
  pickd_ticket ticket{};
  ASSERT_EQ(queue.submit(Request("hello"), 1, &ticket), 0);
  EXPECT_SAYS(after(-EAGAIN, [&] { return queue.submit(Request("hello"), 2); }), "1 of 1");
  EXPECT_SAYS(
      after(-ESTALE,
            [&] {
              return pickd_queue_cancel(queue.get(), {ticket.client, ticket.sequence + 100});
            }),
      "outstanding");
  std::uint64_t data = 0;
  ASSERT_TRUE(queue.next(result_, &data));
  ASSERT_EQ(pick(client_, Request("hello"), result_), 0) << "the second in flight";
  ASSERT_EQ(queue.submit(Request("hello"), 3), 0);
  EXPECT_SAYS(after(-EAGAIN,
                    [&] {
                      EXPECT_TRUE(queue.next(result_, &data));
                      return pickd_result_status(result_.get());
                    }),
              "reservations.per_uid_max");
}

TEST(SystemWords, OfAClientThatCannotBeOpenedAreInItsOptions) {
  Daemon daemon({.listen = {"clients_max: 3", "clients_per_uid_max: 2"}});
  const std::string socket = daemon.socket();
  std::vector<pickd_client*> opened;
  const auto open = [&](const std::function<void(pickd_options&)>& change, std::string* words) {
    char buffer[256] = "older words";
    pickd_options options = PICKD_OPTIONS_INIT;
    options.socket_path = socket.c_str();
    options.error = buffer;
    options.error_size = sizeof buffer;
    change(options);
    pickd_client* client = nullptr;
    const int code = pickd_open(&options, &client);
    EXPECT_EQ(client == nullptr, code != 0);
    if (client != nullptr) opened.push_back(client);
    *words = buffer;
    return code;
  };
  std::string words;
  EXPECT_EQ(open([](pickd_options&) {}, &words), 0);
  EXPECT_EQ(words, "") << "of a success";
  EXPECT_EQ(open([](pickd_options& options) { options.keys_max = 3; }, &words), -EINVAL);
  EXPECT_SAYS(words, "keys_max 3");
  EXPECT_EQ(open([](pickd_options& options) { options.flags = 8; }, &words), -EINVAL);
  EXPECT_SAYS(words, "flags 0x8");
  EXPECT_EQ(open([](pickd_options& options) { options.channels_max = 5000; }, &words), -EINVAL);
  EXPECT_SAYS(words, "channels_max 5000");
  EXPECT_EQ(open([](pickd_options& options) { options.socket_path = "/nonexistent"; }, &words),
            -ENOTCONN);
  EXPECT_SAYS(words, "/nonexistent");
  EXPECT_EQ(open(
                [](pickd_options& options) {
                  options.error_size = 9;
                  options.flags = 8;
                },
                &words),
            -EINVAL);
  EXPECT_EQ(words, "flags 0x") << "cut";
  EXPECT_EQ(open([](pickd_options&) {}, &words), 0);
  EXPECT_EQ(open([](pickd_options&) {}, &words), -EMFILE);
  EXPECT_SAYS(words, "listen.clients_per_uid_max");
  // A program of before the options had a place for words.
  EXPECT_EQ(
      open([](pickd_options& options) { options.struct_size = offsetof(pickd_options, error); },
           &words),
      -EMFILE);
  EXPECT_EQ(words, "older words");
  for (pickd_client* client : opened) pickd_close(client);
}

TEST(SystemWords, OfAUserThatMayNotConnectNameTheSetting) {
  if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
  Daemon daemon({.listen = {"mode: \"0666\"", "allowed_uids: [12345]"}});
  ASSERT_EQ(::chmod(daemon.directory().c_str(), 0755), 0);
  Forked stranger([&](Forked&) {
    constexpr uid_t kNobody = 65534;
    if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) return 1;
    char words[256] = "";
    const std::string socket = daemon.socket();
    pickd_options options = PICKD_OPTIONS_INIT;
    options.socket_path = socket.c_str();
    options.error = words;
    options.error_size = sizeof words;
    pickd_client* client = nullptr;
    if (pickd_open(&options, &client) != -EPERM) return 2;
    return std::string(words).find("listen.allowed_uids") == std::string::npos ? 3 : 0;
  });
  EXPECT_EQ(stranger.wait(), 0);
}

}  // namespace
}  // namespace pickd::systests
