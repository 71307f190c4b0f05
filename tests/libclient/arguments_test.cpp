// What the header forbids is refused with the error it names, before any daemon is asked.
#include <errno.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "libclient/queue.hpp"
#include "tests/libclient/support.hpp"

namespace pickd::client {
namespace {

// What a C program can store in an enum and C++ cannot.
template <typename Enum>
void store_number(Enum& value, int number) {
  std::memcpy(&value, &number, sizeof value);
}

class Arguments : public testing::Test {
 protected:
  // The same request must be refused by both ways to submit it, with words.
  void expect_refused(const pickd_request& request, int code) {
    EXPECT_EQ(pickd_pick(client_.get(), &request, 0, result_.get()), code);
    EXPECT_EQ(pickd_result_status(result_.get()), code);
    EXPECT_EQ(pickd_result_endpoint_count(result_.get()), 0U);
    EXPECT_NE(last_error(client_->error), "");
    EXPECT_EQ(pickd_queue_submit(&queue_, &request, 0, nullptr), code);
  }
  void expect_refused(const pickd_report_info& report, int code) {
    EXPECT_EQ(pickd_report(client_.get(), &report, 0), code);
    EXPECT_EQ(pickd_queue_report(&queue_, &report), code);
    EXPECT_NE(last_error(client_->error), "");
  }
  void expect_refused(const pickd_endpoint& endpoint, int code) {
    EXPECT_EQ(pickd_endpoint_add(client_.get(), &endpoint), code);
    EXPECT_EQ(pickd_endpoint_update(client_.get(), &endpoint), code);
    EXPECT_NE(last_error(client_->error), "");
  }
  static pickd_endpoint good_endpoint() {
    pickd_endpoint endpoint = PICKD_ENDPOINT_INIT;
    endpoint.name = "a";
    endpoint.address = "10.0.0.1:8000";
    return endpoint;
  }
  static pickd_report_info good_report() {
    pickd_report_info report = PICKD_REPORT_INIT;
    report.kind = PICKD_REPORT_DONE;
    return report;
  }

