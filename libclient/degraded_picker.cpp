// DegradedPicker: see degraded_picker.hpp.
#include "libclient/degraded_picker.hpp"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "abi/channel_layout.hpp"
#include "libclient/deadline.hpp"
#include "libclient/own_load.hpp"
#include "libclient/prefix_match.hpp"
#include "libclient/recent_picks.hpp"
#include "libclient/result.hpp"
#include "libclient/routing.hpp"

namespace pickd::client {

namespace {

// What a request costs beside its prefill: it decodes, and the more so the longer its context. Half
// of the prompt: one that finds nothing cached then weighs three times one that finds all, however
// long it is, so the home of a hot prefix never gets more than three times what another endpoint
// gets.
constexpr std::uint32_t kRequestTokens = 256;
std::uint32_t decode_tokens(std::uint32_t prompt_tokens) {
  const std::uint32_t share = prompt_tokens / 2;
  return share < kRequestTokens ? kRequestTokens : share;
}

std::uint32_t random_below(std::uint64_t& state, std::uint32_t bound) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return static_cast<std::uint32_t>(((state >> 32) * bound) >> 32);
}

bool is_same(const StoreView& store, const Routing::Endpoint& endpoint) {
  const fb::Endpoint& spec = *endpoint.spec;
  return store.is_called(endpoint.id, spec.name()->data(), spec.name()->size(),
                         spec.address()->data(), spec.address()->size());
}

bool is_of(abi::CountWord word, std::uint32_t generation) {
  return word.generation() == (generation & abi::kGenerationMask);
}

}  // namespace

struct DegradedPicker::Question {
  const std::uint64_t* keys;
  std::uint32_t key_count;
  std::uint32_t block_tokens;
  std::uint32_t prompt_tokens;
  std::uint32_t endpoints_max;
  bool cut;
  bool dry_run;
  bool has_subset;
  pickd_slice model;
  const pickd_slice* subset;
  std::size_t subset_count;
};

std::uint32_t DegradedPicker::match_tokens(const Question& question, std::uint32_t blocks) {
  const std::uint64_t tokens = std::uint64_t{blocks} * question.block_tokens;
  return tokens < question.prompt_tokens ? static_cast<std::uint32_t>(tokens)
                                         : question.prompt_tokens;
}

struct DegradedPicker::Memory {
  Routing routing;
  OwnLoad own;
  RecentPicks recent;
  std::uint64_t instance = 0;  // of the segment whose endpoint ids these two use
  MatchColumns columns{};
  std::uint16_t entries[abi::kEndpointIdsMax] = {};  // index in `routing` by candidate
  std::uint16_t order[abi::kEndpointIdsMax] = {};    // candidates; first those with room
  std::uint32_t with_room = 0;
  std::uint64_t keys[abi::kKeysMax];
};

DegradedPicker::DegradedPicker() = default;
DegradedPicker::~DegradedPicker() = default;

bool DegradedPicker::ready_memory(std::uint32_t keys) {
  if (memory_ == nullptr) {
    memory_.reset(make_object<Memory>());
    // Gateways of one start must not draw alike.
    if (::getrandom(&random_, sizeof random_, GRND_NONBLOCK) != sizeof random_)
      random_ = monotonic_ns() ^ reinterpret_cast<std::uintptr_t>(this);
    random_ |= 1;
  }
  if (memory_ != nullptr) used_.store(true, std::memory_order_relaxed);
  return memory_ != nullptr && keys <= abi::kKeysMax;
}

int DegradedPicker::pick(const StateView& state, std::uint32_t keys_max, const PickRequest& request,
                         pickd_ticket ticket, pickd_result& result) {
  PickShape shape;
  LastError unheard;
  if (request.shape(state, keys_max, shape, unheard) != 0) shape = {nullptr, 0, false, 0, 0};
  const Lock lock(mutex_);
  if (!ready_memory(shape.key_count)) return -ENOMEM;
  const std::uint64_t hash_ns = request.hash(shape, state, TickClock(), memory_->keys);
  const pickd_request& raw = request.raw();
  const Question question{memory_->keys,
                          shape.key_count,
                          state.block_tokens(),
                          request.prompt_tokens(),
                          request.endpoints_max(),
                          shape.cut,
                          (raw.flags & PICKD_REQUEST_DRY_RUN) != 0,
                          (raw.flags & PICKD_REQUEST_SUBSET) != 0,
                          raw.model,
                          raw.subset,
                          request.subset_count()};
  const int code = answer(state, question, ticket, result);
  if (code == 0) result.hash_ns = hash_ns;
  return code;
}

