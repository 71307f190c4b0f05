// Explanations: what a trace says of a pick, and the ring that keeps traces.
#include <algorithm>
#include <thread>

#include "daemon/pick/explanation.hpp"
#include "daemon/pick/trace_ring.hpp"
#include "tests/pick/pick_fixture.hpp"

namespace pickd::pick::test {
namespace {

// A pick with everything written down.
Explanation explained(PickRig& rig, const PickRequest& request, PickResult* result = nullptr) {
  PickTrace trace(PickTrace::words_for(64));
  rig.scratch().trace = &trace;
  const PickResult picked = rig.pick_only(request);
  rig.scratch().trace = nullptr;
  if (result != nullptr) *result = picked;
  auto made = explain(trace.words());
  if (!made) throw std::runtime_error("not a whole trace");
  return *made;
}

const Explanation::Candidate& named(const Explanation::RunStage& stage, const std::string& name) {
  for (const auto& candidate : stage.candidates) {
    if (candidate.name == name) return candidate;
  }
  throw std::runtime_error("no candidate " + name);
}
float column(const Explanation::Candidate& candidate, Column column) {
  return candidate.columns[static_cast<std::size_t>(column)];
}

RigOptions filtered() {
  RigOptions options;
  options.scheduling = scheduling({{"label-selector-filter", std::nullopt, "{matchLabels: {a: b}}"},
                                   {"prefix-cache-scorer", 3.0},
                                   {"active-request-scorer", 2.0}});
  return options;
}

void add_labelled(PickRig& rig) {
  for (const char* name : {"e1", "e2", "e3", "e4"}) {
    auto spec = rig.spec(name);
    if (std::string_view(name) != "e3") spec.labels = {{"a", "b"}};
    rig.add(spec);
  }
  rig.tick += 10;
}

TEST(Explanations, HoldColumnsScoresSumsAndPlacesOfEveryCandidate) {
  PickRig rig(filtered());
  add_labelled(rig);
  const auto keys = chain(1, 4);
  auto first = rig.request(keys);
  first.has_subset = true;
  const std::string_view only[] = {"e2"};
  first.subset = only;
  rig.pick(first);  // e2 holds the prompt, and has the one request in flight
  auto request = rig.request(keys);
  request.model = "m";
  request.session = "s";
  request.request_id = "r";
  PickResult result;
  const Explanation said = explained(rig, request, &result);
  EXPECT_EQ(said.model, "m");
  EXPECT_EQ(said.session, "s");
  EXPECT_EQ(said.request_id, "r");
  EXPECT_EQ(said.pick.ticket_sequence, request.ticket.sequence);
  EXPECT_EQ(said.pick.uid, PickRig::kUid);
  EXPECT_EQ(said.pick.prompt_blocks, 4U);
  EXPECT_EQ(said.result.status, 0);
  EXPECT_EQ(said.result.reason, static_cast<std::uint32_t>(result.reason));
  EXPECT_EQ(said.result.cut, 0U);
  EXPECT_EQ(said.refused, "");
  ASSERT_EQ(said.stages.size(), 1U);
  const Explanation::RunStage& stage = said.stages[0];
  EXPECT_EQ(stage.profile, "test");
  ASSERT_EQ(stage.candidates.size(), 4U);
  ASSERT_EQ(stage.filters.size(), 1U);
  EXPECT_EQ(stage.filters[0].name, "label-selector-filter");
  EXPECT_EQ(stage.filters[0].dropped, 1U);
  EXPECT_EQ(named(stage, "e3").dropped_by, 0U);
  EXPECT_TRUE(named(stage, "e3").scores.empty());
  ASSERT_EQ(stage.scorers.size(), 2U);
  EXPECT_EQ(stage.scorers[0].weight, 3.0);
  // Of e2: all four blocks, 3 x 1; one request of at most one in flight, 2 x 0. Of the others
  // nothing and 2 x 1.
  EXPECT_EQ(column(named(stage, "e2"), Column::kMatchBlocks), 4.0F);
  EXPECT_EQ(column(named(stage, "e2"), Column::kInflightRequests), 1.0F);
  EXPECT_EQ(named(stage, "e2").scores, (std::vector<float>{1, 0}));
  EXPECT_EQ(named(stage, "e2").sum, 3.0);
  EXPECT_EQ(named(stage, "e2").place, 1U);
  EXPECT_EQ(named(stage, "e1").scores, (std::vector<float>{0, 1}));
  EXPECT_EQ(named(stage, "e1").sum, 2.0);
  EXPECT_EQ(named(stage, "e1").place + named(stage, "e4").place, 2U + 3U);
  EXPECT_EQ(stage.ties, 1U);
}

TEST(Explanations, SayWhoSharesTheFirstPlace) {
  PickRig rig(filtered());
  add_labelled(rig);
  const Explanation said = explained(rig, rig.request());
  EXPECT_EQ(said.stages[0].ties, 3U);
  EXPECT_EQ(said.result.reason, static_cast<std::uint32_t>(abi::Reason::kTie));
}

TEST(Explanations, SayWhoWasNoCandidateAndWhy) {
  PickRig rig(filtered());
  add_labelled(rig);
  rig.set_state("e1", abi::EndpointState::kSuspect);
  auto request = rig.request();
  const std::string_view hint[] = {"e1", "e2"};
  request.subset = hint;
  request.has_subset = true;
  const Explanation said = explained(rig, request);
  ASSERT_EQ(said.left_out.size(), 3U);
  EXPECT_EQ(said.left_out[0].name, "e1");
  EXPECT_EQ(said.left_out[0].why, LeftOut::kNotReady);
  EXPECT_EQ(said.left_out[0].state, static_cast<std::uint32_t>(abi::EndpointState::kSuspect));
  EXPECT_EQ(said.left_out[1].name, "e3");
  EXPECT_EQ(said.left_out[1].why, LeftOut::kOutsideSubset);
  EXPECT_EQ(said.stages[0].candidates.size(), 1U);
}

TEST(Explanations, SayWhyNobodyWasPicked) {
  RigOptions options;
  options.scheduling =
      scheduling({{"label-selector-filter", std::nullopt, "{matchLabels: {a: c}}"}});
  PickRig rig(options);
  add_labelled(rig);
  const Explanation said = explained(rig, rig.request());
  EXPECT_EQ(said.result.status, -EBUSY);
  EXPECT_EQ(said.refused, "the filters left nobody");
  EXPECT_EQ(said.stages[0].filters[0].dropped, 4U);
  auto spec = rig.spec("e9");
  spec.models = {"known"};
  rig.add(spec);
  auto unknown = rig.request();
  unknown.model = "known";
  rig.set_state("e9", abi::EndpointState::kDraining);
  for (const char* name : {"e1", "e2", "e3", "e4"})
    rig.set_state(name, abi::EndpointState::kDraining);
  const Explanation none = explained(rig, unknown);
  EXPECT_EQ(none.result.status, -EHOSTUNREACH);
  EXPECT_EQ(none.left_out.size(), 5U);
  EXPECT_TRUE(none.stages.empty());
}

TEST(Explanations, OfASplitPickHaveAStageForEachEndpoint) {
  auto loaded = config::load_config("", {"PICKD_SCHEDULING_CONFIG_FILE=" PICKD_SOURCE_DIR
                                         "/tests/pick/data/prefill-decode.yaml"});
  ASSERT_TRUE(loaded);
  RigOptions options;
  options.scheduling = loaded->config.scheduling;
  PickRig rig(options);
  for (const char* name : {"decode", "prefill"}) {
    auto spec = rig.spec(name);
    spec.labels = {{"llm-d.ai/role", name}};
    rig.add(spec);
  }
  rig.tick += 10;
  const auto keys = chain(1, 100);
  const Explanation said = explained(rig, rig.request(keys));
  ASSERT_EQ(said.stages.size(), 2U);
  EXPECT_EQ(said.stages[0].stage, Stage::kPrimary);
  EXPECT_EQ(said.stages[1].stage, Stage::kPrefill);
  EXPECT_EQ(named(said.stages[0], "decode").place, 1U);
  EXPECT_EQ(named(said.stages[1], "prefill").place, 1U);
}

// The only way to see the scores of those that were not picked to prefill.
TEST(TopologyAffinityScorer, FallsWithTheDistanceFromTheDecodeEndpoint) {
  auto uses = scheduling({{"decode-filter"}});
  uses.profiles[0].name = "decode";
  auto prefill = scheduling({{"prefill-filter"}, {"topology-affinity-scorer", 1.0}});
  prefill.profiles[0].name = "prefill";
  uses.profiles.push_back(prefill.profiles[0]);
  uses.plugins.insert(uses.plugins.end(), prefill.plugins.begin(), prefill.plugins.end());
  uses.plugins.push_back(
      {"always-disagg-pd-decider", "always-disagg-pd-decider", config::Tree(), {}});
  uses.plugins.push_back(
      {"disagg-profile-handler",
       "disagg-profile-handler",
       *config::parse_tree("{deciders: {prefill: always-disagg-pd-decider}}", "test.yaml"),
       {}});
  RigOptions options;
  options.scheduling = uses;
  PickRig rig(options);
  const char* const keys[] = {"kubernetes.io/hostname", "topology.kubernetes.io/rack",
                              "topology.kubernetes.io/zone", "topology.kubernetes.io/region"};
  // Of the place of `decode`, the first `apart` parts are others.
  const auto add = [&](const char* name, const char* role, std::size_t apart) {
    auto spec = rig.spec(name);
    spec.labels = {{"llm-d.ai/role", role}};
    for (std::size_t at = 0; at < 4; ++at)
      spec.labels.emplace_back(keys[at], at < apart ? std::string("of-") + name : "here");
    rig.add(spec);
  };
  add("decode", "decode", 0);
  add("host", "prefill", 0);
  add("rack", "prefill", 1);
  add("zone", "prefill", 2);
  add("region", "prefill", 3);
  add("far", "prefill", 4);
  rig.tick += 10;
  const Explanation said = explained(rig, rig.request(chain(1, 4)));
  ASSERT_EQ(said.stages.size(), 2U);
  const std::pair<const char*, float> expected[] = {
      {"host", 1.0F}, {"rack", 0.2F}, {"zone", 0.05F}, {"region", 0.02F}, {"far", 0.0F}};
  for (const auto& [name, score] : expected)
    EXPECT_EQ(named(said.stages[1], name).scores, (std::vector<float>{score})) << name;
}

TEST(Explanations, ThatFindNoRoomSayThatTheyAreIncomplete) {
  PickRig rig(filtered());
  for (int at = 0; at < 60; ++at)
    rig.add(rig.spec("an-endpoint-of-a-very-long-name-that-fills-a-trace-in-no-time-" +
                     std::to_string(at)));
  PickTrace trace(PickTrace::kWordsMin);
  rig.scratch().trace = &trace;
  rig.pick_only(rig.request());
  const auto said = explain(trace.words());
  ASSERT_TRUE(said);
  EXPECT_EQ(said->result.cut, 1U);
  ASSERT_EQ(said->stages.size(), 1U);
  EXPECT_LT(said->stages[0].candidates.size(), 60U);
}

TEST(Explanations, OfHalfATraceAreNone) {
  PickRig rig(filtered());
  add_labelled(rig);
  PickTrace trace(PickTrace::kWordsMin);
  rig.scratch().trace = &trace;
  rig.pick_only(rig.request());
  const auto words = trace.words();
  EXPECT_TRUE(explain(words));
  for (std::size_t count = 0; count < words.size(); ++count)
    EXPECT_FALSE(explain(words.first(count))) << count;
}

// ---- The ring ---------------------------------------------------------------------------------

// A trace whose every word can be told from its ticket.
void write(PickTrace& trace, std::uint64_t sequence, std::uint32_t uid) {
  PickRequest request;
  request.ticket = {1, sequence};
  request.uid = uid;
  request.now_ns = sequence;
  trace.begin(request);
  const std::vector<double> sums(sequence % 50, static_cast<double>(sequence));
  trace.sums(sums);
  trace.end({});
}

auto any() {
  return [](const TracedPick&) { return true; };
}
TracedPick pick_of(const std::vector<std::uint64_t>& words) {
  TracedPick pick;
  std::memcpy(&pick, words.data() + 1, sizeof pick);
  return pick;
}

TEST(TraceRings, KeepTheNewestTraces) {
  TraceRing ring(64 * 1024);
  PickTrace trace(ring.trace_words_max());
  EXPECT_FALSE(ring.newest(any()));
  for (std::uint64_t sequence = 1; sequence <= 10'000; ++sequence) {
    write(trace, sequence, sequence % 2 == 0 ? 1000 : 2000);
    ASSERT_TRUE(ring.put(trace.words()));
  }
  EXPECT_EQ(pick_of(*ring.newest(any())).ticket_sequence, 10'000U);
  EXPECT_EQ(pick_of(*ring.newest([](const TracedPick& pick) {
              return pick.uid == 2000;
            })).ticket_sequence,
            9'999U);
  EXPECT_EQ(pick_of(*ring.newest([](const TracedPick& pick) {
              return pick.ticket_sequence == 9'950;
            })).ticket_sequence,
            9'950U);
  EXPECT_FALSE(ring.newest([](const TracedPick& pick) { return pick.ticket_sequence == 1; }));
}

TEST(TraceRings, RefuseWhatIsLargerThanTheyAre) {
  TraceRing ring(0);
  const std::vector<std::uint64_t> large(ring.trace_words_max() + 1);
  EXPECT_FALSE(ring.put(large));
  EXPECT_TRUE(ring.put(std::span(large).first(ring.trace_words_max())));
}

TEST(TraceRings, GiveWholeTracesWhileOthersAreWritten) {
  TraceRing ring(8 * 1024);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    PickTrace trace(ring.trace_words_max());
    for (std::uint64_t sequence = 1; !stop.load(); ++sequence) {
      write(trace, sequence, 0);
      ring.put(trace.words());
    }
  });
  std::uint64_t last = 0;
  std::uint32_t found = 0;
  while (found < 2000) {
    const auto words = ring.newest(any());
    if (!words) continue;
    ++found;
    const std::uint64_t sequence = pick_of(*words).ticket_sequence;
    ASSERT_GE(sequence, last);
    last = sequence;
    const std::size_t sums = 1 + 1 + sizeof(TracedPick) / 8;
    for (std::size_t at = 0; at < sequence % 50; ++at) {
      double sum;
      std::memcpy(&sum, words->data() + sums + at, sizeof sum);
      ASSERT_EQ(sum, static_cast<double>(sequence)) << "a word of another trace";
    }
  }
  stop.store(true);
  writer.join();
}

}  // namespace
}  // namespace pickd::pick::test
