// Decoding submissions: what fits the layout comes out whole, every malformed variant is refused.
#include "daemon/workers/submission.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace pickd::workers {
namespace {

using Field = std::pair<abi::FieldKind, std::string>;

// A kPick record as a client writes it; `spoil` may change its head.
struct PickBuilder {
  abi::PickRecord head{};
  std::vector<std::uint64_t> keys;
  std::string fields;

  PickBuilder() {
    head.head.type = abi::RecordType::kPick;
    head.head.sequence = 77;
    head.key_algorithm = 1;
    head.endpoints_max = 8;
  }
  PickBuilder& field(abi::FieldKind kind, const std::string& content) {
    const abi::FieldHead field_head{kind, 0, static_cast<std::uint16_t>(content.size())};
    fields.append(reinterpret_cast<const char*>(&field_head), sizeof field_head);
    fields += content;
    return *this;
  }
  // In a buffer of exactly the record's size, aligned: a byte read beyond is seen by ASan.
  std::vector<std::uint64_t> words;
  std::span<const std::byte> build() {
    head.key_count = static_cast<std::uint32_t>(keys.size());
    head.field_bytes = static_cast<std::uint32_t>(fields.size());
    return build_as_is();
  }
  std::span<const std::byte> build_as_is() {
    const std::size_t bytes = sizeof head + keys.size() * 8 + fields.size();
    words.assign((bytes + 7) / 8, 0);
    head.head.bytes = static_cast<std::uint32_t>(bytes);
    auto* at = reinterpret_cast<std::byte*>(words.data());
    std::memcpy(at, &head, sizeof head);
    if (!keys.empty()) std::memcpy(at + sizeof head, keys.data(), keys.size() * 8);
    if (!fields.empty())
      std::memcpy(at + sizeof head + keys.size() * 8, fields.data(), fields.size());
    return {at, bytes};
  }
};

class DecodePick : public ::testing::Test {
 protected:
  bool decode(std::span<const std::byte> record) {
    return decode_pick(record, limits_, scratch_, decoded_);
  }
  bool decode(PickBuilder& pick) { return decode(pick.build()); }

