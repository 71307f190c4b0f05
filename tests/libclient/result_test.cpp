// A completion becomes a result only when it holds together; then it is the caller's own copy.
#include <errno.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "libclient/result.hpp"
#include "tests/libclient/support.hpp"

namespace pickd::client {
namespace {

struct TestEndpoint {
  std::string name;
  std::string address;
};

// A PickedRecord as a daemon writes it.
class Completion {
 public:
  explicit Completion(const std::vector<TestEndpoint>& endpoints) {
    std::string text;
    for (const TestEndpoint& endpoint : endpoints) text += endpoint.name + endpoint.address;
    bytes_.resize(sizeof(abi::PickedRecord) + endpoints.size() * sizeof(abi::PickedEndpoint) +
                  text.size());
    record().head = {static_cast<std::uint32_t>(bytes_.size()), abi::RecordType::kPick, 0, 0, 5};
    record().reason = abi::Reason::kPrefix;
    record().endpoint_count = static_cast<std::uint8_t>(endpoints.size());
    record().text_bytes = static_cast<std::uint16_t>(text.size());
    record().prompt_tokens = 1000;
    record().predicted_ttft_ms = 12.5F;
    record().predicted_itl_ms = std::nanf("");
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      abi::PickedEndpoint& endpoint = at(i);
      endpoint.match_tokens = static_cast<std::uint32_t>(64 * i);
      endpoint.score = 2.0F - static_cast<float>(i);
      endpoint.role = static_cast<std::uint8_t>(i % 4);
      endpoint.name_bytes = static_cast<std::uint8_t>(endpoints[i].name.size());
      endpoint.address_bytes = static_cast<std::uint8_t>(endpoints[i].address.size());
    }
    std::memcpy(bytes_.data() + bytes_.size() - text.size(), text.data(), text.size());
  }

  // Puts the endpoint that prefills behind the rest.
  void add_prefill(const TestEndpoint& endpoint, std::uint32_t match_tokens) {
    record().prefill_bytes = add_stage(endpoint, PICKD_ROLE_PREFILL, match_tokens);
  }
  // And the one that encodes behind that.
  void add_encode(const TestEndpoint& endpoint) {
    add_stage(endpoint, PICKD_ROLE_ENCODE, 0);
    record().head.flags |= abi::kPickedEncode;
  }
  void cut(std::size_t bytes) { record().head.bytes -= static_cast<std::uint32_t>(bytes); }

  abi::PickedRecord& record() { return *reinterpret_cast<abi::PickedRecord*>(bytes_.data()); }
  abi::PickedEndpoint& at(std::size_t index) {
    return reinterpret_cast<abi::PickedEndpoint*>(bytes_.data() + sizeof(abi::PickedRecord))[index];
  }
  int fill(pickd_result* result) {
    CompletionRecord completion{};
    completion.head = record().head;
    completion.data = bytes_.data();
    return result->fill(completion);
  }
  void spoil() { std::fill(bytes_.begin(), bytes_.end(), std::byte{0xEE}); }

 private:
  // Returns how long it is.
  std::uint32_t add_stage(const TestEndpoint& endpoint, pickd_role role,
                          std::uint32_t match_tokens) {
    abi::PickedEndpoint entry{};
    entry.match_tokens = match_tokens;
    entry.role = static_cast<std::uint8_t>(role);
    entry.name_bytes = static_cast<std::uint8_t>(endpoint.name.size());
    entry.address_bytes = static_cast<std::uint8_t>(endpoint.address.size());
    const auto* from = reinterpret_cast<const std::byte*>(&entry);
    bytes_.insert(bytes_.end(), from, from + sizeof entry);
    for (const std::string& text : {endpoint.name, endpoint.address}) {
      const auto* letters = reinterpret_cast<const std::byte*>(text.data());
      bytes_.insert(bytes_.end(), letters, letters + text.size());
    }
    record().head.bytes = static_cast<std::uint32_t>(bytes_.size());
    return static_cast<std::uint32_t>(sizeof entry + endpoint.name.size() +
                                      endpoint.address.size());
  }

