// A request becomes the record that abi/LAYOUT.md specifies.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "libclient/pick_request.hpp"
#include "tests/libclient/support.hpp"

namespace pickd::client {
namespace {

struct Decoded {
  abi::PickRecord record;
  std::vector<std::uint64_t> keys;
  std::vector<std::pair<abi::FieldKind, std::string>> fields;
};

class PickRecords : public testing::Test {
 protected:
  PickRecords() { EXPECT_EQ(state_.map(make_state_segment(), error_), 0) << last_error(error_); }

  Decoded encode(const pickd_request& request, std::uint32_t keys_max = 2048) {
    PickRequest checked;
    EXPECT_EQ(checked.read(&request, error_), 0) << last_error(error_);
    PickShape shape{};
    EXPECT_EQ(checked.shape(state_, keys_max, shape, error_), 0) << last_error(error_);
    std::vector<std::byte> bytes(shape.bytes + 64, std::byte{0xA5});
    checked.write(shape, state_, TickClock(), 42, bytes.data());
    for (std::size_t i = shape.bytes; i < bytes.size(); ++i) {
      EXPECT_EQ(bytes[i], std::byte{0xA5}) << "wrote behind the record's end";
    }
    return decode(bytes, shape.bytes);
  }

  static Decoded decode(const std::vector<std::byte>& bytes, std::size_t size) {
    Decoded decoded;
    std::memcpy(&decoded.record, bytes.data(), sizeof decoded.record);
    EXPECT_EQ(decoded.record.head.bytes, size);
    std::size_t at = sizeof decoded.record;
    decoded.keys.resize(decoded.record.key_count);
    for (std::uint64_t& key : decoded.keys) {
      std::memcpy(&key, bytes.data() + at, sizeof key);
      at += sizeof key;
    }
    EXPECT_EQ(at + decoded.record.field_bytes, size);
    while (at < size) {
      abi::FieldHead head;
      std::memcpy(&head, bytes.data() + at, sizeof head);
      at += sizeof head;
      decoded.fields.emplace_back(
          head.kind, std::string(reinterpret_cast<const char*>(bytes.data()) + at, head.bytes));
      at += head.bytes;
    }
    EXPECT_EQ(at, size);
    return decoded;
  }

  static std::vector<std::string> fields_of(const Decoded& decoded, abi::FieldKind kind) {
    std::vector<std::string> found;
    for (const auto& [field_kind, content] : decoded.fields) {
      if (field_kind == kind) found.push_back(content);
    }
    return found;
  }