  Owned<pickd_client> client_ = unconnected_client();
  pickd_queue queue_{client_.get(), 4};
  Result result_ = new_result();
  const std::string long_ = std::string(300, 'x');
  const pickd_slice too_long_{long_.data(), 256};
};

TEST_F(Arguments, ThatAreNullAreRefused) {
  const pickd_request request = PICKD_REQUEST_INIT;
  const pickd_report_info report = good_report();
  pickd_endpoint endpoint = good_endpoint();
  pickd_queue* queue = nullptr;
  EXPECT_EQ(pickd_open(nullptr, nullptr), -EINVAL);
  EXPECT_EQ(pickd_daemon_info(nullptr, nullptr, nullptr, nullptr), -EINVAL);
  EXPECT_EQ(pickd_pick(nullptr, &request, 0, result_.get()), -EINVAL);
  EXPECT_EQ(pickd_pick(client_.get(), nullptr, 0, result_.get()), -EINVAL);
  EXPECT_EQ(pickd_pick(client_.get(), &request, 0, nullptr), -EINVAL);
  EXPECT_EQ(pickd_report(nullptr, &report, 0), -EINVAL);
  EXPECT_EQ(pickd_report(client_.get(), nullptr, 0), -EINVAL);
  EXPECT_EQ(pickd_queue_open(nullptr, 0, &queue), -EINVAL);
  EXPECT_EQ(pickd_queue_open(client_.get(), 0, nullptr), -EINVAL);
  EXPECT_EQ(pickd_queue_submit(nullptr, &request, 0, nullptr), -EINVAL);
  EXPECT_EQ(pickd_queue_submit(&queue_, nullptr, 0, nullptr), -EINVAL);
  EXPECT_EQ(pickd_queue_poll(nullptr, result_.get(), nullptr), -EINVAL);
  EXPECT_EQ(pickd_queue_poll(&queue_, nullptr, nullptr), -EINVAL);
  EXPECT_EQ(pickd_queue_cancel(nullptr, {1, 1}), -EINVAL);
  EXPECT_EQ(pickd_queue_report(nullptr, &report), -EINVAL);
  EXPECT_EQ(pickd_queue_report(&queue_, nullptr), -EINVAL);
  EXPECT_EQ(pickd_queue_event_fd(nullptr), -EINVAL);
  EXPECT_EQ(pickd_endpoint_add(nullptr, &endpoint), -EINVAL);
  EXPECT_EQ(pickd_endpoint_add(client_.get(), nullptr), -EINVAL);
  EXPECT_EQ(pickd_endpoint_update(client_.get(), nullptr), -EINVAL);
  EXPECT_EQ(pickd_endpoint_remove(nullptr, "a"), -EINVAL);
  EXPECT_EQ(pickd_endpoint_remove(client_.get(), nullptr), -EINVAL);
  EXPECT_EQ(pickd_endpoint_drain(client_.get(), nullptr, 1), -EINVAL);
  EXPECT_EQ(pickd_endpoint_reset(client_.get(), nullptr), -EINVAL);
  pickd_close(nullptr);
  pickd_queue_close(nullptr);
}

// ---- Requests -----------------------------------------------------------------------------------

TEST_F(Arguments, OfARequestWithTextAndTokensAreRefused) {
  const pickd_slice text = pickd_string("hello");
  const std::uint32_t id = 1;
  pickd_request request = PICKD_REQUEST_INIT;
  request.text = &text;
  request.text_count = 1;
  request.token_ids = &id;
  request.token_count = 1;
  expect_refused(request, -EINVAL);
}

TEST_F(Arguments, OfARequestOutOfRangeAreRefused) {
  const auto with = [this](const auto& change, int code) {
    pickd_request request = PICKD_REQUEST_INIT;
    change(request);
    expect_refused(request, code);
  };
  with([](auto& r) { r.flags = 16; }, -EINVAL);
  with([](auto& r) { r.flags = 1U << 31; }, -EINVAL);
  with([](auto& r) { r.endpoints_max = 9; }, -EINVAL);
  with([](auto& r) { r.queue_timeout_us = -1; }, -EINVAL);
  with([](auto& r) { r.priority = 32768; }, -EINVAL);
  with([](auto& r) { r.priority = -32769; }, -EINVAL);
  with([](auto& r) { r.text_count = 1; }, -EINVAL);
  with([](auto& r) { r.token_count = 1; }, -EINVAL);
  with(
      [](auto& r) {
        r.token_ids = &r.endpoints_max;
        r.token_count = SIZE_MAX;
      },
      -E2BIG);
  with([](auto& r) { r.model = {nullptr, 1}; }, -EINVAL);
  with([](auto& r) { r.salt = {nullptr, 1}; }, -EINVAL);
  with(
      [](auto& r) {
        r.subset_count = 1;
        r.flags = PICKD_REQUEST_SUBSET;
      },
      -EINVAL);
  with(
      [](auto& r) {
        r.subset_count = 513;
        r.flags = PICKD_REQUEST_SUBSET;
      },
      -E2BIG);
  with([](auto& r) { r.attribute_count = 1; }, -EINVAL);
  with([](auto& r) { r.attribute_count = 33; }, -E2BIG);
  with([](auto& r) { r.extra_count = 1; }, -EINVAL);
  with([](auto& r) { r.extra_count = 4097; }, -E2BIG);
}

TEST_F(Arguments, OfANegativeTimeoutAreRefused) {
  const pickd_request request = PICKD_REQUEST_INIT;
  const pickd_report_info report = good_report();
  EXPECT_EQ(pickd_pick(client_.get(), &request, -1, result_.get()), -EINVAL);
  EXPECT_EQ(pickd_report(client_.get(), &report, -1), -EINVAL);
}

TEST_F(Arguments, OfARequestWithLongStringsAreTooBig) {
  for (pickd_slice pickd_request::*field :
       {&pickd_request::model, &pickd_request::adapter, &pickd_request::session_id,
        &pickd_request::fairness_id, &pickd_request::request_id}) {
    pickd_request request = PICKD_REQUEST_INIT;
    request.*field = too_long_;
    expect_refused(request, -E2BIG);
  }
  const pickd_slice long_name{long_.data(), 128};
  pickd_request request = PICKD_REQUEST_INIT;
  request.subset = &long_name;
  request.subset_count = 1;
  request.flags = PICKD_REQUEST_SUBSET;
  expect_refused(request, -E2BIG);
}

TEST_F(Arguments, OfARequestWithTooManyStringsTogetherAreTooBig) {
  const std::vector<pickd_slice> subset(512, {long_.data(), 127});
  pickd_request request = PICKD_REQUEST_INIT;
  request.subset = subset.data();
  request.subset_count = subset.size();
  request.flags = PICKD_REQUEST_SUBSET;
  expect_refused(request, -E2BIG);
}

TEST_F(Arguments, OfMalformedAttributesAreRefused) {
  const auto with = [this](const pickd_attribute& attribute, int code, std::size_t stride = 0) {
    pickd_request request = PICKD_REQUEST_INIT;
    request.attributes = &attribute;
    request.attribute_count = 1;
    request.attribute_stride = stride;
    expect_refused(request, code);
  };
  const pickd_slice fine = pickd_string("fine");
  with({pickd_string(""), fine}, -EINVAL);
  with({{"a\0b", 3}, fine}, -EINVAL);
  with({fine, {nullptr, 3}}, -EINVAL);
  with({too_long_, fine}, -E2BIG);
  with({fine, too_long_}, -E2BIG);
  with({fine, fine}, -EINVAL, sizeof(pickd_attribute) - 8);
  with({fine, fine}, -EINVAL, sizeof(pickd_attribute) + 1);
}

TEST_F(Arguments, OfMalformedExtrasAreRefused) {
  const auto with = [this](const std::vector<pickd_extra>& extras, int code) {
    const pickd_slice text = pickd_string("0123456789");
    pickd_request request = PICKD_REQUEST_INIT;
    request.text = &text;
    request.text_count = 1;
    request.extras = extras.data();
    request.extra_count = extras.size();
    expect_refused(request, code);
  };
  const auto digest = [this](std::size_t size) { return pickd_slice{long_.data(), size}; };
  with({{5, digest(16)}, {4, digest(16)}}, -EINVAL);
  with({{11, digest(16)}}, -EINVAL);
  with({{SIZE_MAX, digest(16)}}, -EINVAL);
  with({{0, digest(15)}}, -EINVAL);
  with({{0, {nullptr, 16}}}, -EINVAL);
  with({{0, digest(65)}}, -E2BIG);
}

// ---- Sizes of structs ---------------------------------------------------------------------------

template <typename T>
struct Grown {
  T known;
  std::uint64_t unknown;
};

TEST_F(Arguments, WithUnknownOptionsSetAreTooBig) {
  Grown<pickd_request> request{PICKD_REQUEST_INIT, 1};
  request.known.struct_size = sizeof request;
  expect_refused(request.known, -E2BIG);

  Grown<pickd_report_info> report{good_report(), 1};
  report.known.struct_size = sizeof report;
  expect_refused(report.known, -E2BIG);

  Grown<pickd_endpoint> endpoint{good_endpoint(), 1};
  endpoint.known.struct_size = sizeof endpoint;
  expect_refused(endpoint.known, -E2BIG);

  Grown<pickd_options> options{PICKD_OPTIONS_INIT, 1};
  options.known.struct_size = sizeof options;
  pickd_client* client = nullptr;
  EXPECT_EQ(pickd_open(&options.known, &client), -E2BIG);
  EXPECT_EQ(client, nullptr);
}

TEST_F(Arguments, OfANewerHeaderThatSetNothingNewAreAccepted) {
  Grown<pickd_request> request{PICKD_REQUEST_INIT, 0};
  request.known.struct_size = sizeof request;
  PickRequest checked;
  EXPECT_EQ(checked.read(&request.known, client_->error), 0) << last_error(client_->error);
}

TEST_F(Arguments, OfStructsWithoutTheirSizeAreRefused) {
  pickd_request request = PICKD_REQUEST_INIT;
  request.struct_size = 0;
  expect_refused(request, -EINVAL);
  request.struct_size = sizeof request - 1;
  expect_refused(request, -EINVAL);
  request.struct_size = SIZE_MAX;  // garbage: nothing behind it is read
  expect_refused(request, -E2BIG);
}

// ---- Options ------------------------------------------------------------------------------------

TEST(Options, OutOfRangeAreRefused) {
  const auto with = [](const auto& change, int code) {
    pickd_options options = PICKD_OPTIONS_INIT;
    options.socket_path = "/nonexistent/pickd.sock";
    change(options);
    pickd_client* client = reinterpret_cast<pickd_client*>(8);
    EXPECT_EQ(pickd_open(&options, &client), code);
    EXPECT_EQ(client, nullptr);
  };
  const std::string long_text(300, 'x');
  with([](auto& o) { o.keys_max = 15; }, -EINVAL);
  with([](auto& o) { o.keys_max = 16385; }, -EINVAL);
  with([](auto& o) { o.channels_max = 1025; }, -EINVAL);
  with([](auto& o) { o.flags = 2; }, -EINVAL);
  with([](auto& o) { o.socket_path = ""; }, -EINVAL);
  with([&](auto& o) { o.socket_path = long_text.c_str(); }, -E2BIG);
  with([&](auto& o) { o.name = long_text.c_str(); }, -E2BIG);
  with([](auto&) {}, -ENOTCONN);
}

TEST_F(Arguments, OfAQueueThatIsTooDeepAreRefused) {
  pickd_queue* queue = nullptr;
  EXPECT_EQ(pickd_queue_open(client_.get(), 4097, &queue), -EINVAL);
  EXPECT_EQ(queue, nullptr);
}

// ---- Reports ------------------------------------------------------------------------------------

TEST_F(Arguments, OfAReportOutOfRangeAreRefused) {
  const auto with = [this](const auto& change, int code) {
    pickd_report_info report = good_report();
    change(report);
    expect_refused(report, code);
  };
  with([](auto& r) { store_number(r.kind, 0); }, -EINVAL);
  with([](auto& r) { store_number(r.kind, 7); }, -EINVAL);
  with([](auto& r) { store_number(r.kind, -1); }, -EINVAL);
  with([](auto& r) { r.kind = PICKD_REPORT_FALLBACK; }, -EINVAL);
  with([](auto& r) { r.endpoint = pickd_string("a"); }, -EINVAL);
  with(
      [this](auto& r) {
        r.kind = PICKD_REPORT_FALLBACK;
        r.endpoint = {long_.data(), 128};
      },
      -E2BIG);
}

// ---- Endpoints ----------------------------------------------------------------------------------

TEST_F(Arguments, OfAnEndpointOutOfRangeAreRefused) {
  const auto with = [this](const auto& change, int code) {
    pickd_endpoint endpoint = good_endpoint();
    change(endpoint);
    expect_refused(endpoint, code);
  };
  const std::string long_name(128, 'n');
  const std::vector<const char*> names(65, "m");
  const char* const null_name[] = {nullptr};
  const char* const long_names[] = {long_.c_str()};
  const pickd_label no_key{"", "v"};
  const pickd_label null_value{"k", nullptr};
  const std::vector<pickd_label> labels(65, {"k", "v"});
  with([](auto& e) { e.name = nullptr; }, -EINVAL);
  with([](auto& e) { e.name = ""; }, -EINVAL);
  with([](auto& e) { e.address = nullptr; }, -EINVAL);
  with([&](auto& e) { e.name = long_name.c_str(); }, -E2BIG);
  with([&](auto& e) { e.address = long_name.c_str(); }, -E2BIG);
  with([&](auto& e) { e.pool = long_name.c_str(); }, -E2BIG);
  with([](auto& e) { store_number(e.role, 4); }, -EINVAL);
  with([](auto& e) { store_number(e.role, -1); }, -EINVAL);
  with([](auto& e) { e.model_count = 1; }, -EINVAL);
  with(
      [&](auto& e) {
        e.models = null_name;
        e.model_count = 1;
      },
      -EINVAL);
  with(
      [&](auto& e) {
        e.models = names.data();
        e.model_count = 65;
      },
      -E2BIG);
  with(
      [&](auto& e) {
        e.models = long_names;
        e.model_count = 1;
      },
      -E2BIG);
  with(
      [&](auto& e) {
        e.labels = &no_key;
        e.label_count = 1;
      },
      -EINVAL);
  with(
      [&](auto& e) {
        e.labels = &null_value;
        e.label_count = 1;
      },
      -EINVAL);
  with(
      [&](auto& e) {
        e.labels = labels.data();
        e.label_count = 65;
      },
      -E2BIG);
  with(
      [&](auto& e) {
        e.adapters_active = names.data();
        e.adapter_active_count = 17;
      },
      -E2BIG);
  with(
      [&](auto& e) {
        e.adapters_waiting = names.data();
        e.adapter_waiting_count = 17;
      },
      -E2BIG);
  EXPECT_EQ(pickd_endpoint_remove(client_.get(), long_name.c_str()), -E2BIG);
  EXPECT_EQ(pickd_endpoint_drain(client_.get(), "", 1), -EINVAL);
}

// ---- Words --------------------------------------------------------------------------------------

TEST(Words, ExistForEveryErrorTheHeaderNames) {
  const std::string unknown = pickd_strerror(-9999);
  for (const int error :
       {EHOSTUNREACH, EBUSY, ENOENT, EINVAL, E2BIG, EEXIST, EPERM, EACCES, ESTALE, EOWNERDEAD,
        ETIMEDOUT, EAGAIN, ENOTCONN, EPROTO, EPROTONOSUPPORT, ENOMEM}) {
    EXPECT_NE(pickd_strerror(-error), unknown) << error;
    EXPECT_STREQ(pickd_strerror(-error), pickd_strerror(error));
  }
  EXPECT_STREQ(pickd_strerror(0), "success");
  EXPECT_STREQ(pickd_strerror(INT32_MIN), unknown.c_str());
}

TEST(Words, NameEveryReason) {
  EXPECT_STREQ(pickd_reason_name(PICKD_REASON_TIE), "tie");
  EXPECT_STREQ(pickd_reason_name(PICKD_REASON_DEGRADED), "degraded");
  EXPECT_STREQ(pickd_reason_name(PICKD_REASON_UNPREDICTED), "unpredicted");
  EXPECT_STREQ(pickd_reason_name(static_cast<pickd_reason>(10)), "unknown");
  EXPECT_STREQ(pickd_version(), "0.1.0");
}

TEST(LastError, IsCutAndTerminatedAndTellsItsWholeLength) {
  LastError error;
  char small[4] = {'x', 'x', 'x', 'x'};
  EXPECT_EQ(error.copy(small, sizeof small), 0U);
  EXPECT_STREQ(small, "");
  EXPECT_EQ(error.set(-EINVAL, "%s", "abcdef"), -EINVAL);
  EXPECT_EQ(error.copy(small, sizeof small), 6U);
  EXPECT_STREQ(small, "abc");
  EXPECT_EQ(error.copy(nullptr, 0), 6U);
  EXPECT_EQ(pickd_last_error(nullptr, small, sizeof small), 0U);
  EXPECT_STREQ(small, "");
}

}  // namespace
}  // namespace pickd::client
