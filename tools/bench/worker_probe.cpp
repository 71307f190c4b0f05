#include "tools/bench/worker_probe.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "daemon/base/clock.hpp"
#include "daemon/base/random.hpp"
#include "daemon/control/engine_room.hpp"
#include "daemon/workers/submission.hpp"
#include "libclient/ring.hpp"
#include "tools/common/child.hpp"

namespace pickd::bench {

namespace {

constexpr std::uint32_t kBatch = 32;
constexpr std::uint64_t kClient = 0xBE9C;

template <typename T>
T take_or_throw(base::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text);
  return std::move(*result);
}

config::Config make_config(const std::string& directory, const WorkerProbeOptions& options) {
  config::Config config;
  config.state.path = directory + "/state";
  config.state.size_mib = 64;
  config.scheduling.profile = options.policy;
  for (std::uint32_t at = 0; at < options.endpoints; ++at) {
    config::EndpointConfig endpoint;
    endpoint.name = "engine-" + std::to_string(at);
    endpoint.address = "127.0.0.1:" + std::to_string(9000 + at);
    config.endpoints.push_back(endpoint);
  }
  return config;
}

// A pick's record but for its sequence: random keys, which no other prompt has.
std::vector<std::byte> make_pick(std::uint32_t keys, std::uint32_t tokens, std::uint8_t algorithm,
                                 std::uint64_t seed) {
  base::Random random(seed + 1);
  std::vector<std::byte> bytes(sizeof(abi::PickRecord) + keys * sizeof(std::uint64_t));
  abi::PickRecord record{};
  record.head = {static_cast<std::uint32_t>(bytes.size()), abi::RecordType::kPick, 0, 0, 0};
  record.key_count = keys;
  record.prompt_tokens = tokens;
  record.key_algorithm = algorithm;
  record.endpoints_max = abi::kResultEndpointsMax;
  std::memcpy(bytes.data(), &record, sizeof record);
  for (std::uint32_t at = 0; at < keys; ++at) {
    const std::uint64_t key = random.next();
    std::memcpy(bytes.data() + sizeof record + at * sizeof key, &key, sizeof key);
  }
  return bytes;
}

}  // namespace