int DegradedPicker::pick(const StateView& state, const std::byte* record, pickd_ticket ticket,
                         pickd_result& result) {
  abi::PickRecord head;
  ::memcpy(&head, record, sizeof head);
  pickd_slice subset[abi::kSubsetMax];
  Question question{nullptr,
                    head.key_count,
                    state.block_tokens(),
                    head.prompt_tokens,
                    head.endpoints_max,
                    (head.head.flags & abi::kPickCut) != 0,
                    (head.head.flags & abi::kPickDryRun) != 0,
                    (head.head.flags & abi::kPickSubset) != 0,
                    {nullptr, 0},
                    subset,
                    0};
  const std::byte* keys = record + sizeof head;
  const std::byte* field = keys + head.key_count * sizeof(std::uint64_t);
  const std::byte* const end = field + head.field_bytes;
  while (field < end) {
    abi::FieldHead field_head;
    ::memcpy(&field_head, field, sizeof field_head);
    const pickd_slice content{field + sizeof field_head, field_head.bytes};
    if (field_head.kind == abi::FieldKind::kModel) question.model = content;
    if (field_head.kind == abi::FieldKind::kSubsetEndpoint)
      subset[question.subset_count++] = content;
    field += sizeof field_head + field_head.bytes;
  }
  const Lock lock(mutex_);
  if (!ready_memory(head.key_count) || memory_ == nullptr) return -ENOMEM;
  ::memcpy(memory_->keys, keys, head.key_count * sizeof(std::uint64_t));
  question.keys = memory_->keys;
  return answer(state, question, ticket, result);
}

// The candidates in `wanted` state into columns and entries. -ENOENT: nobody serves the model.
int DegradedPicker::gather(const StoreView& store, const Question& question, std::uint32_t wanted) {
  MatchColumns& columns = memory_->columns;
  columns.count = 0;
  bool served = false;
  for (std::uint32_t index = 0; index < memory_->routing.count(); ++index) {
    const Routing::Endpoint& endpoint = memory_->routing.endpoint(index);
    if (!Routing::serves(endpoint, question.model)) continue;
    served = true;
    const abi::EndpointRecord& record = store.endpoint(endpoint.id);
    // Acquire; partner: the release stores of begin_generation(): a ready state shows the life word
    // of its generation or of a newer one.
    if (record.state.load(std::memory_order_acquire) != wanted) continue;
    const std::uint64_t life = record.life.load(std::memory_order_acquire);
    // A reset begins a new generation without a new snapshot; another name or address is another
    // engine.
    if (abi::LifeWord{life}.generation() != endpoint.generation && !is_same(store, endpoint))
      continue;
    bool allowed = !question.has_subset;
    for (std::size_t i = 0; !allowed && i < question.subset_count; ++i)
      allowed = Routing::is_called(endpoint, question.subset[i]);
    if (!allowed || columns.count == abi::kEndpointIdsMax - 1) continue;
    columns.ids[columns.count] = endpoint.id;
    columns.lives[columns.count] = life;
    memory_->entries[columns.count] = static_cast<std::uint16_t>(index);
    ++columns.count;
  }
  if (columns.count != 0) return 0;
  return served ? -EHOSTUNREACH : -ENOENT;
}

std::uint64_t DegradedPicker::cost(const StoreView& store, const Question& question,
                                   std::uint32_t at, bool load_is_known) const {
  const std::uint32_t id = memory_->columns.ids[at];
  std::uint64_t tokens = question.prompt_tokens -
                         match_tokens(question, memory_->columns.blocks[at]) +
                         memory_->own.tokens(id);
  if (!load_is_known) return tokens;
  const std::uint32_t generation = abi::LifeWord{memory_->columns.lives[at]}.generation();
  const abi::EndpointRecord& record = store.endpoint(id);
  // Relaxed: counts are hints, each whole in itself. Partner: change_count() in the daemon.
  const abi::CountWord requests{record.inflight_requests.load(std::memory_order_relaxed)};
  const abi::CountWord prefill{record.inflight_tokens.load(std::memory_order_relaxed)};
  if (is_of(requests, generation)) tokens += requests.count() * kRequestTokens;
  if (is_of(prefill, generation)) tokens += prefill.count();
  return tokens;
}

// Those of the candidates that have not had their share of this client's picks first in `order`,
// at least one: see recent_picks.hpp.
void DegradedPicker::find_room() {
  const MatchColumns& columns = memory_->columns;
  std::uint64_t all = 0;
  for (std::uint32_t at = 0; at < columns.count; ++at) all += memory_->recent.of(columns.ids[at]);
  memory_->with_room = 0;
  std::uint32_t end = columns.count;
  for (std::uint32_t at = 0; at < columns.count; ++at) {
    const bool room =
        RecentPicks::has_room(memory_->recent.of(columns.ids[at]), all, columns.count);
    memory_->order[room ? memory_->with_room++ : --end] = static_cast<std::uint16_t>(at);
  }
}

// The place of the longest match among the first `count` in `order`; one of those at random where
// there are several. Of 0 blocks, where nobody holds anything, all are.
std::uint32_t DegradedPicker::longest(std::uint32_t count) {
  const std::uint32_t* blocks = memory_->columns.blocks;
  const std::uint16_t* order = memory_->order;
  std::uint32_t best = 0;
  std::uint32_t equals = 0;
  for (std::uint32_t place = 0; place < count; ++place) {
    if (blocks[order[place]] < blocks[order[best]]) continue;
    equals = place == 0 || blocks[order[place]] > blocks[order[best]] ? 1 : equals + 1;
    if (equals == 1 || random_below(random_, equals) == 0) best = place;
  }
  return best;
}