  PickLimits limits_{64, {1, 2, 0, 0, 0, 0, 0, 0}};
  DecodeScratch scratch_;
  DecodedPick decoded_;
  PickBuilder pick_;
};

TEST_F(DecodePick, TakesEverythingThatARequestMayCarry) {
  pick_.keys = {11, 22, 33};
  pick_.head.prompt_tokens = 180;
  pick_.head.expected_output_tokens = 500;
  pick_.head.slo_ttft_ms = 200;
  pick_.head.slo_itl_ms = 20;
  pick_.head.priority = -3;
  pick_.head.endpoints_max = 2;
  pick_.head.answer_bytes_max = 640;
  pick_.head.head.flags =
      abi::kPickStream | abi::kPickCut | abi::kPickSubset | abi::kPickDryRun | abi::kPickExtras;
  pick_.field(abi::FieldKind::kSession, "s")
      .field(abi::FieldKind::kModel, "llama")
      .field(abi::FieldKind::kAdapter, "a")
      .field(abi::FieldKind::kFairness, "f")
      .field(abi::FieldKind::kRequestId, "r")
      .field(abi::FieldKind::kSubsetEndpoint, "e1")
      .field(abi::FieldKind::kSubsetEndpoint, "e2:80")
      .field(abi::FieldKind::kAttribute, std::string("key\0value", 9))
      .field(abi::FieldKind::kAttribute, std::string("k2\0", 3));
  ASSERT_TRUE(decode(pick_));
  const pick::PickRequest& request = decoded_.request;
  EXPECT_EQ(std::vector<std::uint64_t>(request.keys.begin(), request.keys.end()), pick_.keys);
  EXPECT_EQ(request.prompt_tokens, 180U);
  EXPECT_EQ(request.expected_output_tokens, 500U);
  EXPECT_EQ(request.slo_ttft_ms, 200);
  EXPECT_EQ(request.slo_itl_ms, 20);
  EXPECT_EQ(request.priority, -3);
  EXPECT_EQ(request.endpoints_max, 2);
  EXPECT_EQ(decoded_.answer_bytes_max, 640U);
  EXPECT_TRUE(request.stream && request.dry_run && request.has_subset && decoded_.cut);
  EXPECT_TRUE(request.multimodal);
  EXPECT_EQ(request.model, "llama");
  EXPECT_EQ(request.adapter, "a");
  EXPECT_EQ(request.session, "s");
  EXPECT_EQ(request.fairness, "f");
  EXPECT_EQ(request.request_id, "r");
  ASSERT_EQ(request.subset.size(), 2U);
  EXPECT_EQ(request.subset[1], "e2:80");
  ASSERT_EQ(request.attributes.size(), 2U);
  EXPECT_EQ(request.attributes[0].key, "key");
  EXPECT_EQ(request.attributes[0].value, "value");
  EXPECT_EQ(request.attributes[1].value, "");
  EXPECT_EQ(request.ticket.sequence, 77U);
  EXPECT_EQ(decoded_.slo_ignored, 0U);
}

TEST_F(DecodePick, KeepsNothingOfTheRequestBefore) {
  pick_.keys = {1};
  pick_.head.head.flags = 0xFF;
  pick_.field(abi::FieldKind::kModel, "llama").field(abi::FieldKind::kSubsetEndpoint, "e");
  ASSERT_TRUE(decode(pick_));
  PickBuilder bare;
  ASSERT_TRUE(decode(bare));
  EXPECT_TRUE(decoded_.request.keys.empty());
  EXPECT_TRUE(decoded_.request.model.empty());
  EXPECT_TRUE(decoded_.request.subset.empty());
  EXPECT_FALSE(decoded_.request.has_subset || decoded_.request.stream || decoded_.cut);
}

TEST_F(DecodePick, RefusesARecordThatEndsWithinItsHead) {
  const auto record = pick_.build();
  for (std::size_t bytes = 0; bytes < sizeof(abi::PickRecord); ++bytes) {
    ASSERT_FALSE(decode(record.first(bytes))) << bytes;
  }
}

TEST_F(DecodePick, RefusesARecordThatEndsWithinItsKeysOrFields) {
  pick_.keys = {1, 2, 3};
  pick_.field(abi::FieldKind::kModel, "llama");
  const auto record = pick_.build();
  for (std::size_t bytes = sizeof(abi::PickRecord); bytes < record.size(); ++bytes) {
    // A buffer that ends there, so that a byte beyond is seen.
    std::vector<std::uint64_t> words((bytes + 7) / 8);
    std::memcpy(words.data(), record.data(), bytes);
    ASSERT_FALSE(decode({reinterpret_cast<const std::byte*>(words.data()), bytes})) << bytes;
  }
}

TEST_F(DecodePick, RefusesMoreKeysThanTheLimitOrThanThereAre) {
  pick_.keys.assign(64, 1);
  EXPECT_TRUE(decode(pick_));
  pick_.keys.assign(65, 1);
  EXPECT_FALSE(decode(pick_));
  pick_.keys.assign(10, 1);
  pick_.build();
  for (const std::uint32_t count : {11U, 64U, 0x20000001U, 0xFFFFFFFFU}) {
    pick_.head.key_count = count;
    EXPECT_FALSE(decode(pick_.build_as_is())) << count;
  }
}

TEST_F(DecodePick, RefusesMoreFieldBytesThanThereAre) {
  pick_.keys = {1};
  pick_.field(abi::FieldKind::kModel, "llama");
  pick_.build();
  const auto honest = static_cast<std::uint32_t>(pick_.fields.size());
  for (const std::uint32_t bytes : {honest + 1, honest + 8, 24U * 1024 + 1, 0xFFFFFFFFU}) {
    pick_.head.field_bytes = bytes;
    EXPECT_FALSE(decode(pick_.build_as_is())) << bytes;
  }
}

TEST_F(DecodePick, RefusesFieldsThatDoNotFillTheirBytes) {
  for (const std::uint32_t rest : {1U, 2U, 3U}) {
    PickBuilder pick;
    pick.field(abi::FieldKind::kModel, "llama");
    pick.fields.append(rest, '\0');
    EXPECT_FALSE(decode(pick)) << rest << " bytes are no field head";
  }
}

TEST_F(DecodePick, RefusesAFieldLongerThanTheRest) {
  pick_.field(abi::FieldKind::kModel, "llama");
  for (const std::uint16_t bytes : {6, 7, 255, 65'535}) {
    std::memcpy(pick_.fields.data() + 2, &bytes, sizeof bytes);
    EXPECT_FALSE(decode(pick_)) << bytes;
  }
}

TEST_F(DecodePick, RefusesFieldsOfAnUnknownKind) {
  for (const int kind : {0, 8, 100, 255}) {
    PickBuilder pick;
    pick.field(static_cast<abi::FieldKind>(kind), "x");
    EXPECT_FALSE(decode(pick)) << kind;
  }
}

TEST_F(DecodePick, RefusesStringsOverTheirLimit) {
  for (const auto kind :
       {abi::FieldKind::kModel, abi::FieldKind::kAdapter, abi::FieldKind::kSession,
        abi::FieldKind::kFairness, abi::FieldKind::kRequestId}) {
    PickBuilder fits;
    fits.field(kind, std::string(255, 'x'));
    EXPECT_TRUE(decode(fits)) << static_cast<int>(kind);
    PickBuilder over;
    over.field(kind, std::string(256, 'x'));
    EXPECT_FALSE(decode(over)) << static_cast<int>(kind);
  }
}

TEST_F(DecodePick, RefusesAStringThatIsThereTwice) {
  for (const auto kind :
       {abi::FieldKind::kModel, abi::FieldKind::kAdapter, abi::FieldKind::kSession,
        abi::FieldKind::kFairness, abi::FieldKind::kRequestId}) {
    for (const char* first : {"a", ""}) {
      PickBuilder twice;
      twice.field(kind, first).field(kind, "b");
      EXPECT_FALSE(decode(twice)) << static_cast<int>(kind) << " after \"" << first << '"';
    }
  }
}

TEST_F(DecodePick, TakesAsManySubsetEntriesAndAttributesAsTheLimitsSay) {
  PickBuilder subset;
  for (int at = 0; at < 512; ++at) subset.field(abi::FieldKind::kSubsetEndpoint, "e");
  EXPECT_TRUE(decode(subset));
  EXPECT_EQ(decoded_.request.subset.size(), 512U);
  subset.field(abi::FieldKind::kSubsetEndpoint, "e");
  EXPECT_FALSE(decode(subset));
  PickBuilder attributes;
  const std::string attribute("k\0v", 3);
  for (int at = 0; at < 32; ++at) attributes.field(abi::FieldKind::kAttribute, attribute);
  EXPECT_TRUE(decode(attributes));
  attributes.field(abi::FieldKind::kAttribute, attribute);
  EXPECT_FALSE(decode(attributes));
}

TEST_F(DecodePick, RefusesAnAttributeWithoutItsBorderOrOverItsLimits) {
  const std::string nul(1, '\0');
  const std::string long_text(256, 'x');
  const std::string fits(255, 'x');
  for (const std::string& bad :
       {std::string("key"), std::string(), long_text + nul, nul + long_text}) {
    PickBuilder pick;
    pick.field(abi::FieldKind::kAttribute, bad);
    EXPECT_FALSE(decode(pick)) << bad.size();
  }
  PickBuilder good;
  good.field(abi::FieldKind::kAttribute, fits + nul + fits);
  EXPECT_TRUE(decode(good));
}

TEST_F(DecodePick, RefusesAKeyAlgorithmThatTheHeaderDoesNotList) {
  pick_.keys = {1};
  for (const std::uint8_t algorithm : {0, 3, 255}) {
    pick_.head.key_algorithm = algorithm;
    EXPECT_FALSE(decode(pick_)) << int{algorithm};
  }
  pick_.head.key_algorithm = 2;
  EXPECT_TRUE(decode(pick_));
  pick_.keys.clear();
  pick_.head.key_algorithm = 0;
  EXPECT_TRUE(decode(pick_)) << "without keys none is needed";
}

TEST_F(DecodePick, RefusesAWishForNoOrTooManyEndpoints) {
  for (const std::uint8_t wanted : {0, 9, 255}) {
    pick_.head.endpoints_max = wanted;
    EXPECT_FALSE(decode(pick_)) << int{wanted};
  }
}

TEST_F(DecodePick, TakesARequestForMultimodalThatSaysSoWithoutExtras) {
  const auto multimodal = [this](const std::string& value) {
    pick_.fields.clear();
    pick_.field(abi::FieldKind::kAttribute, std::string("X-Pickd-Media\0", 14) + value);
    EXPECT_TRUE(decode(pick_.build()));
    return decoded_.request.multimodal;
  };
  EXPECT_TRUE(multimodal("2"));
  EXPECT_FALSE(multimodal("0"));
  EXPECT_FALSE(multimodal(""));
  pick_.fields.clear();
  EXPECT_TRUE(decode(pick_.build()));
  EXPECT_FALSE(decoded_.request.multimodal);
}

// Field case 46: a TTL of the request, and none where it is no time.
TEST_F(DecodePick, ReadsHowLongTheRequestsAffinityLasts) {
  const auto ttl_of = [this](const std::string& value) {
    pick_.fields.clear();
    pick_.field(abi::FieldKind::kAttribute, std::string("x-pickd-affinity-ttl\0", 21) + value);
    EXPECT_TRUE(decode(pick_.build()));
    return decoded_.request.affinity_ttl_ms;
  };
  EXPECT_EQ(ttl_of("5m"), 300'000U);
  EXPECT_EQ(decoded_.ttl_ignored, 0U);
  EXPECT_EQ(ttl_of("for ever"), 0U);
  EXPECT_EQ(decoded_.ttl_ignored, 1U);
  EXPECT_EQ(ttl_of("1h"), 3'600'000U);
  EXPECT_EQ(decoded_.ttl_ignored, 0U);
}

// Field case 91: no SLO value makes a request the most urgent.
TEST_F(DecodePick, ReadsSlosThatAreNoTimeOfARequestAsNoneAndCountsThem) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float day_ms = 24.0F * 3600 * 1000;
  const std::pair<float, std::optional<float>> values[] = {
      {0.0F, 0.0F},
      {-0.0F, 0.0F},
      {200.0F, 200.0F},
      {1e3F, 1e3F},
      {0.001F, 0.001F},
      {day_ms, day_ms},
      {day_ms * 1.01F, {}},
      {9.3e12F, {}},
      {9223372036854775807.0F, {}},
      {-1.0F, {}},
      {-1e-30F, {}},
      {infinity, {}},
      {-infinity, {}},
      {std::nanf(""), {}},
      {-std::nanf(""), {}},
      {std::numeric_limits<float>::max(), {}},
  };
  for (const auto& [told, counts] : values) {
    PickBuilder pick;
    pick.head.slo_ttft_ms = told;
    pick.head.slo_itl_ms = told;
    ASSERT_TRUE(decode(pick)) << told << ": the request goes on";
    EXPECT_EQ(decoded_.request.slo_ttft_ms, counts.value_or(0.0F)) << told;
    EXPECT_EQ(decoded_.request.slo_itl_ms, counts.value_or(0.0F)) << told;
    EXPECT_EQ(decoded_.slo_ignored, counts ? 0U : 2U) << told;
  }
}

class DecodeReport : public ::testing::Test {
 protected:
  DecodeReport() {
    head_.head.bytes = sizeof head_;
    head_.head.type = abi::RecordType::kReport;
    head_.ticket_client = 1;
    head_.ticket_sequence = 2;
    head_.kind = abi::ReportKind::kDone;
    head_.prompt_tokens = 100;
    head_.cached_tokens = abi::kUnknown32;
    head_.output_tokens = 20;
  }
  bool decode(const std::string& name = "") {
    bytes_.resize(sizeof head_ + name.size());
    std::memcpy(bytes_.data(), &head_, sizeof head_);
    std::memcpy(bytes_.data() + sizeof head_, name.data(), name.size());
    return decode_report(bytes_, decoded_);
  }
  abi::ReportRecord head_{};
  std::vector<std::byte> bytes_;
  DecodedReport decoded_;
};

TEST_F(DecodeReport, TakesTicketKindAndUsage) {
  ASSERT_TRUE(decode());
  EXPECT_EQ(decoded_.ticket.client, 1U);
  EXPECT_EQ(decoded_.ticket.sequence, 2U);
  EXPECT_EQ(decoded_.kind, abi::ReportKind::kDone);
  EXPECT_EQ(decoded_.prompt_tokens, 100U);
  EXPECT_EQ(decoded_.cached_tokens, abi::kUnknown32);
  EXPECT_EQ(decoded_.output_tokens, 20U);
  EXPECT_TRUE(decoded_.fallback.empty());
}

TEST_F(DecodeReport, TakesEveryKindAndNoOther) {
  for (int kind = 0; kind < 256; ++kind) {
    head_.kind = static_cast<abi::ReportKind>(kind);
    head_.fallback_name_bytes = 2;
    EXPECT_EQ(decode("e1"), kind >= 1 && kind <= 6) << kind;
  }
}

TEST_F(DecodeReport, RefusesARecordThatEndsEarly) {
  ASSERT_TRUE(decode());
  for (std::size_t bytes = 0; bytes < sizeof head_; ++bytes) {
    EXPECT_FALSE(decode_report(std::span(bytes_).first(bytes), decoded_)) << bytes;
  }
}

TEST_F(DecodeReport, NeedsTheNameOfAFallback) {
  head_.kind = abi::ReportKind::kFallback;
  EXPECT_FALSE(decode());
  head_.fallback_name_bytes = 5;
  EXPECT_FALSE(decode("name")) << "longer than what is there";
  EXPECT_TRUE(decode("name1"));
  EXPECT_EQ(decoded_.fallback, "name1");
}

}  // namespace
}  // namespace pickd::workers
