// The recorder of a worker: which keys are kept, what is left out when there is no room, and that a
// reader on another thread sees whole entries in their order.
#include "daemon/workers/recorder.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>

#include "abi/recording.hpp"

namespace pickd::workers {
namespace {

constexpr std::size_t kPickWords = sizeof(abi::RecordingPick) / 8;
constexpr std::size_t kEndWords = sizeof(abi::RecordingEnd) / 8;

void put_pick(Recorder& recorder, std::uint64_t sequence, std::size_t keys) {
  std::vector<std::uint64_t> all(keys);
  std::iota(all.begin(), all.end(), 100);
  pick::PickRequest request;
  request.keys = all;
  request.ticket = {7, sequence};
  request.prompt_tokens = static_cast<std::uint32_t>(64 * keys);
  request.now_ns = 5;
  pick::PickResult result;
  result.count = 1;
  recorder.put_pick(request, result);
}

std::vector<std::uint64_t> take(Recorder& recorder, std::size_t room = 1024) {
  std::vector<std::uint64_t> words(room);
  words.resize(recorder.take(words));
  return words;
}

std::vector<std::uint64_t> keys_kept(std::size_t keys, std::uint32_t stride) {
  Recorder recorder(1 << 16, stride);
  put_pick(recorder, 1, keys);
  const std::vector<std::uint64_t> words = take(recorder, 1 << 16);
  abi::RecordingPick pick;
  std::memcpy(&pick, words.data(), sizeof pick);
  EXPECT_EQ(pick.head.words, words.size());
  EXPECT_EQ(pick.keys, words.size() - kPickWords);
  return {words.begin() + kPickWords, words.end()};
}

using Keys = std::vector<std::uint64_t>;

TEST(Recorder, KeepsTheLastKeyOfEachStrideAndOfTheRest) {
  EXPECT_EQ(keys_kept(16, 8), (Keys{107, 115}));
  EXPECT_EQ(keys_kept(19, 8), (Keys{107, 115, 118}));
  EXPECT_EQ(keys_kept(3, 8), (Keys{102}));
  EXPECT_EQ(keys_kept(0, 8), Keys{});
  EXPECT_EQ(keys_kept(3, 1), (Keys{100, 101, 102}));
  EXPECT_EQ(keys_kept(3, 0), (Keys{100, 101, 102})) << "blocks longer than a stride";
  EXPECT_LE(keys_kept(16'384, 1).size(), abi::kRecordingKeysMax);
}

TEST(Recorder, LeavesOutAndCountsWhatHasNoRoom) {
  Recorder recorder(16, 1);
  put_pick(recorder, 1, 4);  // 10 words
  put_pick(recorder, 2, 4);
  EXPECT_EQ(recorder.lost(), 1U);
  EXPECT_EQ(take(recorder).size(), kPickWords + 4);
  put_pick(recorder, 3, 4);
  EXPECT_EQ(take(recorder)[3], 3U) << "its ticket: there is room again";
  put_pick(recorder, 4, 4);
  recorder.forget();
  EXPECT_TRUE(take(recorder).empty());
}

TEST(Recorder, TakesWholeEntriesOnly) {
  Recorder recorder(1024, 1);
  put_pick(recorder, 1, 2);
  put_pick(recorder, 2, 2);
  EXPECT_EQ(take(recorder, kPickWords + 3).size(), kPickWords + 2);
  EXPECT_EQ(take(recorder, kPickWords + 1).size(), 0U);
  EXPECT_EQ(take(recorder).size(), kPickWords + 2);
}

TEST(Recorder, KeepsEndsAndNoOtherReports) {
  Recorder recorder(1024, 1);
  for (const auto kind :
       {abi::ReportKind::kFirstToken, abi::ReportKind::kProgress, abi::ReportKind::kDone,
        abi::ReportKind::kFailed, abi::ReportKind::kCancelled, abi::ReportKind::kFallback}) {
    DecodedReport report{};
    report.kind = kind;
    report.output_tokens = 9;
    recorder.put_end(report, 1);
  }
  const std::vector<std::uint64_t> words = take(recorder);
  ASSERT_EQ(words.size(), 3 * kEndWords);
  abi::RecordingEnd first;
  std::memcpy(&first, words.data(), sizeof first);
  EXPECT_EQ(first.done, 1U);
  EXPECT_EQ(first.output_tokens, 9U);
}

TEST(Recorder, AReaderBesideTheWriterSeesEveryEntryOnceAndInOrder) {
  Recorder recorder(256, 1);
  constexpr std::uint64_t kPicks = 20'000;
  std::thread writer([&] {
    for (std::uint64_t sequence = 1; sequence <= kPicks; ++sequence)
      put_pick(recorder, sequence, 5);
  });
  std::uint64_t seen = 0;
  std::uint64_t last = 0;
  while (seen + recorder.lost() < kPicks || seen == 0) {
    const std::vector<std::uint64_t> words = take(recorder, 64);
    for (std::size_t at = 0; at < words.size(); at += kPickWords + 5) {
      ASSERT_GT(words[at + 3], last);
      ASSERT_EQ(words[at + kPickWords + 4], 104U) << "its last key";
      last = words[at + 3];
      ++seen;
    }
    std::this_thread::yield();
  }
  writer.join();
  EXPECT_EQ(seen + recorder.lost(), kPicks);
}

}  // namespace
}  // namespace pickd::workers
