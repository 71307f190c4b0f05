// The contract's structs to the byte, as abi/LAYOUT.md specifies them: a change here breaks every
// client.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "abi/channel_layout.hpp"
#include "abi/state_layout.hpp"

namespace pickd::abi {
namespace {

template <typename Record>
std::string hex(const Record& record) {
  static const char digits[] = "0123456789abcdef";
  unsigned char bytes[sizeof record];
  std::memcpy(bytes, &record, sizeof record);
  std::string text;
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    if (i != 0 && i % 8 == 0) text += ' ';
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

TEST(Layout, EverySegmentBeginsAlike) {
  EXPECT_EQ(offsetof(SegmentHeader, magic), 0U);
  EXPECT_EQ(offsetof(SegmentHeader, layout_major), 8U);
  EXPECT_EQ(offsetof(SegmentHeader, layout_minor), 10U);
  EXPECT_EQ(offsetof(SegmentHeader, header_bytes), 12U);
  EXPECT_EQ(offsetof(SegmentHeader, total_bytes), 16U);
  EXPECT_EQ(offsetof(SegmentHeader, byte_order_mark), 24U);
  EXPECT_EQ(offsetof(SegmentHeader, features), 28U);
  EXPECT_EQ(offsetof(SegmentHeader, boot_id), 32U);
  EXPECT_EQ(offsetof(SegmentHeader, daemon_epoch), 48U);
  EXPECT_EQ(offsetof(SegmentHeader, version), 56U);
  EXPECT_EQ(sizeof(SegmentHeader), 64U);
}

TEST(Layout, TheStateHeaderStandsWhereLayoutSays) {
  EXPECT_EQ(offsetof(StateHeader, block_tokens), 64U);
  EXPECT_EQ(offsetof(StateHeader, clock_mode), 68U);
  EXPECT_EQ(offsetof(StateHeader, tick_base_ns), 72U);
  EXPECT_EQ(offsetof(StateHeader, tick_ns), 80U);
  EXPECT_EQ(offsetof(StateHeader, instance_id), 88U);
  EXPECT_EQ(offsetof(StateHeader, key_algorithms), 96U);
  EXPECT_EQ(offsetof(StateHeader, hash_secret), 160U);
  EXPECT_EQ(offsetof(StateHeader, hot_holders), 352U);
  EXPECT_EQ(offsetof(StateHeader, endpoint_ids), 356U);
  EXPECT_EQ(offsetof(StateHeader, reservation_slots), 360U);
  EXPECT_EQ(offsetof(StateHeader, workers), 364U);
  EXPECT_EQ(offsetof(StateHeader, workers_offset), 368U);
  EXPECT_EQ(offsetof(StateHeader, counters_offset), 376U);
  EXPECT_EQ(offsetof(StateHeader, endpoints_offset), 384U);
  EXPECT_EQ(offsetof(StateHeader, reservations_offset), 392U);
  EXPECT_EQ(offsetof(StateHeader, routing_offset), 400U);
  EXPECT_EQ(offsetof(StateHeader, routing_bytes), 408U);
  EXPECT_EQ(offsetof(StateHeader, prefix_offset), 416U);
  EXPECT_EQ(offsetof(StateHeader, prefix_lines), 424U);
  EXPECT_EQ(offsetof(StateHeader, ttl_ticks), 432U);
  EXPECT_EQ(offsetof(StateHeader, blocks_min), 440U);
  EXPECT_EQ(offsetof(StateHeader, blocks_max), 444U);
  EXPECT_EQ(offsetof(StateHeader, keys_max), 448U);
  EXPECT_EQ(offsetof(StateHeader, daemon_pid), 452U);
  EXPECT_EQ(offsetof(StateHeader, heartbeat_ns), 512U);
  EXPECT_EQ(offsetof(StateHeader, virtual_tick), 520U);
  EXPECT_EQ(offsetof(StateHeader, superseded), 528U);
  EXPECT_EQ(offsetof(StateHeader, global_horizon), 640U);
  EXPECT_EQ(offsetof(StateHeader, routing_version), 648U);
  EXPECT_EQ(offsetof(StateHeader, endpoint_high_water), 656U);
  EXPECT_EQ(offsetof(StateHeader, models_offset), 664U);
  EXPECT_EQ(offsetof(StateHeader, model_classes), 672U);
  EXPECT_EQ(offsetof(StateHeader, model_words), 676U);
  EXPECT_EQ(sizeof(StateHeader), 768U);
}

TEST(Layout, AnEndpointRecordStandsWhereLayoutSays) {
  EXPECT_EQ(offsetof(EndpointRecord, life), 0U);
  EXPECT_EQ(offsetof(EndpointRecord, confirmed_life), 8U);
  EXPECT_EQ(offsetof(EndpointRecord, state), 16U);
  EXPECT_EQ(offsetof(EndpointRecord, role), 20U);
  EXPECT_EQ(offsetof(EndpointRecord, inflight_requests), 24U);
  EXPECT_EQ(offsetof(EndpointRecord, inflight_tokens), 32U);
  EXPECT_EQ(offsetof(EndpointRecord, waiting), 40U);
  EXPECT_EQ(offsetof(EndpointRecord, running), 44U);
  EXPECT_EQ(offsetof(EndpointRecord, kv_use_ppm), 48U);
  EXPECT_EQ(offsetof(EndpointRecord, scrape_tick), 52U);
  EXPECT_EQ(offsetof(EndpointRecord, capacity_blocks), 56U);
  EXPECT_EQ(offsetof(EndpointRecord, live_blocks), 64U);
  EXPECT_EQ(offsetof(EndpointRecord, adapters_max), 72U);
  EXPECT_EQ(offsetof(EndpointRecord, text_version), 76U);
  EXPECT_EQ(offsetof(EndpointRecord, foreign_requests), 80U);
  EXPECT_EQ(offsetof(EndpointRecord, told_ticks_max), 84U);
  EXPECT_EQ(offsetof(EndpointRecord, failures), 88U);
  EXPECT_EQ(offsetof(EndpointRecord, engine_start_ms), 96U);
  EXPECT_EQ(offsetof(EndpointRecord, inflight_prompts), 104U);
  EXPECT_EQ(offsetof(EndpointRecord, adapters_active), 112U);
  EXPECT_EQ(offsetof(EndpointRecord, adapters_waiting), 176U);
  EXPECT_EQ(offsetof(EndpointRecord, adapters_recent), 240U);
  EXPECT_EQ(offsetof(EndpointRecord, name), 304U);
  EXPECT_EQ(offsetof(EndpointRecord, address), 432U);
  EXPECT_EQ(offsetof(EndpointRecord, model_load), 560U);
  EXPECT_EQ(sizeof(EndpointRecord), 640U);
}

TEST(Layout, AReservationIsOneCacheLine) {
  EXPECT_EQ(offsetof(Reservation, state), 0U);
  EXPECT_EQ(offsetof(Reservation, client), 8U);
  EXPECT_EQ(offsetof(Reservation, sequence), 16U);
  EXPECT_EQ(offsetof(Reservation, endpoint), 24U);
  EXPECT_EQ(offsetof(Reservation, prefill_endpoint), 32U);
  EXPECT_EQ(offsetof(Reservation, tokens), 40U);
  EXPECT_EQ(offsetof(Reservation, owner), 48U);
  EXPECT_EQ(offsetof(Reservation, picked_tick), 56U);
  EXPECT_EQ(sizeof(Reservation), 64U);
}

TEST(Layout, TheChannelHeaderStandsWhereLayoutSays) {
  EXPECT_EQ(offsetof(ChannelHeader, segment), 0U);
  EXPECT_EQ(offsetof(ChannelHeader, channel_id), 64U);
  EXPECT_EQ(offsetof(ChannelHeader, worker), 68U);
  EXPECT_EQ(offsetof(ChannelHeader, indices_offset), 72U);
  EXPECT_EQ(offsetof(ChannelHeader, submissions_offset), 80U);
  EXPECT_EQ(offsetof(ChannelHeader, submissions_bytes), 88U);
  EXPECT_EQ(offsetof(ChannelHeader, completions_offset), 96U);
  EXPECT_EQ(offsetof(ChannelHeader, completions_bytes), 104U);
  EXPECT_EQ(offsetof(ChannelHeader, keys_max), 112U);
  EXPECT_EQ(sizeof(ChannelHeader), 120U);
}

TEST(Layout, RingIndicesAreAloneOnTheirLinePairs) {
  EXPECT_EQ(offsetof(RingIndices, submissions_tail), 0U);
  EXPECT_EQ(offsetof(RingIndices, submissions_head), 128U);
  EXPECT_EQ(offsetof(RingIndices, completions_tail), 256U);
  EXPECT_EQ(offsetof(RingIndices, completions_head), 384U);
  EXPECT_EQ(offsetof(RingIndices, completions_waiting), 392U);
  EXPECT_EQ(sizeof(RingIndices), 512U);
}

TEST(Layout, SmallRecordsHaveTheirSizes) {
  EXPECT_EQ(sizeof(KeyAlgorithm), 8U);
  EXPECT_EQ(sizeof(WorkerWord), 128U);
  EXPECT_EQ(sizeof(RecordHead), 16U);
  EXPECT_EQ(sizeof(FieldHead), 4U);
  EXPECT_EQ(sizeof(PickRecord), 48U);
  EXPECT_EQ(sizeof(PickedEndpoint), 24U);
  EXPECT_EQ(sizeof(PickedRecord), 40U);
  EXPECT_EQ(sizeof(ReportRecord), 48U);
  EXPECT_EQ(sizeof(ReportedRecord), 24U);
  EXPECT_EQ(sizeof(CancelRecord), 16U);
}

TEST(Layout, MagicsReadAsTextInAFile) {
  EXPECT_EQ(std::memcmp(&kStateMagic, "PKSTAT01", 8), 0);
  EXPECT_EQ(std::memcmp(&kChannelMagic, "PKCHAN01", 8), 0);
  EXPECT_EQ(segment_version(1, 0), 0x10001U);
  EXPECT_NE(segment_version(0, 0), 0U) << "0 means: still being filled";
}

TEST(Layout, APickRecordHasItsGoldenBytes) {
  PickRecord record{};
  record.head = {0x198, RecordType::kPick, kPickStream | kPickSubset, 0, 0x0102030405060708};
  record.key_count = 3;
  record.field_bytes = 0x20;
  record.prompt_tokens = 4000;
  record.expected_output_tokens = 256;
  record.slo_ttft_ms = 500.0F;
  record.slo_itl_ms = 25.0F;
  record.priority = -2;
  record.key_algorithm = 1;
  record.endpoints_max = 8;
  record.answer_bytes_max = 0x180;
  EXPECT_EQ(hex(record),
            "9801000001050000 0807060504030201 0300000020000000 a00f000000010000 "
            "0000fa430000c841 feff010880010000");
}

TEST(Layout, AFieldHeadHasItsGoldenBytes) {
  EXPECT_EQ(hex(FieldHead{FieldKind::kAttribute, 0, 0x0102}), "07000201");
}

TEST(Layout, APickedRecordHasItsGoldenBytes) {
  PickedRecord record{};
  record.head = {0x70, RecordType::kPick, kPickedTruncated, 0, 9};
  record.status = -113;
  record.reason = Reason::kPrefix;
  record.endpoint_count = 2;
  record.text_bytes = 0x1234;
  record.prompt_tokens = 7;
  record.predicted_ttft_ms = 1.5F;
  record.predicted_itl_ms = 0.25F;
  EXPECT_EQ(hex(record),
            "7000000001010000 0900000000000000 8fffffff03023412 070000000000c03f 0000803e00000000");
}

TEST(Layout, APickedEndpointHasItsGoldenBytes) {
  PickedEndpoint endpoint{};
  endpoint.handle = endpoint_handle(5, 3);
  endpoint.match_tokens = 64;
  endpoint.score = 2.0F;
  endpoint.role = 1;
  endpoint.name_bytes = 4;
  endpoint.address_bytes = 14;
  EXPECT_EQ(hex(endpoint), "0530000000000000 4000000000000040 01040e0000000000");
}

TEST(Layout, AReportRecordHasItsGoldenBytes) {
  ReportRecord record{};
  record.head = {0x30, RecordType::kReport, kReportAnswer, 0, 17};
  record.ticket_client = 0x1111111111111111;
  record.ticket_sequence = 16;
  record.kind = ReportKind::kDone;
  record.prompt_tokens = 100;
  record.cached_tokens = kUnknown32;
  record.output_tokens = 12;
  EXPECT_EQ(hex(record),
            "3000000002010000 1100000000000000 1111111111111111 1000000000000000 "
            "0300000064000000 ffffffff0c000000");
}

TEST(Layout, AnswersAndCancelsHaveTheirGoldenBytes) {
  EXPECT_EQ(hex(ReportedRecord{{24, RecordType::kReport, 0, 0, 17}, -116, 0}),
            "1800000002000000 1100000000000000 8cffffff00000000");
  EXPECT_EQ(hex(CancelRecord{{16, RecordType::kCancel, 0, 0, 17}}),
            "1000000003000000 1100000000000000");
}

TEST(Layout, RecordsFillWholeUnits) {
  EXPECT_EQ(ring_units_bytes(1), 128U);
  EXPECT_EQ(ring_units_bytes(128), 128U);
  EXPECT_EQ(ring_units_bytes(129), 256U);
  EXPECT_EQ(ring_units_bytes(0xFFFFFFFFU), 0x100000000U) << "no wrap at 32 bits";
}

TEST(Layout, TheDefaultRingsHoldTheLongestRecordTwice) {
  const std::uint64_t longest =
      ring_units_bytes(sizeof(PickRecord) + kKeysDefault * sizeof(std::uint64_t) + kFieldBytesMax);
  EXPECT_LE(2 * longest, kSubmissionRingBytesDefault);
}

}  // namespace
}  // namespace pickd::abi
