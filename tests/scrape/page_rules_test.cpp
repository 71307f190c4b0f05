// The rules of a metrics page, one by one, on pages of our own.
#include "tests/scrape/support.hpp"

namespace pickd::scrape::test {
namespace {

using Names = std::vector<std::string>;

// A vLLM page with these further lines.
std::string vllm(const std::string& lines = {}) {
  return "# TYPE vllm:num_requests_running gauge\n"
         "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 4.0\n"
         "vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 7.0\n" +
         lines;
}

TEST(PageRules, EachEngineIsReadByItsOwnNames) {  // Field case 59: mixed engines in one pool.
  struct Engine {
    const char* name;
    const char* page;
  };
  for (const Engine& engine : {
           Engine{"vllm",
                  "vllm:num_requests_waiting 3\nvllm:num_requests_running 5\n"
                  "vllm:kv_cache_usage_perc 0.25\n"},
           Engine{"sglang",
                  "sglang:num_queue_reqs 3\nsglang:num_running_reqs 5\nsglang:token_usage 0.25\n"},
           Engine{"trtllm-serve",
                  "trtllm_num_requests_waiting 3\ntrtllm_num_requests_running 5\n"
                  "trtllm_kv_cache_utilization 0.25\n"},
           Engine{"triton-tensorrt-llm",
                  "nv_inference_pending_request_count{model=\"x\"} 9\n"
                  "nv_trt_llm_request_metrics{request_type=\"waiting\"} 3\n"
                  "nv_trt_llm_request_metrics{request_type=\"scheduled\"} 5\n"
                  "nv_trt_llm_request_metrics{request_type=\"max\"} 512\n"
                  "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"fraction\"} 0.25\n"},
           Engine{"lmdeploy",
                  "lmdeploy:num_requests_waiting 3\nlmdeploy:num_requests_running 5\n"
                  "lmdeploy:gpu_cache_usage_perc 0.25\n"},
       }) {
    const PageFacts page = read(engine.page);
    EXPECT_EQ(page.engine, engine.name);
    EXPECT_EQ(page.facts.waiting, 3U) << engine.name;
    EXPECT_EQ(page.facts.running, 5U) << engine.name;
    EXPECT_EQ(page.facts.kv_use_ppm, 250'000U) << engine.name;
  }
  const PageFacts tgi = read("tgi_queue_size 3\ntgi_batch_current_size 5\n");
  EXPECT_EQ(tgi.engine, "tgi");
  EXPECT_EQ(tgi.facts.waiting, 3U);
  EXPECT_EQ(tgi.facts.kv_use_ppm, kUnknown);
  const PageFacts triton = read("nv_inference_pending_request_count{model=\"a\"} 3\n");
  EXPECT_EQ(triton.engine, "triton");
  EXPECT_EQ(triton.facts.running, kUnknown);
}

TEST(PageRules, AnEngineThatWasSetIsReadWhateverElseThePageHas) {
  const std::string page = vllm("sglang:num_queue_reqs 1\n");
  EXPECT_EQ(read(page, 0, "sglang").facts.waiting, 1U);
  EXPECT_EQ(read(page, 0, "llm-d-inference-sim").engine, "vllm");
  EXPECT_EQ(read(page, 0, "no such engine").engine, "vllm");
}

TEST(PageRules, CountsOfRanksAreSummedAndTheCacheIsAveraged) {  // Field case 49
  const std::string page =
      "vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 100\n"
      "vllm:num_requests_waiting{engine=\"1\",model_name=\"m\"} 0\n"
      "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 50\n"
      "vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 2\n"
      "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 1.0\n"
      "vllm:kv_cache_usage_perc{engine=\"1\",model_name=\"m\"} 0.5\n"
      "vllm:cache_config_info{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"1000\"} 1.0\n"
      "vllm:cache_config_info{block_size=\"16\",engine=\"1\",num_gpu_blocks=\"1001\"} 1.0\n";
  const endpoints::EngineFacts all = read(page).facts;
  EXPECT_EQ(all.waiting, 100U);
  EXPECT_EQ(all.running, 52U);
  EXPECT_EQ(all.kv_use_ppm, 750'000U);
  EXPECT_EQ(all.kv_use_max_ppm, 1'000'000U);
  EXPECT_EQ(all.ranks, 2U);
  EXPECT_EQ(all.block_tokens, 16U);
  EXPECT_EQ(all.blocks, 2001U);
  EXPECT_TRUE(all.models.empty());
  // An endpoint that stands for one rank sees that one.
  const endpoints::EngineFacts one = read(page, 0, {}, 1).facts;
  EXPECT_EQ(one.waiting, 0U);
  EXPECT_EQ(one.running, 2U);
  EXPECT_EQ(one.kv_use_ppm, 500'000U);
  EXPECT_EQ(one.blocks, 1001U);
  EXPECT_EQ(read(page, 0, {}, 5).facts.waiting, kUnknown) << "a rank that is not there";
}

TEST(PageRules, SglangRanksAreToldApartByTheirOwnLabel) {  // Field case 49
  const std::string page =
      "sglang:num_queue_reqs{dp_rank=\"0\",pp_rank=\"0\",tp_rank=\"0\"} 9\n"
      "sglang:num_queue_reqs{dp_rank=\"0\",pp_rank=\"0\",tp_rank=\"1\"} 9\n"
      "sglang:num_queue_reqs{dp_rank=\"1\",pp_rank=\"0\",tp_rank=\"2\"} 5\n"
      "sglang:num_running_reqs{dp_rank=\"0\",pp_rank=\"0\",tp_rank=\"0\"} 1\n";
  EXPECT_EQ(read(page).facts.waiting, 14U) << "parts of one rank report the same";
  EXPECT_EQ(read(page).facts.ranks, 2U);
  EXPECT_EQ(read(page, 0, {}, 1).facts.waiting, 5U);
}

TEST(PageRules, APageOfOneRankAloneIsThatRanks) {
  const std::string page = "vllm:num_requests_waiting{engine=\"0\"} 6\n";
  EXPECT_EQ(read(page, 0, {}, 3).facts.waiting, 6U) << "each rank has a port and a page of its own";
}

TEST(PageRules, ALabelSetThatComesTwiceCountsOnceByItsLastLine) {
  EXPECT_EQ(read("vllm:num_requests_waiting{a=\"1\",b=\"2\"} 3\n"
                 "vllm:num_requests_waiting{b=\"2\",a=\"1\"} 5\n")
                .facts.waiting,
            5U);
  EXPECT_EQ(read("vllm:num_requests_waiting{a=\"1\",b=\"2\"} 3\n"
                 "vllm:num_requests_waiting{a=\"2\",b=\"1\"} 5\n")
                .facts.waiting,
            8U);
  EXPECT_EQ(read("vllm:num_requests_waiting NaN\nvllm:num_requests_waiting 2\n").facts.waiting, 2U);
}

TEST(PageRules, TheNewNameOfTheCacheIsPreferredAndTheOldOneTaken) {  // Field case 50
  EXPECT_EQ(
      read(vllm("vllm:gpu_cache_usage_perc 0.9\nvllm:kv_cache_usage_perc 0.1\n")).facts.kv_use_ppm,
      100'000U);
  EXPECT_EQ(read(vllm("vllm:gpu_cache_usage_perc 0.9\n")).facts.kv_use_ppm, 900'000U);
  EXPECT_EQ(read(vllm()).facts.kv_use_ppm, kUnknown) << "absence is no 0";
}

TEST(PageRules, WhatIsNoSoundValueIsUnknown) {  // Field case 61
  for (const char* value :
       {"NaN", "nan", "+Inf", "-Inf", "Infinity", "-1", "-0.5", "2147483648", "4e9", "1e999"}) {
    const std::string text(value);
    const endpoints::EngineFacts facts =
        read("vllm:num_requests_waiting " + text + "\nvllm:num_requests_running 1\n").facts;
    EXPECT_EQ(facts.waiting, kUnknown) << value;
    EXPECT_EQ(facts.running, 1U) << value;
    EXPECT_EQ(read(vllm("vllm:kv_cache_usage_perc " + text + "\n")).facts.kv_use_ppm, kUnknown)
        << value;
  }
  EXPECT_EQ(read("vllm:num_requests_waiting 2147483647\n").facts.waiting, 2147483647U);
  EXPECT_EQ(read("vllm:num_requests_waiting{engine=\"0\"} 2e9\n"
                 "vllm:num_requests_waiting{engine=\"1\"} 2e9\n")
                .facts.waiting,
            kUnknown)
      << "nor does a sum wrap";
  EXPECT_EQ(read("vllm:num_requests_waiting{engine=\"0\"} 1\n"
                 "vllm:num_requests_waiting{engine=\"1\"} NaN\n")
                .facts.waiting,
            kUnknown)
      << "a part of a sum is no sum";
}

TEST(PageRules, ACacheALittleOverFullIsFullAndFarOverItUnknown) {
  EXPECT_EQ(read(vllm("vllm:kv_cache_usage_perc 1.02\n")).facts.kv_use_ppm, 1'000'000U);
  EXPECT_EQ(read(vllm("vllm:kv_cache_usage_perc 45\n")).facts.kv_use_ppm, kUnknown);
}

TEST(PageRules, TheNewestSetOfAdaptersIsTheOneThatCounts) {  // Field case 56
  const std::string page = vllm(
      "vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"old\","
      "waiting_lora_adapters=\"\"} 1.7e+09\n"
      "vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\" a, b ,,a\","
      "waiting_lora_adapters=\"c\"} 1.700000002e+09\n"
      "vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"\","
      "waiting_lora_adapters=\"\"} 1.700000001e+09\n");
  const endpoints::EngineFacts facts = read(page).facts;
  EXPECT_TRUE(facts.tells_adapters);
  EXPECT_EQ(facts.adapters_active, (Names{"a", "b"}));
  EXPECT_EQ(facts.adapters_waiting, (Names{"c"}));
  EXPECT_EQ(facts.adapters_max, 4U);
}

TEST(PageRules, AnEmptySetThatIsTheNewestMeansNoAdapters) {  // Field case 56
  const endpoints::EngineFacts facts =
      read(vllm("vllm:lora_requests_info{max_lora=\"2\",running_lora_adapters=\"a\","
                "waiting_lora_adapters=\"\"} 10\n"
                "vllm:lora_requests_info{max_lora=\"2\",running_lora_adapters=\"\","
                "waiting_lora_adapters=\"\"} 11\n"))
          .facts;
  EXPECT_TRUE(facts.tells_adapters);
  EXPECT_TRUE(facts.adapters_active.empty());
  EXPECT_EQ(facts.adapters_max, 2U);
}

TEST(PageRules, AThousandOldSetsOfAdaptersHideNotTheNewest) {
  std::string lines;
  for (int at = 0; at < 1000; ++at) {
    lines += "vllm:lora_requests_info{max_lora=\"2\",running_lora_adapters=\"a" +
             std::to_string(at) + "\",waiting_lora_adapters=\"\"} " +
             std::to_string(1000 + (at * 7919) % 1000) + "\n";
  }
  const endpoints::EngineFacts facts = read(vllm(lines)).facts;
  ASSERT_EQ(facts.adapters_active.size(), 1U);
  int newest = 0;
  for (int at = 0; at < 1000; ++at) newest = (at * 7919) % 1000 == 999 ? at : newest;
  EXPECT_EQ(facts.adapters_active[0], "a" + std::to_string(newest));
}

TEST(PageRules, NoFamilyOfAdaptersIsNoSignalAndNoError) {  // Field case 55
  const PageFacts page = read(vllm());
  EXPECT_FALSE(page.facts.tells_adapters);
  EXPECT_EQ(page.bad_lines, 0U);
  EXPECT_TRUE(page.refused.empty());
}

TEST(PageRules, WordsAsBlockSizesAreUnknown) {
  const endpoints::EngineFacts facts =
      read(vllm("vllm:cache_config_info{block_size=\"None\",num_gpu_blocks=\"None\"} 1.0\n")).facts;
  EXPECT_EQ(facts.block_tokens, kUnknown);
  EXPECT_EQ(facts.blocks, 0U);
}

TEST(PageRules, TextInALabelIsNoLine) {
  const PageFacts page = read(vllm(
      "vllm:vllm_config_info{dump=\"{'k': [1, 2], \\\"q\\\": \\\\, } # vllm:num_requests_waiting 99"
      "\\nvllm:num_requests_waiting 98\",engine=\"0\"} 1.0\n"));
  EXPECT_EQ(page.facts.waiting, 7U);
  EXPECT_EQ(page.bad_lines, 0U);
}

TEST(PageRules, ALabelOfAnyLengthPassesThrough) {  // Field case 53
  std::string dump;
  while (dump.size() < 400'000) dump += R"({'k': [1, 2], \"q\": \\, } )";
  for (const std::string name : {"vllm:vllm_config_info", "vllm:cache_config_info"}) {
    const std::string page = vllm(name + "{compilation_config=\"" + dump +
                                  "\",block_size=\"32\",engine=\"0\",num_gpu_blocks=\"500\"} 1.0\n"
                                  "vllm:kv_cache_usage_perc 0.5\n");
    for (const std::size_t piece : {std::size_t{0}, std::size_t{16384}, std::size_t{1000}}) {
      const PageFacts read_page = read(page, piece);
      EXPECT_EQ(read_page.facts.kv_use_ppm, 500'000U);
      EXPECT_EQ(read_page.bad_lines, 0U);
      if (name != "vllm:vllm_config_info") {
        EXPECT_EQ(read_page.facts.block_tokens, 32U);
        EXPECT_EQ(read_page.facts.blocks, 500U);
      }
    }
  }
}

TEST(PageRules, ABadLineIsCountedAndSpoilsNoOther) {
  for (const char* bad :
       {"vllm:num_requests_waiting{engine=\"0\" 9", "vllm:num_requests_waiting", "}{", "9lives 1",
        "vllm:num_requests_waiting{engine=0} 9", "vllm:num_requests_waiting abc",
        "vllm:num_requests_waiting{engine=\"0} 9", "other{a=\"b\"", "other{a=\"b\\", "other 1 x",
        "other{a=\"b\"c=\"d\"} 1", "other{:a=\"b\"} 1", "other 1.2.3", "other 0x10", "other 1e",
        "\xff\xfe\x01 1", "other{a=\"b\"}}1", "other{=\"b\"} 1"}) {
    for (const std::size_t piece : {0U, 1U, 3U}) {
      const PageFacts page =
          read(std::string(bad) + "\n" + vllm() + bad + "\nvllm:kv_cache_usage_perc 0.5\n", piece);
      EXPECT_EQ(page.bad_lines, 2U) << bad;
      EXPECT_EQ(page.samples, 3U) << bad;
      EXPECT_EQ(page.facts.waiting, 7U) << bad;
      EXPECT_EQ(page.facts.running, 4U) << bad;
      EXPECT_EQ(page.facts.kv_use_ppm, 500'000U) << bad;
    }
  }
}

TEST(PageRules, WhatIsUnusualButAllowedIsNoBadLine) {
  for (const char* line : {"other{} 1",
                           "other{a=\"b\",} 1",
                           "other { a = \"b\" , c = \"d\" }  1",
                           "other\t1",
                           "  other 1",
                           "other +1.5e-3",
                           "other .5",
                           "other 5.",
                           "other{a=\"b\"}1",
                           "other 1 1785000000000",
                           "other 1 -5",
                           "other 1.0 1785000000.250 # {t=\"a,b}c\\\"d\"} 0.6",
                           "other 1 # {t=\"x\"} 0.6 1785000000.0",
                           "other NaN",
                           "other -Inf",
                           "other 1e999",
                           "# EOF",
                           "#",
                           "",
                           "   ",
                           "other 1 ",
                           "other 1\r",
                           "other{a=\"\"} 1",
                           "other 1e+011"}) {
    for (const std::size_t piece : {0U, 1U}) {
      const PageFacts page = read(vllm(std::string(line) + "\n"), piece);
      EXPECT_EQ(page.bad_lines, 0U) << line;
      EXPECT_EQ(page.facts.waiting, 7U) << line;
    }
  }
  // The same on a line that is asked for.
  EXPECT_EQ(read("vllm:num_requests_waiting { engine = \"0\" , }\t12.0 1785000000.250 # {} 1\r\n")
                .facts.waiting,
            12U);
}

TEST(PageRules, WholePagesAreRefusedWithAReason) {
  EXPECT_EQ(read("").refused, "empty page");
  EXPECT_EQ(read(vllm() + "vllm:num_requests_waiting{engine=\"1\"} 1").refused,
            "no newline at the end");
  EXPECT_EQ(read("<html><body>Internal Server Error</body></html>\n").refused,
            "not a metrics page");
  EXPECT_EQ(read("\x1f\x8b\x08garbage\n").refused, "not a metrics page");
  EXPECT_EQ(read("# EOF\n").refused, "not a metrics page");
  EXPECT_EQ(read(vllm()).refused, "");
}

TEST(PageRules, APageOfNoKnownEngineTellsNothing) {
  const PageFacts page = read("go_goroutines 31\nprocess_start_time_seconds 1.7e9\n");
  EXPECT_EQ(page.refused, "");
  EXPECT_EQ(page.engine, "");
  EXPECT_EQ(page.facts.waiting, kUnknown);
  EXPECT_EQ(page.facts.ranks, 0U);
  EXPECT_EQ(page.facts.process_start_s, 1.7e9);
}

TEST(PageRules, ModelsOfOneEngineAreToldApart) {  // Two models on one pod: AIBrix 2331
  const endpoints::EngineFacts facts = read(
                                           "vllm:num_requests_waiting{model_name=\"a\"} 0\n"
                                           "vllm:num_requests_waiting{model_name=\"b\"} 9\n"
                                           "vllm:num_requests_running{model_name=\"a\"} 3\n"
                                           "vllm:num_requests_running{model_name=\"b\"} 5\n")
                                           .facts;
  EXPECT_EQ(facts.waiting, 9U);
  ASSERT_EQ(facts.models.size(), 2U);
  EXPECT_EQ(facts.models[0].model, "a");
  EXPECT_EQ(facts.models[0].waiting, 0U);
  EXPECT_EQ(facts.models[1].waiting, 9U);
  EXPECT_EQ(facts.models[1].running, 5U);
}

TEST(PageRules, ProgressIsTheSumOfWhatNeverGoesBack) {
  const endpoints::EngineFacts facts =
      read(vllm("process_start_time_seconds 1.73955755e+09\n"
                "vllm:prompt_tokens_total{engine=\"0\"} 100\n"
                "vllm:generation_tokens_total{engine=\"0\"} 5e9\n"))
          .facts;
  EXPECT_EQ(facts.process_start_s, 1.73955755e+09);
  EXPECT_EQ(facts.progress, 5e9 + 100);
  EXPECT_EQ(facts.progress_series, 2U);
}

TEST(PageRules, MoreSeriesThanAnybodyHasMakeASumUnknownNotWrong) {
  std::string page;
  for (int at = 0; at < 100'000; ++at)
    page += "vllm:num_requests_waiting{engine=\"" + std::to_string(at) + "\"} 1\n";
  const PageFacts facts = read(page);
  EXPECT_GT(facts.dropped_series, 0U);
  EXPECT_EQ(facts.facts.waiting, kUnknown);
}

TEST(PageRules, AReaderBeginsAnewWithEachPage) {
  PageReader reader(built_in());
  reader.begin({}, kUnknown);
  reader.feed("vllm:num_requests_waiting{engine=\"0\"} 12\nvllm:num_req");  // cut for good
  reader.begin({}, kUnknown);
  reader.feed("vllm:num_requests_running 1\n");
  const PageFacts page = reader.finish();
  EXPECT_EQ(page.facts.waiting, kUnknown);
  EXPECT_EQ(page.facts.running, 1U);
  EXPECT_EQ(page.samples, 1U);
  EXPECT_EQ(page.bad_lines, 0U);
}

TEST(PageRules, WhereAPageIsCutMakesNoDifference) {
  std::string page = vllm(
      "vllm:time_bucket{engine=\"0\",le=\"0.1\",model_name=\"m\"} 1\n"
      "vllm:time_bucket{engine=\"0\",le=\"0.25\",model_name=\"m\"} 2\n"
      "vllm:time_bucket{engine=\"0\",le=\"0.25\",model_name=\"m\\\"\"} x\n"
      "vllm:time_bucket{engine=\"0\",le=\"+Inf\",model_name=\"m\"} 3 # {a=\"b\"} 1\n\n# HELP\n"
      "vllm:lora_requests_info{max_lora=\"2\",running_lora_adapters=\"a,b\\\\\"} 11\n"
      "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"7\"} 1\n");
  const std::string whole = words(read(page));
  for (std::size_t cut = 1; cut < page.size(); ++cut) {
    PageReader reader(built_in());
    reader.feed(std::string_view(page).substr(0, cut));
    reader.feed(std::string_view(page).substr(cut));
    ASSERT_EQ(words(reader.finish()), whole) << "cut at " << cut;
  }
  for (std::size_t piece = 1; piece < 70; ++piece) EXPECT_EQ(words(read(page, piece)), whole);
}

}  // namespace
}  // namespace pickd::scrape::test
