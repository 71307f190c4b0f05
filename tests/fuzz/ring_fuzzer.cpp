// A client that writes arbitrary bytes into its channel: rings, indices, header, completions. On
// the other side stand the real worker, pick core, tables and reservations.
//
// After each input an honest client of another user picks and reports as if nothing had happened,
// and once the hostile one is gone nothing of it is in flight anywhere.
#include <fuzzer/FuzzedDataProvider.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "daemon/control/engine_room.hpp"
#include "daemon/workers/worker.hpp"

namespace pickd {
namespace {

#define REQUIRE(condition)                                                               \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

constexpr std::uint32_t kKeysMax = 32;
constexpr std::uint32_t kRingBytes = 64 * 1024;  // holds the longest record twice
constexpr std::uint32_t kAnswerBytes = 16 * 1024;
constexpr std::uint32_t kHostileUid = 1001;
constexpr std::uint32_t kHonestUid = 1002;
constexpr std::uint64_t kHostileClient = 0xBAD;
constexpr std::uint64_t kHonestClient = 0x600D;

// A channel with the client's mapping of it.
class Client {
 public:
  Client(workers::Worker& worker, std::uint32_t id, std::uint64_t client, std::uint32_t uid) {
    workers::ChannelParameters parameters;
    parameters.id = id;
    parameters.keys_max = kKeysMax;
    parameters.submissions_bytes = kRingBytes;
    parameters.completions_bytes = kAnswerBytes;
    parameters.client = client;
    parameters.uid = uid;
    parameters.rates = std::make_shared<workers::UserRates>(1'000'000, 10'000'000);
    auto channel = workers::Channel::create(parameters, &descriptors_);
    REQUIRE(channel.ok());
    bytes_ = static_cast<std::size_t>(::lseek(descriptors_.segment.get(), 0, SEEK_END));
    void* at =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptors_.segment.get(), 0);
    REQUIRE(at != MAP_FAILED);
    base_ = static_cast<std::byte*>(at);
    std::memcpy(static_cast<void*>(&header_), base_, sizeof header_);
    worker.add(std::move(*channel));
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { ::munmap(base_, bytes_); }

  std::byte* base() { return base_; }
  std::size_t bytes() const { return bytes_; }
  abi::RingIndices& indices() {
    return *reinterpret_cast<abi::RingIndices*>(base_ + header_.indices_offset);
  }
  std::byte* submissions() { return base_ + header_.submissions_offset; }
  std::byte* completions() { return base_ + header_.completions_offset; }

  // Writes a record where the next one belongs and publishes it; as an honest client, but for what
  // it says.
  void submit(const std::vector<std::byte>& record) {
    const std::uint64_t units = abi::ring_units_bytes(record.size());
    const std::uint64_t place = tail_ & (kRingBytes - 1);
    if (place + units > kRingBytes) {
      const abi::RecordHead padding{static_cast<std::uint32_t>(kRingBytes - place),
                                    abi::RecordType::kPadding, 0, 0, 0};
      std::memcpy(submissions() + place, &padding, sizeof padding);
      tail_ += kRingBytes - place;
    }
    std::memcpy(submissions() + (tail_ & (kRingBytes - 1)), record.data(), record.size());
    publish(tail_ + units);
  }
  void publish(std::uint64_t tail) {
    tail_ = tail;
    indices().submissions_tail.store(tail, std::memory_order_release);
  }

  // The next answer, as an honest client reads it.
  std::vector<std::byte> next_answer() {
    while (indices().completions_tail.load(std::memory_order_acquire) != head_) {
      const std::byte* at = completions() + (head_ & (kAnswerBytes - 1));
      abi::RecordHead head;
      std::memcpy(&head, at, sizeof head);
      std::vector<std::byte> record(at, at + head.bytes);
      head_ += abi::ring_units_bytes(head.bytes);
      indices().completions_head.store(head_, std::memory_order_release);
      if (head.type != abi::RecordType::kPadding) return record;
    }
    return {};
  }

 private:
  workers::ChannelDescriptors descriptors_;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  abi::ChannelHeader header_{};
  std::uint64_t tail_ = 0;
  std::uint64_t head_ = 0;
};

// The daemon but for its threads and its socket; made once.
struct Daemon {
  std::unique_ptr<control::EngineRoom> room;
  std::set<std::uint32_t> gone;
  std::uint32_t last_channel = 0;
  std::uint64_t honest_sequence = 0;
  std::unique_ptr<Client> honest;