int DegradedPicker::answer(const StateView& state, const Question& question, pickd_ticket ticket,
                           pickd_result& result) {
  const StoreView& store = state.store();
  if (!store.usable()) return -ENOTCONN;
  const std::uint64_t now_ns = monotonic_ns();
  MatchColumns& columns = memory_->columns;
  // Before the endpoints are looked at: what is reset after this lies above it.
  const std::uint64_t tick = store.tick();
  if (!memory_->routing.refresh(store)) return -ENOTCONN;
  if (memory_->instance != store.instance_id()) {
    memory_->own.clear();  // another file: other ids
    memory_->recent.clear();
    memory_->instance = store.instance_id();
  }
  memory_->own.age(now_ns);

  int code = gather(store, question, static_cast<std::uint32_t>(abi::EndpointState::kReady));
  // Nobody is ready: the least bad there is, as the daemon would.
  for (const abi::EndpointState less :
       {abi::EndpointState::kSuspect, abi::EndpointState::kStarting, abi::EndpointState::kDown}) {
    if (code != -EHOSTUNREACH) break;
    code = gather(store, question, static_cast<std::uint32_t>(less));
  }
  if (code != 0) {
    result.fail(code);
    result.flags = PICKD_RESULT_DEGRADED;
    return code;
  }
  match_prefix(store, tick, question.keys, question.key_count, columns);
  // What was in flight when the daemon fell silent has ended by then: it must not keep an endpoint
  // without work for ever.
  const bool load_is_known = store.silent_ns() < OwnLoad::kLifeNs;
  find_room();
  const std::uint16_t* order = memory_->order;
  std::uint32_t place = longest(columns.count);
  const std::uint32_t home = order[place];
  if (place >= memory_->with_room) place = longest(memory_->with_room);
  std::uint32_t winner = order[place];
  std::uint32_t other = winner;
  if (memory_->with_room > 1) {
    const std::uint32_t drawn = random_below(random_, memory_->with_room - 1);
    other = order[drawn >= place ? drawn + 1 : drawn];
    if (cost(store, question, other, load_is_known) <
        cost(store, question, winner, load_is_known)) {
      const std::uint32_t loser = winner;
      winner = other;
      other = loser;
    }
  }
  if (home != winner) other = home;  // the next best when the winner fails

  result.fail(0);
  result.ticket = ticket;
  result.reason = PICKD_REASON_DEGRADED;
  result.flags = PICKD_RESULT_DEGRADED | (question.cut ? PICKD_RESULT_CUT : 0U);
  result.prompt_tokens = question.prompt_tokens;
  const auto list = [&](std::uint32_t at) {
    const fb::Endpoint& spec = *memory_->routing.endpoint(memory_->entries[at]).spec;
    const std::uint8_t role = spec.role() <= PICKD_ROLE_ENCODE ? spec.role() : 0;
    result.add({spec.name()->data(), spec.name()->size()},
               {spec.address()->data(), spec.address()->size()}, static_cast<pickd_role>(role),
               match_tokens(question, columns.blocks[at]),
               -static_cast<float>(cost(store, question, at, load_is_known)));
  };
  list(winner);
  if (other != winner && question.endpoints_max > 1) list(other);
  // Further fallbacks from a random place on, so that they too are spread.
  const std::uint32_t start = random_below(random_, columns.count);
  for (std::uint32_t turn = 0;
       turn < columns.count && result.endpoint_count < question.endpoints_max; ++turn) {
    const std::uint32_t at =
        start + turn < columns.count ? start + turn : start + turn - columns.count;
    if (at != winner && at != other) list(at);
  }
  if (!question.dry_run) {
    const std::uint32_t uncached =
        question.prompt_tokens - match_tokens(question, columns.blocks[winner]);
    memory_->own.add(ticket.sequence, columns.ids[winner], uncached,
                     decode_tokens(question.prompt_tokens), now_ns);
    memory_->recent.add(columns.ids[winner], memory_->routing.count());
  }
  return 0;
}

bool DegradedPicker::report(std::uint64_t sequence, pickd_report_kind kind,
                            const pickd_slice& endpoint) {
  if (!used_.load(std::memory_order_relaxed)) return false;
  const Lock lock(mutex_);
  OwnLoad& own = memory_->own;
  if (!own.has(sequence)) return false;
  switch (kind) {
    case PICKD_REPORT_FIRST_TOKEN: own.first_token(sequence); break;
    case PICKD_REPORT_FALLBACK:
      for (std::uint32_t index = 0; index < memory_->routing.count(); ++index) {
        const Routing::Endpoint& known = memory_->routing.endpoint(index);
        if (!Routing::is_called(known, endpoint)) continue;
        own.move(sequence, known.id);
        break;
      }
      break;
    case PICKD_REPORT_DONE:
    case PICKD_REPORT_FAILED:
    case PICKD_REPORT_CANCELLED: return own.end(sequence);
    case PICKD_REPORT_PROGRESS: break;
  }
  return true;
}

}  // namespace pickd::client
