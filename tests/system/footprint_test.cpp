// What a daemon costs: memory of many channels, and processor time when nobody asks.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "tests/system/raw_control.hpp"

namespace pickd::systests {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

// A line of /proc/PID/smaps_rollup, in bytes.
double memory_of(pid_t pid, const std::string& line) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  std::string word;
  while (file >> word) {
    double kib = 0;
    if (word == line + ":" && file >> kib) return kib * 1024;
  }
  return 0;
}

// Processor time used so far, in seconds.
double seconds_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line.substr(line.rfind(')') + 2));
  std::string skipped;
  for (int field = 3; field < 14; ++field) words >> skipped;
  double user = 0;
  double system = 0;
  words >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

TEST(SystemFootprint, HoldsAThousandChannelsIn200MiB) {
  constexpr std::size_t kChannels = 1000;
  Daemon daemon;
  daemon.status();
  const double before = memory_of(daemon.pid(), "Pss");
  RawControl raw(daemon);
  ASSERT_TRUE(raw.hello().has_value());
  double segment_bytes = 0;
  for (std::size_t count = 0; count < kChannels; ++count) {
    const auto reply = raw.ask(
        [](flatbuffers::FlatBufferBuilder& builder) { return fb::CreateOpenChannel(builder); });
    ASSERT_NE(reply->as<fb::ChannelOpened>(), nullptr) << count << " " << reply->words();
    ASSERT_EQ(raw.descriptors().size(), 3U);
    struct stat found {};
    ASSERT_EQ(::fstat(raw.descriptors()[0].get(), &found), 0);
    segment_bytes += static_cast<double>(found.st_size);
  }
  EXPECT_EQ(daemon.status().channels, kChannels);
  const double grown = memory_of(daemon.pid(), "Pss") - before;
  std::printf(
      "%zu channels: %.1f MiB when every page of every ring is in use, %.1f MiB as opened\n",
      kChannels, segment_bytes / kMiB, grown / kMiB);
  EXPECT_GT(segment_bytes, 0);
  EXPECT_LT(segment_bytes, 200 * kMiB);
  EXPECT_LT(grown, 200 * kMiB);
}

// Of the channels that this process has mapped.
double mapped_channels_bytes() {
  std::ifstream file("/proc/self/maps");
  std::string line;
  double bytes = 0;
  while (std::getline(file, line)) {
    if (line.find("memfd:pickd-channel") == std::string::npos) continue;
    const std::size_t dash = line.find('-');
    bytes += static_cast<double>(std::stoull(line.substr(dash + 1), nullptr, 16) -
                                 std::stoull(line.substr(0, dash), nullptr, 16));
  }
  return bytes;
}

TEST(SystemFootprint, HoldsAThousandQueuesOfTheDefaultDepthIn300MiB) {
  constexpr std::size_t kQueues = 1000;
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  if (files.rlim_max < 8 * kQueues || ::setrlimit(RLIMIT_NOFILE, &files) != 0)
    GTEST_SKIP() << "needs " << 8 * kQueues << " descriptors, may have " << files.rlim_max;
  Daemon daemon;
  const Client client(daemon);
  const double before = memory_of(daemon.pid(), "Pss");
  std::vector<pickd_queue*> queues(kQueues);
  for (pickd_queue*& queue : queues)
    ASSERT_EQ(pickd_queue_open(client.get(), 0, &queue), 0) << client.last_error();
  const double mapped = mapped_channels_bytes();
  // Each takes its whole depth, and lists the winner at least.
  const Request request("hello");
  const Result result;
  for (std::uint64_t at = 0; at < 256; ++at)
    ASSERT_EQ(pickd_queue_submit(queues[kQueues / 2], &request.raw, at, nullptr), 0) << at;
  for (std::uint64_t at = 0; at < 256; ++at) {
    std::uint64_t data = 0;
    ASSERT_TRUE(eventually(
        [&] { return pickd_queue_poll(queues[kQueues / 2], result.get(), &data) == 1; }));
    ASSERT_EQ(data, at);
    ASSERT_EQ(pickd_result_status(result.get()), 0);
    ASSERT_GE(result.count(), 1U);
  }
  const double grown = memory_of(daemon.pid(), "Pss") - before;
  std::printf("%zu queues of depth 256: %.1f MiB of channels, the daemon grew by %.1f MiB\n",
              kQueues, mapped / kMiB, grown / kMiB);
  EXPECT_GT(mapped, 0);
  EXPECT_LT(mapped, 300 * kMiB);
  EXPECT_EQ(daemon.status().channels, kQueues + 1);
  EXPECT_EQ(daemon.counter("completions_dropped"), 0U);
  for (pickd_queue* queue : queues) pickd_queue_close(queue);
  EXPECT_TRUE(eventually([&] { return daemon.status().channels == 1; }));
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 256; })) << "taken, not reported on";
}

TEST(SystemFootprint, TellsWhatAnIdleDaemonUses) {
  Daemon daemon;
  const Client client(daemon);
  const Result result;
  ASSERT_EQ(pick(client, Request("hello"), result), 0);
  const double before = seconds_of(daemon.pid());
  const auto from = std::chrono::steady_clock::now();
  // Not to wait for anything: the length of the measurement.
  std::this_thread::sleep_for(std::chrono::seconds(3));
  const double used = seconds_of(daemon.pid()) - before;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - from;
  std::printf("idle daemon: %.2f %% of a core over %.1f s\n", 100 * used / passed.count(),
              passed.count());
  // The measurement itself works: work shows in it.
  EXPECT_TRUE(eventually([&] {
    return pick(client, Request("hello"), result) != 0 || seconds_of(daemon.pid()) > before + used;
  }));
}

}  // namespace
}  // namespace pickd::systests