  Daemon() {
    config::Config config;
    config.state.path = "/dev/shm/pickd-ring-fuzzer." + std::to_string(::getpid());
    config.state.size_mib = 8;
    config.state.endpoints_max = 16;
    config.reservations.max = 64;
    config.listen.keys_max = kKeysMax;
    for (int at = 0; at < 6; ++at) {
      config::EndpointConfig endpoint;
      endpoint.name = "e" + std::to_string(at);
      endpoint.address = "h" + std::to_string(at) + ":1";
      if (at > 2) endpoint.models = {"m", "n"};
      config.endpoints.push_back(endpoint);
    }
    auto made = control::EngineRoom::create(
        config, true, [this](std::uint32_t channel, bool) { gone.insert(channel); });
    REQUIRE(made.ok());
    ::unlink(config.state.path.c_str());
    room = std::move(*made);
    honest = open(kHonestClient, kHonestUid);
  }
  workers::Worker& worker() { return room->worker(0); }
  std::unique_ptr<Client> open(std::uint64_t client, std::uint32_t uid) {
    return std::make_unique<Client>(worker(), ++last_channel, client, uid);
  }
  std::uint64_t inflight() {
    std::uint64_t sum = 0;
    for (std::uint32_t id = 1; id < 16; ++id) {
      const abi::EndpointRecord& record = room->segment().endpoints()[id];
      sum += abi::CountWord{record.inflight_requests.load()}.count();
      sum += abi::CountWord{record.inflight_tokens.load()}.count();
    }
    return sum;
  }
};

std::vector<std::byte> pick_record(std::uint64_t sequence, std::uint8_t flags,
                                   const std::vector<std::uint64_t>& keys,
                                   const std::vector<std::uint8_t>& fields, std::uint8_t wanted) {
  abi::PickRecord head{};
  head.head.bytes =
      static_cast<std::uint32_t>(sizeof head + keys.size() * sizeof keys[0] + fields.size());
  head.head.type = abi::RecordType::kPick;
  head.head.flags = flags;
  head.head.sequence = sequence;
  head.key_count = static_cast<std::uint32_t>(keys.size());
  head.field_bytes = static_cast<std::uint32_t>(fields.size());
  head.prompt_tokens = head.key_count * 64;
  head.key_algorithm = 1;
  head.endpoints_max = wanted;
  head.answer_bytes_max = static_cast<std::uint32_t>(fields.size() * 40);
  std::vector<std::byte> record(head.head.bytes);
  std::memcpy(record.data(), &head, sizeof head);
  if (!keys.empty()) {
    std::memcpy(record.data() + sizeof head, keys.data(), keys.size() * sizeof keys[0]);
  }
  if (!fields.empty()) {
    std::memcpy(record.data() + record.size() - fields.size(), fields.data(), fields.size());
  }
  return record;
}

std::vector<std::byte> report_record(std::uint64_t sequence, std::uint64_t client,
                                     std::uint64_t ticket, std::uint8_t kind, std::uint8_t flags,
                                     const std::string& name) {
  abi::ReportRecord head{};
  head.head.bytes = static_cast<std::uint32_t>(sizeof head + name.size());
  head.head.type = abi::RecordType::kReport;
  head.head.flags = flags;
  head.head.sequence = sequence;
  head.ticket_client = client;
  head.ticket_sequence = ticket;
  head.kind = static_cast<abi::ReportKind>(kind);
  head.fallback_name_bytes = static_cast<std::uint8_t>(name.size());
  std::vector<std::byte> record(head.head.bytes);
  std::memcpy(record.data(), &head, sizeof head);
  std::memcpy(record.data() + sizeof head, name.data(), name.size());
  return record;
}

std::int32_t status_of(const std::vector<std::byte>& answer) {
  REQUIRE(answer.size() >= sizeof(abi::RecordHead) + sizeof(std::int32_t));
  std::int32_t status = 0;
  std::memcpy(&status, answer.data() + sizeof(abi::RecordHead), sizeof status);
  return status;
}

// Picks and reports as a good client does.
void work_honestly(Daemon& daemon) {
  const std::uint64_t sequence = ++daemon.honest_sequence;
  daemon.honest->submit(pick_record(sequence, 0, {1, 2, 3}, {}, 8));
  while (daemon.worker().turn()) {
  }
  REQUIRE(status_of(daemon.honest->next_answer()) == 0);
  daemon.honest->submit(report_record(++daemon.honest_sequence, kHonestClient, sequence, 3, 1, ""));
  while (daemon.worker().turn()) {
  }
  // It was reserved: the hostile user cannot take all slots.
  REQUIRE(status_of(daemon.honest->next_answer()) == 0);
}

std::uint64_t sequence_of(FuzzedDataProvider& input) {
  return input.ConsumeIntegralInRange<std::uint64_t>(0, 20);
}

void write_somewhere(FuzzedDataProvider& input, std::byte* base, std::size_t size) {
  const auto at = input.ConsumeIntegralInRange<std::size_t>(0, size - 1);
  const auto bytes =
      input.ConsumeBytes<std::uint8_t>(input.ConsumeIntegralInRange<std::size_t>(0, 256));
  std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()), std::min(bytes.size(), size - at),
              base + at);
}

