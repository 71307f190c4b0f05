// A pick allocates nothing: this program counts what its threads ask of operator new.
#include "daemon/pick/builtin_profiles.hpp"
#include "daemon/pick/trace_ring.hpp"
#include "tests/counted_allocations.hpp"
#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

// What the second and later of such picks and memories ask for.
std::uint64_t allocations_of(PickRig& rig, const PickRequest& request) {
  PickRequest own = request;
  PickResult result;
  std::uint64_t counted_after_first = 0;
  for (std::uint64_t turn = 0; turn < 50; ++turn) {
    own.ticket.sequence += 1;
    const std::uint64_t before = tests::allocations;
    rig.core().pick(own, rig.topology(), rig.tick, rig.scratch(), rig.counters(), result);
    rig.core().remember(own, result, rig.tick, rig.counters());
    rig.reservations().end(own.ticket, PickRig::kUid);
    if (turn != 0) counted_after_first += tests::allocations - before;
    ++rig.tick;
  }
  return counted_after_first;
}

TEST(Allocations, AreCounted) {
  const std::uint64_t before = tests::allocations;
  auto one = std::make_unique<int>(1);
  EXPECT_EQ(tests::allocations, before + 1);
}

TEST(Allocations, AreNoneInAPickWithEveryPlugin) {
  RigOptions options;
  options.scheduling =
      scheduling({{"prefix-cache-scorer"},
                  {"active-request-scorer"},
                  {"token-load-scorer"},
                  {"queue-scorer"},
                  {"kv-cache-utilization-scorer"},
                  {"lora-affinity-scorer"},
                  {"session-affinity-scorer"},
                  {"label-selector-filter", std::nullopt, "{matchLabels: {a: b}}"}});
  PickRig rig(options);
  for (int at = 0; at < 50; ++at) {
    auto spec = rig.spec("endpoint-of-a-long-name-" + std::to_string(at));
    spec.labels = {{"a", "b"}};
    spec.models = {"a-model-whose-name-does-not-fit-a-small-string"};
    rig.add(spec);
  }
  const auto keys = chain(1, 500);
  const std::string_view subset[] = {"endpoint-of-a-long-name-1", "endpoint-of-a-long-name-2:8000",
                                     "endpoint-of-a-long-name-nobody"};
  auto request = rig.request(keys);
  request.model = "a-model-whose-name-does-not-fit-a-small-string";
  request.session = "a-session-whose-name-does-not-fit-a-small-string";
  request.adapter = "an-adapter-whose-name-does-not-fit-a-small-string";
  EXPECT_EQ(allocations_of(rig, request), 0U);
  request.has_subset = true;
  request.subset = subset;
  EXPECT_EQ(allocations_of(rig, request), 0U);
  request.model = "another-model-whose-name-does-not-fit-a-small-string";
  EXPECT_EQ(allocations_of(rig, request), 0U) << "a refused one";
}

TEST(Allocations, AreNoneUnderAnyProfileByName) {
  for (const BuiltinProfile& profile : builtin_profiles()) {
    RigOptions options;
    options.profile = profile.name;
    PickRig rig(options);
    rig.add_endpoints(30);
    const auto keys = chain(1, 100);
    auto request = rig.request(keys);
    request.priority = -1;
    EXPECT_EQ(allocations_of(rig, request), 0U) << profile.name;
  }
}

TEST(Allocations, AreNoneWithFiltersLabelsAndDrawing) {
  RigOptions options;
  options.scheduling = scheduling(
      {{"decode-filter"},
       {"session-affinity-filter"},
       {"prefix-cache-affinity-filter", std::nullopt, "{affinityThreshold: 0.1}"},
       {"utilization-filter", std::nullopt, "{conditions: [{metric: waiting-queue, maxValue: 3}]}"},
       {"endpoint-attribute-filter", std::nullopt,
        "{attribute: waiting-queue, algorithm: {type: topK, topK: {k: 20}}}"},
       {"concurrency-detector"},
       {"topology-affinity-filter"},
       {"running-requests-size-scorer"},
       {"load-aware-scorer"},
       {"no-hit-lru-scorer"},
       {"context-length-aware"},
       {"header-label-affinity-scorer", 1.0, "{headerName: h, labelKey: a}"},
       {"endpoint-attribute-scorer", 1.0,
        "{attributeKey: 'label:n', algorithm: {type: linear_lower_is_better}}"},
       {"weighted-random-picker"}});
  PickRig rig(options);
  for (int at = 0; at < 50; ++at) {
    auto spec = rig.spec("endpoint-of-a-long-name-" + std::to_string(at));
    spec.labels = {{"a", "b"}, {"n", "5"}, {"llm-d.ai/context-length-range", "0-20000"}};
    rig.add(spec);
  }
  const auto keys = chain(1, 100);
  const Attribute attributes[] = {{"H", "b"}, {"x-session-token", "bm9ib2R5"}};
  auto request = rig.request(keys);
  request.session = "a-session-whose-name-does-not-fit-a-small-string";
  request.attributes = attributes;
  EXPECT_EQ(allocations_of(rig, request), 0U);
}

TEST(Allocations, AreNoneInASplitPick) {
  auto loaded = config::load_config("", {"PICKD_SCHEDULING_CONFIG_FILE=" PICKD_SOURCE_DIR
                                         "/tests/pick/data/prefill-decode.yaml"});
  ASSERT_TRUE(loaded);
  RigOptions options;
  options.scheduling = loaded->config.scheduling;
  PickRig rig(options);
  for (const char* name : {"decode", "prefill"}) {
    auto spec = rig.spec(name);
    spec.labels = {{"llm-d.ai/role", name}, {"kubernetes.io/hostname", "a-host-of-a-long-name"}};
    rig.add(spec);
  }
  rig.tick += 10;
  const auto keys = chain(1, 100);
  EXPECT_EQ(allocations_of(rig, rig.request(keys)), 0U);
}

TEST(Allocations, AreNoneInAPickThatIsWrittenDown) {
  RigOptions options;
  options.profile = "epp-default";
  PickRig rig(options);
  rig.add_endpoints(50);
  TraceRing ring(64 * 1024);
  PickTrace trace(ring.trace_words_max());
  rig.scratch().trace = &trace;
  const auto keys = chain(1, 100);
  const auto request = rig.request(keys);
  EXPECT_EQ(allocations_of(rig, request), 0U);
  std::uint64_t kept = 0;
  const std::uint64_t before = tests::allocations;
  for (int at = 0; at < 100; ++at) kept += ring.put(trace.words()) ? 1 : 0;
  EXPECT_EQ(tests::allocations, before);
  EXPECT_EQ(kept, 100U);
}

TEST(Allocations, AreNoneUnderRoundRobin) {
  RigOptions options;
  options.profile = "round-robin";
  PickRig rig(options);
  rig.add_endpoints(30);
  const auto keys = chain(1, 100);
  EXPECT_EQ(allocations_of(rig, rig.request(keys)), 0U);
}

}  // namespace
}  // namespace pickd::pick::test