  StateView state_;
  LastError error_;
};

using Strings = std::vector<std::string>;

TEST_F(PickRecords, OfAnEmptyRequestHaveNoKeysAndNoFields) {
  const pickd_request request = PICKD_REQUEST_INIT;
  const Decoded decoded = encode(request);
  EXPECT_EQ(decoded.record.head.bytes, sizeof(abi::PickRecord));
  EXPECT_EQ(decoded.record.head.type, abi::RecordType::kPick);
  EXPECT_EQ(decoded.record.head.sequence, 42U);
  EXPECT_EQ(decoded.record.key_count, 0U);
  EXPECT_EQ(decoded.record.key_algorithm, 0);
  EXPECT_EQ(decoded.record.endpoints_max, 8);
  EXPECT_EQ(decoded.record.prompt_tokens, 0U);
}

TEST_F(PickRecords, CarryEveryNumberOfTheRequest) {
  pickd_request request = PICKD_REQUEST_INIT;
  request.slo_ttft_ms = 500;
  request.slo_itl_ms = 25;
  request.priority = -32768;
  request.expected_output_tokens = 77;
  request.endpoints_max = 3;
  request.prompt_tokens = 1234;
  request.flags = PICKD_REQUEST_STREAM | PICKD_REQUEST_DRY_RUN;
  const Decoded decoded = encode(request);
  EXPECT_EQ(decoded.record.slo_ttft_ms, 500.0F);
  EXPECT_EQ(decoded.record.slo_itl_ms, 25.0F);
  EXPECT_EQ(decoded.record.priority, -32768);
  EXPECT_EQ(decoded.record.expected_output_tokens, 77U);
  EXPECT_EQ(decoded.record.endpoints_max, 3);
  EXPECT_EQ(decoded.record.answer_bytes_max, 0U) << "a limit is the queue's, not the caller's";
  EXPECT_EQ(decoded.record.prompt_tokens, 1234U);
  EXPECT_EQ(decoded.record.head.flags, abi::kPickStream | abi::kPickDryRun);
}

TEST_F(PickRecords, SayThatMediaStandInThePromptAsExtrasOrInItsText) {
  pickd_request request = PICKD_REQUEST_INIT;
  EXPECT_EQ(encode(request).record.head.flags, 0);
  request.flags = PICKD_REQUEST_MEDIA;
  EXPECT_EQ(encode(request).record.head.flags, abi::kPickExtras);
}

TEST_F(PickRecords, LeaveSlosThatAreNoTimeToTheDaemon) {
  pickd_request request = PICKD_REQUEST_INIT;
  request.slo_ttft_ms = std::numeric_limits<double>::quiet_NaN();
  request.slo_itl_ms = -1;
  const Decoded decoded = encode(request);
  EXPECT_TRUE(std::isnan(decoded.record.slo_ttft_ms));
  EXPECT_EQ(decoded.record.slo_itl_ms, -1.0F);
}

TEST_F(PickRecords, CarryEveryStringOfTheRequest) {
  const std::string with_nul("se\0ss", 5);
  const pickd_slice subset[] = {pickd_string("10.0.0.1:80"), pickd_string("b"), pickd_string("")};
  const pickd_attribute attributes[] = {{pickd_string("x-user"), pickd_string("ann")},
                                        {pickd_string("tier"), pickd_string("")}};
  pickd_request request = PICKD_REQUEST_INIT;
  request.model = pickd_string("m");
  request.adapter = pickd_string("lora");
  request.session_id = {with_nul.data(), with_nul.size()};
  request.fairness_id = pickd_string("fair");
  request.request_id = pickd_string("id-1");
  request.subset = subset;
  request.subset_count = 3;
  request.flags = PICKD_REQUEST_SUBSET;
  request.attributes = attributes;
  request.attribute_count = 2;
  const Decoded decoded = encode(request);
  EXPECT_EQ(fields_of(decoded, abi::FieldKind::kModel), Strings{"m"});
  EXPECT_EQ(fields_of(decoded, abi::FieldKind::kAdapter), Strings{"lora"});
  EXPECT_EQ(fields_of(decoded, abi::FieldKind::kSession), Strings{with_nul});
  EXPECT_EQ(fields_of(decoded, abi::FieldKind::kFairness), Strings{"fair"});
  EXPECT_EQ(fields_of(decoded, abi::FieldKind::kRequestId), Strings{"id-1"});
  EXPECT_EQ(fields_of(decoded, abi::FieldKind::kSubsetEndpoint), (Strings{"10.0.0.1:80", "b", ""}));
  EXPECT_EQ(fields_of(decoded, abi::FieldKind::kAttribute),
            (Strings{std::string("x-user\0ann", 10), std::string("tier\0", 5)}));
  EXPECT_EQ(decoded.record.head.flags, abi::kPickSubset);
}

TEST_F(PickRecords, KeepAnEmptySubsetHintApartFromNone) {
  pickd_request request = PICKD_REQUEST_INIT;
  request.flags = PICKD_REQUEST_SUBSET;
  EXPECT_EQ(encode(request).record.head.flags, abi::kPickSubset);
  const pickd_slice unheeded[] = {pickd_string("a")};
  request.flags = 0;
  request.subset = unheeded;
  request.subset_count = 1;
  EXPECT_TRUE(encode(request).fields.empty());
}

TEST_F(PickRecords, CountPromptTokensOfTextByFourBytes) {
  pickd_request request = PICKD_REQUEST_INIT;
  const pickd_slice text[] = {{"0123456789", 10}, {"abc", 3}};
  request.text = text;
  request.text_count = 2;
  const Decoded decoded = encode(request);
  EXPECT_EQ(decoded.record.prompt_tokens, 4U);
  EXPECT_EQ(decoded.record.key_count, 1U);
  EXPECT_EQ(decoded.record.key_algorithm, 1);
}

TEST_F(PickRecords, CarryTheKeysOfTheirPrompt) {
  const std::vector<std::uint32_t> ids(100, 3);
  pickd_request request = PICKD_REQUEST_INIT;
  request.model = pickd_string("base");
  request.salt = pickd_string("tenant");
  request.token_ids = ids.data();
  request.token_count = ids.size();
  const Decoded decoded = encode(request);
  EXPECT_EQ(decoded.record.key_algorithm, 2);
  EXPECT_EQ(decoded.record.prompt_tokens, 100U);
  ASSERT_EQ(decoded.keys.size(), 2U);

  const abi::KeyHasher hasher(state_.hash_secret());
  const abi::KeyAlgorithm& algorithm = *state_.algorithm(abi::KeyKind::kTokens);
  const std::uint64_t root = hasher.root(algorithm, "base", 4, "tenant", 6);
  EXPECT_EQ(decoded.keys[0], hasher.chain(root, hasher.hash(ids.data(), 256)));
  EXPECT_EQ(decoded.keys[1], hasher.chain(decoded.keys[0], hasher.hash(ids.data() + 64, 144)));
}

TEST_F(PickRecords, RootTheChainInTheAdapterWhereOneIsUsed) {
  const pickd_slice text = pickd_string("some prompt");
  pickd_request request = PICKD_REQUEST_INIT;
  request.text = &text;
  request.text_count = 1;
  request.model = pickd_string("m");
  const Decoded plain = encode(request);
  request.adapter = pickd_string("a");
  const Decoded adapted = encode(request);
  EXPECT_NE(plain.keys, adapted.keys);
  request.model = pickd_string("other");
  EXPECT_EQ(encode(request).keys, adapted.keys);
}

TEST_F(PickRecords, AreCutAtTheChannelsLimitAndSaySo) {
  const std::string text(64 << 20, 'x');
  const pickd_slice slice{text.data(), text.size()};
  pickd_request request = PICKD_REQUEST_INIT;
  request.text = &slice;
  request.text_count = 1;
  const Decoded decoded = encode(request);
  EXPECT_EQ(decoded.record.key_count, 2048U);
  EXPECT_EQ(decoded.record.head.flags, abi::kPickCut);
  EXPECT_EQ(decoded.record.prompt_tokens, 16U << 20) << "the whole prompt, not what was kept";

  const pickd_slice fits{text.data(), 2048 * 256};
  request.text = &fits;
  EXPECT_EQ(encode(request).record.head.flags, 0);
  EXPECT_EQ(encode(request, 2047).record.head.flags, abi::kPickCut);
}

TEST_F(PickRecords, HoldTheMostStringsThatFit) {
  const std::string longest(255, 's');
  std::vector<pickd_attribute> attributes(32, {{longest.data(), 255}, {longest.data(), 255}});
  std::vector<pickd_slice> subset(24, {longest.data(), 127});
  pickd_request request = PICKD_REQUEST_INIT;
  request.model = request.adapter = request.session_id = request.fairness_id =
      request.request_id = {longest.data(), 255};
  request.attributes = attributes.data();
  request.attribute_count = attributes.size();
  request.subset = subset.data();
  request.subset_count = subset.size();
  request.flags = PICKD_REQUEST_SUBSET;
  const Decoded decoded = encode(request);
  EXPECT_EQ(decoded.fields.size(), 5U + 32 + 24);
  EXPECT_LE(decoded.record.field_bytes, abi::kFieldBytesMax);
}

TEST_F(PickRecords, NeedAnAlgorithmThatTheDaemonLists) {
  StateView state;
  Fd segment = make_state_segment([](auto& header) { header.key_algorithms[1] = {}; });
  ASSERT_EQ(state.map(std::move(segment), error_), 0);
  const std::uint32_t id = 1;
  pickd_request request = PICKD_REQUEST_INIT;
  request.token_ids = &id;
  request.token_count = 1;
  PickRequest checked;
  ASSERT_EQ(checked.read(&request, error_), 0);
  PickShape shape{};
  EXPECT_EQ(checked.shape(state, 2048, shape, error_), -EPROTO);
}

}  // namespace
}  // namespace pickd::client
