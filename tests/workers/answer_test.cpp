// Answers: a result goes into a completion record and comes out the same; no byte is left
// unwritten.
#include "daemon/workers/answer.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "daemon/endpoints/topology.hpp"

namespace pickd::workers {
namespace {

struct Answered {
  abi::PickedRecord record;
  std::vector<abi::PickedEndpoint> endpoints;
  std::vector<std::string> text;
  std::string prefill;  // its name and address
  std::string encode;   // the same
};

Answered read(std::span<const std::byte> bytes) {
  Answered got;
  std::size_t at = 0;
  const auto take = [&](void* into, std::size_t size) {
    if (size > bytes.size() - at) throw std::runtime_error("the record is too short");
    std::memcpy(into, bytes.data() + at, size);
    at += size;
  };
  take(&got.record, sizeof got.record);
  got.endpoints.resize(got.record.endpoint_count);
  for (auto& endpoint : got.endpoints) take(&endpoint, sizeof endpoint);
  std::size_t text_bytes = 0;
  for (const auto& endpoint : got.endpoints) {
    for (const std::size_t size : {endpoint.name_bytes, endpoint.address_bytes}) {
      std::string text(size, '\0');
      take(text.data(), size);
      got.text.push_back(text);
      text_bytes += size;
    }
  }
  EXPECT_EQ(text_bytes, got.record.text_bytes);
  const auto take_stage = [&take](std::string& into) {
    abi::PickedEndpoint stage;
    take(&stage, sizeof stage);
    into.resize(std::size_t{stage.name_bytes} + stage.address_bytes);
    take(into.data(), into.size());
    return sizeof stage + into.size();
  };
  if (got.record.prefill_bytes != 0) {
    EXPECT_EQ(take_stage(got.prefill), got.record.prefill_bytes);
  }
  if ((got.record.head.flags & abi::kPickedEncode) != 0) take_stage(got.encode);
  EXPECT_EQ(at, bytes.size());
  EXPECT_EQ(got.record.head.bytes, bytes.size());
  return got;
}

class Answers : public ::testing::Test {
 protected:
  pick::PickResult result_of(std::uint32_t count, std::size_t text_bytes) {
    pick::PickResult result;
    result.count = count;
    result.reason = abi::Reason::kPrefix;
    result.predicted_ttft_ms = 12.5F;
    result.predicted_itl_ms = std::nanf("");
    endpoints_.resize(count);
    for (std::uint32_t at = 0; at < count; ++at) {
      endpoints_[at].id = static_cast<std::uint16_t>(at + 1);
      endpoints_[at].role = abi::Role::kPrefill;
      endpoints_[at].name = std::string(text_bytes, static_cast<char>('a' + at));
      endpoints_[at].address = std::string(text_bytes, static_cast<char>('A' + at));
      result.endpoints[at] = {
          &endpoints_[at], at + 100, 0, at, at * 64, 0.5F * static_cast<float>(at)};
    }
    return result;
  }
  std::vector<endpoints::TopologyEndpoint> endpoints_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kAnswerBytesMax);
};

TEST_F(Answers, ComeOutAsTheyWentIn) {
  const auto result = result_of(3, 10);
  const Answered got = read(encode_picked(42, result, true, 999, buffer_));
  EXPECT_EQ(got.record.head.type, abi::RecordType::kPick);
  EXPECT_EQ(got.record.head.sequence, 42U);
  EXPECT_EQ(got.record.head.flags, abi::kPickedTruncated);
  EXPECT_EQ(got.record.status, 0);
  EXPECT_EQ(got.record.reason, abi::Reason::kPrefix);
  EXPECT_EQ(got.record.prompt_tokens, 999U);
  EXPECT_EQ(got.record.predicted_ttft_ms, 12.5F);
  EXPECT_TRUE(std::isnan(got.record.predicted_itl_ms));
  ASSERT_EQ(got.endpoints.size(), 3U);
  for (std::uint32_t at = 0; at < 3; ++at) {
    EXPECT_EQ(got.endpoints[at].handle, abi::endpoint_handle(at + 1, at + 100));
    EXPECT_EQ(got.endpoints[at].match_tokens, at * 64);
    EXPECT_EQ(got.endpoints[at].score, 0.5F * static_cast<float>(at));
    EXPECT_EQ(got.endpoints[at].role, static_cast<std::uint8_t>(abi::Role::kPrefill));
    EXPECT_EQ(got.text[2 * at], endpoints_[at].name);
    EXPECT_EQ(got.text[2 * at + 1], endpoints_[at].address);
  }
}

TEST_F(Answers, FitTheirBufferAtTheirLongest) {
  const auto result = result_of(8, 127);
  const auto bytes = encode_picked(1, result, false, 0, buffer_);
  EXPECT_EQ(bytes.size(), kAnswerBytesMax);
  EXPECT_EQ(read(bytes).record.head.flags, 0);
}

TEST_F(Answers, ListAsManyEndpointsAsThereIsRoomForAndTheWinnerAlways) {
  const auto result = result_of(8, 127);
  const std::size_t one = kAnswerBytesMin - sizeof(abi::PickedRecord);
  for (std::size_t room = kAnswerBytesMin; room <= kAnswerBytesMax; ++room) {
    const auto bytes =
        encode_picked(1, result, false, 0, std::span<std::byte>(buffer_).first(room));
    const Answered got = read(bytes);
    ASSERT_EQ(got.endpoints.size(), (room - sizeof(abi::PickedRecord)) / one) << room;
    ASSERT_EQ(got.text[0], endpoints_[0].name);
  }
}

TEST_F(Answers, PutWhoPrefillsBehindTheRestWhereThereIsRoom) {
  auto result = result_of(7, 127);
  endpoints::TopologyEndpoint prefill;
  prefill.name = "p";
  prefill.address = "q:1";
  result.has_prefill = true;
  result.prefill = {&prefill, 5, 0, 1, 64, 0.5F};
  for (std::size_t room = kAnswerBytesMin; room <= kAnswerBytesMax; ++room) {
    const Answered got =
        read(encode_picked(1, result, false, 0, std::span<std::byte>(buffer_).first(room)));
    ASSERT_EQ(got.text[0], endpoints_[0].name) << room;
    const bool both = room >= kAnswerBytesMin + sizeof(abi::PickedEndpoint) + 4;
    ASSERT_EQ(got.prefill, both ? "pq:1" : "") << room;
  }
}

TEST_F(Answers, PutWhoEncodesAtTheEndWhereThereIsRoom) {
  auto result = result_of(6, 127);
  endpoints::TopologyEndpoint prefill;
  prefill.name = "p";
  prefill.address = "q:1";
  endpoints::TopologyEndpoint encode;
  encode.name = "vv";
  encode.address = "w:1";
  result.has_encode = true;
  result.encode = {&encode, 5, 0, 0, 0, 0.5F};
  const std::size_t one = kAnswerBytesMin + sizeof(abi::PickedEndpoint) + 5;
  for (const bool prefills : {false, true}) {
    result.has_prefill = prefills;
    result.prefill = {&prefill, 5, 0, 1, 64, 0.5F};
    for (std::size_t room = kAnswerBytesMin; room <= kAnswerBytesMax; ++room) {
      const Answered got =
          read(encode_picked(1, result, false, 0, std::span<std::byte>(buffer_).first(room)));
      ASSERT_EQ(got.text[0], endpoints_[0].name) << room;
      if (!prefills) {
        ASSERT_EQ(got.encode, room >= one ? "vvw:1" : "") << room;
      } else if (room >= one + sizeof(abi::PickedEndpoint) + 4) {
        ASSERT_EQ(got.prefill + got.encode, "pq:1vvw:1") << room;
      }
    }
  }
}

TEST_F(Answers, RefuseWithAStatusAndNoEndpoint) {
  for (const int status : {-EINVAL, -EHOSTUNREACH, -EBUSY, -ENOENT}) {
    const Answered got = read(encode_refused(7, status, buffer_));
    EXPECT_EQ(got.record.status, status);
    EXPECT_EQ(got.record.endpoint_count, 0);
    EXPECT_EQ(got.record.head.sequence, 7U);
    EXPECT_TRUE(std::isnan(got.record.predicted_ttft_ms));
  }
}

TEST_F(Answers, TellTheStatusOfAReport) {
  const auto bytes = encode_reported(9, -ESTALE, buffer_);
  ASSERT_EQ(bytes.size(), sizeof(abi::ReportedRecord));
  abi::ReportedRecord record;
  std::memcpy(&record, bytes.data(), sizeof record);
  EXPECT_EQ(record.head.bytes, sizeof record);
  EXPECT_EQ(record.head.type, abi::RecordType::kReport);
  EXPECT_EQ(record.head.sequence, 9U);
  EXPECT_EQ(record.status, -ESTALE);
}

// What is encoded does not depend on what the buffer held: nothing of another client shines
// through.
TEST_F(Answers, WriteEveryByte) {
  const auto result = result_of(4, 20);
  std::fill(buffer_.begin(), buffer_.end(), std::byte{0x00});
  const auto zeros = encode_picked(1, result, false, 5, buffer_);
  const std::vector<std::byte> first(zeros.begin(), zeros.end());
  std::fill(buffer_.begin(), buffer_.end(), std::byte{0xFF});
  const auto ones = encode_picked(1, result, false, 5, buffer_);
  EXPECT_EQ(first, std::vector<std::byte>(ones.begin(), ones.end()));
  const auto reported = encode_reported(1, 0, buffer_);
  for (std::size_t at = sizeof(abi::ReportedRecord) - 4; at < reported.size(); ++at) {
    EXPECT_EQ(reported[at], std::byte{0});
  }
}

}  // namespace
}  // namespace pickd::workers