void step(FuzzedDataProvider& input, Daemon& daemon, Client& client) {
  switch (input.ConsumeIntegralInRange<int>(0, 11)) {
    case 0: return write_somewhere(input, client.submissions(), kRingBytes);
    case 1: return write_somewhere(input, client.base(), client.bytes());
    case 2: return client.publish(input.ConsumeIntegral<std::uint64_t>());
    case 3: {
      const auto units = input.ConsumeIntegralInRange<std::uint64_t>(0, kRingBytes / 128 + 1);
      return client.publish(client.indices().submissions_head.load() + units * 128);
    }
    case 4:
      client.indices().completions_head.store(input.ConsumeIntegral<std::uint64_t>());
      return client.indices().completions_waiting.store(input.ConsumeIntegral<std::uint32_t>());
    case 5: {  // a record whose head fits, and whose rest is anything
      auto body =
          input.ConsumeBytes<std::uint8_t>(input.ConsumeIntegralInRange<std::size_t>(16, 2000));
      body.resize(std::max<std::size_t>(body.size(), sizeof(abi::RecordHead)));
      const auto size = static_cast<std::uint32_t>(body.size());
      std::memcpy(body.data(), &size, sizeof size);
      const auto* bytes = reinterpret_cast<const std::byte*>(body.data());
      return client.submit({bytes, bytes + body.size()});
    }
    case 6:
    case 7: {  // a pick that is well made but for its fields
      std::vector<std::uint64_t> keys(input.ConsumeIntegralInRange<std::size_t>(0, kKeysMax));
      for (std::size_t at = 0; at < keys.size(); ++at) keys[at] = at + 1;
      if (!keys.empty()) keys.back() = input.ConsumeIntegral<std::uint64_t>();
      const auto sequence = sequence_of(input);
      const auto flags = input.ConsumeIntegral<std::uint8_t>();
      const auto wanted = input.ConsumeIntegralInRange<std::uint8_t>(1, 8);
      const auto fields =
          input.ConsumeBytes<std::uint8_t>(input.ConsumeIntegralInRange<std::size_t>(0, 300));
      return client.submit(pick_record(sequence, flags, keys, fields, wanted));
    }
    case 8:
      return client.submit(report_record(
          50, input.ConsumeBool() ? kHostileClient : kHonestClient, sequence_of(input),
          input.ConsumeIntegralInRange<std::uint8_t>(0, 8), input.ConsumeIntegral<std::uint8_t>(),
          input.ConsumeBool() ? "e" + std::to_string(input.ConsumeIntegralInRange<int>(0, 7))
                              : ""));
    case 9: {
      const abi::RecordHead head{sizeof head, abi::RecordType::kCancel, 0, 0, sequence_of(input)};
      const auto* bytes = reinterpret_cast<const std::byte*>(&head);
      return client.submit({bytes, bytes + sizeof head});
    }
    case 10: {  // what an administrator does meanwhile
      const std::string name = "e" + std::to_string(input.ConsumeIntegralInRange<int>(1, 5));
      const std::uint64_t tick = daemon.room->clock().tick();
      if (input.ConsumeBool()) {
        static_cast<void>(daemon.room->endpoint_table().reset(name, tick));
      } else {
        static_cast<void>(daemon.room->endpoint_table().drain(name, input.ConsumeBool()));
      }
      return;
    }
    case 11:
      daemon.room->clock().set_virtual_tick(daemon.room->clock().tick() +
                                            input.ConsumeIntegralInRange<std::uint64_t>(0, 50));
      daemon.worker().turn();
      return;
  }
}

void run(const std::uint8_t* data, std::size_t size) {
  static Daemon daemon;
  FuzzedDataProvider input(data, size);
  const std::uint32_t id = daemon.last_channel + 1;
  std::unique_ptr<Client> client = daemon.open(kHostileClient, kHostileUid);
  daemon.worker().turn();
  for (int count = 0; count < 64 && input.remaining_bytes() != 0; ++count) {
    step(input, daemon, *client);
    if (input.ConsumeBool()) daemon.worker().turn();
  }
  // Its ring may be full, and a turn takes a part of it: until it is empty or broken.
  for (int turn = 0; turn < 64; ++turn) daemon.worker().turn();
  work_honestly(daemon);
  if (!daemon.gone.contains(id)) daemon.worker().remove(id);
  daemon.worker().turn();
  REQUIRE(daemon.gone.contains(id));
  daemon.gone.clear();
  daemon.room->reservations().release_client(kHostileClient, kHostileUid);
  REQUIRE(daemon.room->reservations().count_held() == 0);
  REQUIRE(daemon.room->reservations().count_of_user(kHostileUid) == 0);
  REQUIRE(daemon.inflight() == 0);
}

}  // namespace
}  // namespace pickd

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  pickd::run(data, size);
  return 0;
}
