#include "daemon/pick/external/external_plugin.hpp"

#include "daemon/base/clock.hpp"

namespace pickd::pick {

namespace {

// The numbers of columns are a promise to libraries.
static_assert(PICKD_COLUMN_MATCH_BLOCKS == static_cast<int>(Column::kMatchBlocks));
static_assert(PICKD_COLUMN_UNCACHED_TOKENS == static_cast<int>(Column::kUncachedTokens));
static_assert(PICKD_COLUMN_INFLIGHT_REQUESTS == static_cast<int>(Column::kInflightRequests));
static_assert(PICKD_COLUMN_INFLIGHT_TOKENS == static_cast<int>(Column::kInflightTokens));
static_assert(PICKD_COLUMN_INFLIGHT_PROMPTS == static_cast<int>(Column::kInflightPrompts));
static_assert(PICKD_COLUMN_WAITING == static_cast<int>(Column::kWaiting));
static_assert(PICKD_COLUMN_RUNNING == static_cast<int>(Column::kRunning));
static_assert(PICKD_COLUMN_KV_USE == static_cast<int>(Column::kKvUse));
static_assert(PICKD_COLUMN_ADAPTER == static_cast<int>(Column::kAdapter));
static_assert(PICKD_COLUMN_SESSION == static_cast<int>(Column::kSession));
static_assert(PICKD_COLUMN_PREDICTED_TTFT == static_cast<int>(Column::kPredictedTtft));
static_assert(PICKD_COLUMN_PREDICTED_ITL == static_cast<int>(Column::kPredictedItl));
static_assert(PICKD_COLUMN_COST == static_cast<int>(Column::kCost));

pickd_plugin_text text_of(std::string_view text) { return {text.data(), text.size()}; }
constexpr pickd_plugin_text kNone{nullptr, 0};

const PickContext& context_of(const pickd_plugin_pick* pick) {
  return *static_cast<const PickContext*>(pick->host);
}
const endpoints::TopologyEndpoint* endpoint_of(const pickd_plugin_pick* pick, std::size_t at) {
  const Candidates& candidates = context_of(pick).candidates;
  return at < candidates.count ? candidates.endpoints()[at] : nullptr;
}

pickd_plugin_text name_of(const pickd_plugin_pick* pick, std::size_t at) {
  const auto* endpoint = endpoint_of(pick, at);
  return endpoint == nullptr ? kNone : text_of(endpoint->name);
}
pickd_plugin_text address_of(const pickd_plugin_pick* pick, std::size_t at) {
  const auto* endpoint = endpoint_of(pick, at);
  return endpoint == nullptr ? kNone : text_of(endpoint->address);
}
pickd_plugin_text label_of(const pickd_plugin_pick* pick, std::size_t at, const char* key) {
  const auto* endpoint = endpoint_of(pick, at);
  const std::string* value = endpoint == nullptr || key == nullptr ? nullptr : endpoint->label(key);
  return value == nullptr ? kNone : text_of(*value);
}
pickd_plugin_text attribute_of(const pickd_plugin_pick* pick, const char* name) {
  const std::string_view* value =
      name == nullptr ? nullptr : context_of(pick).request.attribute(name);
  return value == nullptr ? kNone : text_of(*value);
}

}  // namespace

bool ExternalPlugin::timed(const PickContext& context, Call call, void* out) const {
  const pickd_plugin& functions = instance_.functions();
  const float* columns[kColumns] = {};
  for (std::size_t at = 0; at < kColumns; ++at) {
    if ((functions.columns >> at & 1) != 0)
      columns[at] = context.candidates.column(static_cast<Column>(at)).data();
  }
  const PickRequest& request = context.request;
  pickd_plugin_pick pick;
  pick.struct_size = sizeof pick;
  pick.count = context.candidates.count;
  pick.columns = columns;
  pick.column_count = kColumns;
  pick.ids = context.candidates.ids();
  pick.model = text_of(request.model);
  pick.adapter = text_of(request.adapter);
  pick.session = text_of(request.session);
  pick.fairness = text_of(request.fairness);
  pick.prompt_tokens = request.prompt_tokens;
  pick.prompt_blocks = static_cast<std::uint32_t>(request.keys.size());
  pick.expected_output_tokens = request.expected_output_tokens;
  pick.priority = request.priority;
  pick.slo_ttft_ms = request.slo_ttft_ms;
  pick.slo_itl_ms = request.slo_itl_ms;
  pick.endpoint_name = name_of;
  pick.endpoint_address = address_of;
  pick.endpoint_label = label_of;
  pick.attribute = attribute_of;
  pick.host = &context;
  const std::uint64_t began_ns = base::monotonic_ns();
  const bool good = call(functions, instance_.self(), pick, out);
  judge(good, base::monotonic_ns() - began_ns);
  return good;
}

void ExternalPlugin::judge(bool good, std::uint64_t took_ns) const {
  const std::uint64_t call = health_.calls.fetch_add(1, std::memory_order_relaxed);
  const bool slow = took_ns > settings_.budget_ns;
  if (good && !slow) return;
  if (!good) health_.failures.fetch_add(1, std::memory_order_relaxed);
  if (slow) health_.slow.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t window = call / kWindowCalls & 0xFFFFFFFF;
  std::uint64_t seen = bad_.load(std::memory_order_relaxed);
  std::uint64_t next;
  do {
    const std::uint64_t before = seen >> 32 == window ? seen & 0xFFFFFFFF : 0;
    next = window << 32 | (before + 1);
  } while (!bad_.compare_exchange_weak(seen, next, std::memory_order_relaxed));
  if ((next & 0xFFFFFFFF) >= settings_.failures_max)
    health_.off.store(true, std::memory_order_relaxed);
}

}  // namespace pickd::pick