struct WorkerProbe::Parts {
  explicit Parts(const WorkerProbeOptions& options)
      : directory(take_or_throw(tools::TempDir::make("pickd-bench"))),
        room(take_or_throw(control::EngineRoom::create(make_config(directory.path(), options),
                                                       false, [](std::uint32_t, bool) {}))),
        table({room->segment().prefix_words(), room->segment().header().prefix_lines,
               room->segment().endpoints(), room->segment().header().endpoint_ids,
               &room->segment().header().global_horizon, room->segment().header().hot_holders}),
        core(
            {room->segment().endpoints(), &table, &room->reservations(),
             room->segment().header().block_tokens, room->segment().header().blocks_min,
             room->segment().header().blocks_max, 42},
            take_or_throw(pick::Schedule::make(make_config(directory.path(), options).scheduling))),
        scratch(std::make_unique<pick::PickScratch>(1)),
        counters(room->segment().counters(1)) {
    const abi::StateHeader& header = room->segment().header();
    limits.keys_max = header.keys_max;
    for (std::size_t at = 0; at < abi::kKeyAlgorithmsMax; ++at)
      limits.key_algorithms[at] = header.key_algorithms[at].id;
    const std::uint32_t keys =
        (options.prompt_tokens + header.block_tokens - 1) / header.block_tokens;
    for (std::uint32_t at = 0; at < options.prompts; ++at)
      picks.push_back(make_pick(keys, options.prompt_tokens, header.key_algorithms[0].id, at));
    open_channel();
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() { ::munmap(segment, segment_bytes); }

  // This end of the channel, as libpickd has it.
  void open_channel() {
    workers::ChannelParameters parameters;
    parameters.client = kClient;
    parameters.uid = ::getuid();
    workers::ChannelDescriptors descriptors;
    auto channel = take_or_throw(workers::Channel::create(parameters, &descriptors));
    segment_bytes = static_cast<std::size_t>(::lseek(descriptors.segment.get(), 0, SEEK_END));
    segment = ::mmap(nullptr, segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                     descriptors.segment.get(), 0);
    if (segment == MAP_FAILED) throw std::runtime_error("worker probe: no memory");
    auto* base = static_cast<std::byte*>(segment);
    const auto* header = reinterpret_cast<const abi::ChannelHeader*>(base);
    auto* indices = reinterpret_cast<abi::RingIndices*>(base + header->indices_offset);
    submissions.attach(base + header->submissions_offset, header->submissions_bytes,
                       &indices->submissions_tail, &indices->submissions_head);
    completions.attach(base + header->completions_offset, header->completions_bytes,
                       &indices->completions_head, &indices->completions_tail);
    room->worker(0).add(std::move(channel));
  }

  const std::vector<std::byte>& next_pick() {
    const std::vector<std::byte>& pick = picks[next];
    if (++next == picks.size()) next = 0;
    return pick;
  }
  void submit(const void* record, std::size_t bytes) {
    std::byte* at = submissions.reserve(bytes, 0);
    if (at == nullptr) throw std::runtime_error("worker probe: the ring is full");
    std::memcpy(at, record, bytes);
    submissions.publish();
  }
  void submit_pick() {
    std::vector<std::byte> pick = next_pick();
    ++sequence;
    std::memcpy(pick.data() + offsetof(abi::RecordHead, sequence), &sequence, sizeof sequence);
    submit(pick.data(), pick.size());
  }
  // Takes the answers of a batch and reports each done.
  void report_answers() {
    client::CompletionRecord completion;
    while (completions.next(completion) == client::ReadOutcome::kRecord) {
      abi::PickedRecord picked;
      std::memcpy(&picked, completion.data, sizeof picked);
      if (picked.status != 0) throw std::runtime_error("worker probe: a pick was refused");
      answer_bytes = picked.head.bytes;
      completions.take();
      abi::ReportRecord report{};
      report.head = {sizeof report, abi::RecordType::kReport, 0, 0, 0};
      report.ticket_client = kClient;
      report.ticket_sequence = picked.head.sequence;
      report.kind = abi::ReportKind::kDone;
      report.prompt_tokens = report.cached_tokens = report.output_tokens = abi::kUnknown32;
      submit(&report, sizeof report);
    }
  }
  void whole_batch(tools::Samples* samples);
  void answer_batch(tools::Samples* samples);
  std::uint64_t time_remembering();  // of the next batch of prompts

  tools::TempDir directory;
  std::unique_ptr<control::EngineRoom> room;
  prefix::PrefixTable table;
  pick::PickCore core;
  std::unique_ptr<pick::PickScratch> scratch;
  state::Counters counters;
  workers::PickLimits limits{};
  workers::DecodeScratch decode;
  std::vector<std::vector<std::byte>> picks;
  std::size_t next = 0;
  std::uint64_t sequence = 0;
  std::size_t answer_bytes = 0;
  void* segment = nullptr;
  std::size_t segment_bytes = 0;
  client::SubmissionWriter submissions;
  client::CompletionReader completions;
};

// All a worker does: picks and, in the next round, their reports.
void WorkerProbe::Parts::whole_batch(tools::Samples* samples) {
  for (std::uint32_t at = 0; at < kBatch; ++at) submit_pick();
  const std::uint64_t picks_from_ns = base::monotonic_ns();
  while (room->worker(0).turn()) {
  }
  const std::uint64_t picks_ns = base::monotonic_ns() - picks_from_ns;
  report_answers();
  const std::uint64_t reports_from_ns = base::monotonic_ns();
  while (room->worker(0).turn()) {
  }
  const std::uint64_t reports_ns = base::monotonic_ns() - reports_from_ns;
  if (samples != nullptr) samples->add(static_cast<double>(picks_ns + reports_ns) / kBatch);
}

// What the caller waits for: rounds of one pick each, without the remembering that comes after the
// answer, which is timed by itself.
void WorkerProbe::Parts::answer_batch(tools::Samples* samples) {
  const std::size_t first = next;
  std::uint64_t rounds_ns = 0;
  for (std::uint32_t at = 0; at < kBatch; ++at) {
    submit_pick();
    const std::uint64_t from_ns = base::monotonic_ns();
    room->worker(0).turn();
    rounds_ns += base::monotonic_ns() - from_ns;
  }
  report_answers();
  while (room->worker(0).turn()) {
  }
  next = first;
  const std::uint64_t remember_ns = time_remembering();
  if (samples != nullptr && rounds_ns > remember_ns)
    samples->add(static_cast<double>(rounds_ns - remember_ns) / kBatch);
}

std::uint64_t WorkerProbe::Parts::time_remembering() {
  const endpoints::Topology& topology = room->topologies().acquire(0);
  std::array<std::vector<std::byte>, kBatch> records;
  std::array<workers::DecodedPick, kBatch> decoded;
  std::array<pick::PickResult, kBatch> results;
  const std::uint64_t tick = room->clock().tick();
  for (std::uint32_t at = 0; at < kBatch; ++at) {
    records[at] = next_pick();
    if (!workers::decode_pick(records[at], limits, decode, decoded[at]))
      throw std::runtime_error("worker probe: a malformed record");
    decoded[at].request.dry_run = true;  // reserves nothing
    core.pick(decoded[at].request, topology, tick, *scratch, counters, results[at]);
    decoded[at].request.dry_run = false;
  }
  const std::uint64_t from_ns = base::monotonic_ns();
  for (std::uint32_t at = 0; at < kBatch; ++at)
    core.remember(decoded[at].request, results[at], tick, counters);
  const std::uint64_t to_ns = base::monotonic_ns();
  room->topologies().release(0);
  return to_ns - from_ns;
}

WorkerProbe::WorkerProbe(const WorkerProbeOptions& options)
    : parts_(std::make_unique<Parts>(options)) {
  const std::size_t rounds = parts_->picks.size() / kBatch + 1;
  for (std::size_t round = 0; round < rounds; ++round) parts_->whole_batch(nullptr);
}

WorkerProbe::~WorkerProbe() = default;

void WorkerProbe::run(std::size_t count, tools::Samples& answer_ns, tools::Samples& whole_ns) {
  for (std::size_t at = 0; at < count; ++at) {
    parts_->answer_batch(&answer_ns);
    parts_->whole_batch(&whole_ns);
  }
}

std::size_t WorkerProbe::record_bytes() const { return parts_->picks.front().size(); }
std::size_t WorkerProbe::answer_bytes() const { return parts_->answer_bytes; }

}  // namespace pickd::bench