  std::vector<std::byte> bytes_;
};

const std::vector<TestEndpoint> kTwo = {{"a", "10.0.0.1:8000"}, {"bb", "http://b:80"}};

void expect_empty(const pickd_result* result, int status) {
  EXPECT_EQ(pickd_result_status(result), status);
  EXPECT_EQ(pickd_result_endpoint_count(result), 0U);
  EXPECT_EQ(pickd_result_address(result, 0), nullptr);
  EXPECT_EQ(pickd_result_name(result, 0), nullptr);
  EXPECT_EQ(pickd_result_match_tokens(result, 0), 0U);
  EXPECT_TRUE(std::isnan(pickd_result_score(result, 0)));
  EXPECT_TRUE(std::isnan(pickd_result_ttft_ms(result)));
  EXPECT_EQ(pickd_result_ticket(result).sequence, 0U);
}

TEST(PickResult, TakesFallbacksOutInAnyOrderAndMovesNothing) {
  std::vector<TestEndpoint> endpoints;
  for (int at = 0; at < 7; ++at) {
    const std::string digit = std::to_string(at);
    endpoints.push_back({std::string(127, 'n') + digit, "10.0.0." + digit + ":8000"});
    endpoints.back().name.erase(0, 1);
  }
  const Result result = new_result();
  Completion completion(endpoints);
  completion.add_prefill({"p", "10.0.0.9:8000"}, 640);
  ASSERT_EQ(completion.fill(result.get()), 0);
  completion.spoil();
  const char* const winner = pickd_result_name(result.get(), 0);
  EXPECT_STREQ(winner, endpoints[0].name.c_str());
  const char* const prefill = pickd_result_prefill_name(result.get());
  const char* const last = pickd_result_address(result.get(), 6);
  for (std::size_t at = 0; at < endpoints.size(); ++at) {
    EXPECT_STREQ(pickd_result_name(result.get(), at), endpoints[at].name.c_str());
    EXPECT_STREQ(pickd_result_address(result.get(), at), endpoints[at].address.c_str());
    EXPECT_EQ(pickd_result_match_tokens(result.get(), at), 64 * at);
  }
  EXPECT_EQ(pickd_result_name(result.get(), 0), winner);
  EXPECT_EQ(pickd_result_address(result.get(), 6), last);
  EXPECT_EQ(pickd_result_prefill_name(result.get()), prefill);
  EXPECT_STREQ(prefill, "p");
  EXPECT_EQ(pickd_result_address(result.get(), 7), nullptr);
}

TEST(PickResult, NamesWhoPrefills) {
  const Result result = new_result();
  Completion completion(kTwo);
  completion.add_prefill({"p", "10.0.0.9:8000"}, 640);
  ASSERT_EQ(completion.fill(result.get()), 0);
  EXPECT_STREQ(pickd_result_prefill_name(result.get()), "p");
  EXPECT_STREQ(pickd_result_prefill_address(result.get()), "10.0.0.9:8000");
  EXPECT_EQ(pickd_result_prefill_match_tokens(result.get()), 640U);
  EXPECT_EQ(pickd_result_endpoint_count(result.get()), 2U) << "it is none of the endpoints";
  EXPECT_STREQ(pickd_result_address(result.get(), 1), "http://b:80");
  Completion whole(kTwo);
  ASSERT_EQ(whole.fill(result.get()), 0);
  EXPECT_EQ(pickd_result_prefill_name(result.get()), nullptr);
  EXPECT_EQ(pickd_result_prefill_address(result.get()), nullptr);
  EXPECT_EQ(pickd_result_prefill_match_tokens(result.get()), 0U);
  EXPECT_EQ(pickd_result_prefill_name(nullptr), nullptr);
}

TEST(PickResult, RefusesAPrefillEndpointThatDoesNotHoldTogether) {
  const auto refused = [](std::uint32_t prefill_bytes) {
    const Result result = new_result();
    Completion completion(kTwo);
    completion.add_prefill({"p", "10.0.0.9:8000"}, 640);
    completion.record().prefill_bytes = prefill_bytes;
    EXPECT_EQ(completion.fill(result.get()), -EPROTO) << prefill_bytes;
    EXPECT_EQ(pickd_result_prefill_name(result.get()), nullptr);
    EXPECT_EQ(pickd_result_endpoint_count(result.get()), 0U);
  };
  for (const std::uint32_t bytes : {1U, 23U, 24U, 30U, 39U, 10'000U, 0xFFFFFFFFU}) refused(bytes);
  const Result result = new_result();
  Completion full(std::vector<TestEndpoint>(8, {"a", "b"}));
  full.add_prefill({"p", "q"}, 0);
  EXPECT_EQ(full.fill(result.get()), -EPROTO) << "eight in all";
}

TEST(PickResult, NamesWhoEncodesWithAPrefillEndpointAndWithout) {
  for (const bool prefills : {false, true}) {
    const Result result = new_result();
    Completion completion(kTwo);
    if (prefills) completion.add_prefill({"p", "10.0.0.9:8000"}, 640);
    completion.add_encode({"v", "10.0.0.8:8000"});
    ASSERT_EQ(completion.fill(result.get()), 0);
    completion.spoil();
    EXPECT_STREQ(pickd_result_encode_address(result.get()), "10.0.0.8:8000");
    EXPECT_STREQ(pickd_result_encode_name(result.get()), "v");
    EXPECT_EQ(pickd_result_prefill_name(result.get()) != nullptr, prefills);
    EXPECT_STREQ(pickd_result_address(result.get(), 1), "http://b:80");
    Completion whole(kTwo);
    ASSERT_EQ(whole.fill(result.get()), 0);
    EXPECT_EQ(pickd_result_encode_name(result.get()), nullptr);
    EXPECT_EQ(pickd_result_encode_address(result.get()), nullptr);
  }
  EXPECT_EQ(pickd_result_encode_name(nullptr), nullptr);
}

TEST(PickResult, RefusesAnEncodeEndpointThatDoesNotHoldTogether) {
  for (const std::size_t missing : {1U, 13U, 14U, 30U, 38U}) {
    const Result result = new_result();
    Completion completion(kTwo);
    completion.add_encode({"v", "10.0.0.8:8000"});
    completion.cut(missing);
    EXPECT_EQ(completion.fill(result.get()), -EPROTO) << missing;
    EXPECT_EQ(pickd_result_encode_name(result.get()), nullptr);
  }
  const Result result = new_result();
  Completion full(std::vector<TestEndpoint>(7, {"a", "b"}));
  full.add_prefill({"p", "q"}, 0);
  full.add_encode({"v", "w"});
  EXPECT_EQ(full.fill(result.get()), -EPROTO) << "eight in all";
}

TEST(PickResult, ListsEndpointsInOrder) {
  const Result result = new_result();
  Completion completion(kTwo);
  ASSERT_EQ(completion.fill(result.get()), 0);
  completion.spoil();  // the ring's memory is used again; the result is a copy
  ASSERT_EQ(pickd_result_endpoint_count(result.get()), 2U);
  EXPECT_STREQ(pickd_result_name(result.get(), 0), "a");
  EXPECT_STREQ(pickd_result_address(result.get(), 0), "10.0.0.1:8000");
  EXPECT_STREQ(pickd_result_name(result.get(), 1), "bb");
  EXPECT_STREQ(pickd_result_address(result.get(), 1), "http://b:80");
  EXPECT_EQ(pickd_result_role(result.get(), 1), PICKD_ROLE_DECODE);
  EXPECT_EQ(pickd_result_match_tokens(result.get(), 1), 64U);
  EXPECT_EQ(pickd_result_score(result.get(), 0), 2.0);
  EXPECT_EQ(pickd_result_reason(result.get()), PICKD_REASON_PREFIX);
  EXPECT_EQ(pickd_result_prompt_tokens(result.get()), 1000U);
  EXPECT_EQ(pickd_result_ttft_ms(result.get()), 12.5);
  EXPECT_TRUE(std::isnan(pickd_result_itl_ms(result.get())));
  EXPECT_EQ(pickd_result_flags(result.get()), 0U);
}

TEST(PickResult, GivesNothingOutOfRange) {
  const Result result = new_result();
  ASSERT_EQ(Completion(kTwo).fill(result.get()), 0);
  EXPECT_EQ(pickd_result_address(result.get(), 2), nullptr);
  EXPECT_EQ(pickd_result_name(result.get(), SIZE_MAX), nullptr);
  EXPECT_TRUE(std::isnan(pickd_result_score(result.get(), 2)));
  EXPECT_EQ(pickd_result_match_tokens(result.get(), 2), 0U);
  EXPECT_EQ(pickd_result_role(result.get(), 2), PICKD_ROLE_BOTH);
}

TEST(PickResult, HoldsTheLongestNamesOfEightEndpoints) {
  const std::vector<TestEndpoint> longest(8, {std::string(127, 'n'), std::string(127, 'a')});
  const Result result = new_result();
  ASSERT_EQ(Completion(longest).fill(result.get()), 0);
  EXPECT_EQ(std::string(pickd_result_name(result.get(), 7)), std::string(127, 'n'));
  EXPECT_EQ(std::string(pickd_result_address(result.get(), 7)), std::string(127, 'a'));
}

TEST(PickResult, SaysWhenThePromptWasCut) {
  const Result result = new_result();
  Completion completion(kTwo);
  completion.record().head.flags = abi::kPickedTruncated;
  ASSERT_EQ(completion.fill(result.get()), 0);
  EXPECT_EQ(pickd_result_flags(result.get()), PICKD_RESULT_CUT);
}

TEST(PickResult, HasNoReasonThatTheLibraryDoesNotKnow) {
  const Result result = new_result();
  Completion completion(kTwo);
  completion.record().reason = static_cast<abi::Reason>(200);
  ASSERT_EQ(completion.fill(result.get()), 0);
  EXPECT_EQ(pickd_result_reason(result.get()), PICKD_REASON_NONE);
}

TEST(PickResult, OfARefusedPickHoldsTheStatusAndNoEndpoint) {
  const Result result = new_result();
  ASSERT_EQ(Completion(kTwo).fill(result.get()), 0);
  Completion refused({});
  refused.record().status = -EBUSY;
  EXPECT_EQ(refused.fill(result.get()), -EBUSY);
  expect_empty(result.get(), -EBUSY);
}

TEST(PickResult, OfAMalformedCompletionIsAProtocolError) {
  const auto refused = [](const auto& spoil) {
    const Result result = new_result();
    Completion completion(kTwo);
    spoil(completion);
    EXPECT_EQ(completion.fill(result.get()), -EPROTO);
    expect_empty(result.get(), -EPROTO);
  };
  refused([](Completion& c) { c.record().head.type = abi::RecordType::kReport; });
  refused([](Completion& c) { c.record().head.bytes = 39; });
  refused([](Completion& c) { c.record().head.bytes = 1 << 20; });
  refused([](Completion& c) { c.record().status = 1; });
  refused([](Completion& c) { c.record().status = -100'000; });
  refused([](Completion& c) { c.record().endpoint_count = 0; });
  refused([](Completion& c) { c.record().endpoint_count = 3; });
  refused([](Completion& c) { c.record().endpoint_count = 9; });
  refused([](Completion& c) { c.record().endpoint_count = 255; });
  refused([](Completion& c) { c.record().text_bytes += 1; });
  refused([](Completion& c) { c.record().text_bytes = 0; });
  refused([](Completion& c) { c.at(0).name_bytes = 255; });
  refused([](Completion& c) { c.at(1).address_bytes += 1; });
  refused([](Completion& c) { c.at(0).name_bytes = 128; });
  refused([](Completion& c) { c.at(1).role = 4; });
}

TEST(PickResult, OfNothingAnswersWithoutAFault) {
  EXPECT_EQ(pickd_result_status(nullptr), -EINVAL);
  EXPECT_EQ(pickd_result_endpoint_count(nullptr), 0U);
  EXPECT_EQ(pickd_result_address(nullptr, 0), nullptr);
  EXPECT_TRUE(std::isnan(pickd_result_itl_ms(nullptr)));
  EXPECT_EQ(pickd_result_hash_ns(nullptr), 0U);
  pickd_result_free(nullptr);
}

TEST(PickResult, IsEmptyWhenItIsNew) { expect_empty(new_result().get(), 0); }

}  // namespace
}  // namespace pickd::client
