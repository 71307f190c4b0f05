// The reference pages that lie beside the repository, with their answers. Skipped where they do not
// lie there: page_rules_test.cpp proves the same rules by pages of its own.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/scrape/support.hpp"

namespace pickd::scrape::test {
namespace {

using Json = nlohmann::json;

std::string reference_pages() {
  const char* shared = std::getenv("REFERENCE_DIR");
  for (const std::string& root : {std::string(shared == nullptr ? "" : shared),
                                  std::string(PICKD_SOURCE_DIR "/../shared/reference")}) {
    const std::string pages = root + "/metrics_pages";
    if (std::filesystem::exists(pages + "/expected.json")) return pages;
  }
  return {};
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Json count_of(std::uint32_t value) { return value == kUnknown ? Json() : Json(value); }
Json share_of(std::uint32_t ppm) { return ppm == kUnknown ? Json() : Json(ppm * 1e-6); }

// Our facts under the names of the answers.
Json answers(const PageFacts& page) {
  const endpoints::EngineFacts& facts = page.facts;
  Json made;
  made["ok"] = page.refused.empty();
  made["engine"] = page.engine;
  made["waiting"] = count_of(facts.waiting);
  made["running"] = count_of(facts.running);
  made["kv"] = share_of(facts.kv_use_ppm);
  made["kv_max"] = share_of(facts.kv_use_max_ppm);
  made["ranks"] = facts.ranks;
  made["lora_active"] = facts.tells_adapters ? Json(facts.adapters_active) : Json();
  made["lora_waiting"] = facts.tells_adapters ? Json(facts.adapters_waiting) : Json();
  made["max_lora"] = facts.tells_adapters ? Json(facts.adapters_max) : Json();
  made["block_size"] = count_of(facts.block_tokens);
  made["num_blocks"] = facts.blocks == 0 ? Json() : Json(facts.blocks);
  made["bad_lines"] = page.bad_lines;
  return made;
}

TEST(ReferencePages, EveryPageGivesTheExpectedFacts) {
  const std::string pages = reference_pages();
  if (pages.empty()) GTEST_SKIP() << "no reference pages beside the source, nor in REFERENCE_DIR";
  const Json expected = Json::parse(contents(pages + "/expected.json"));
  ASSERT_GE(expected.size(), 18U);
  for (const auto& [name, fields] : expected.items()) {
    const std::string page = contents(pages + "/" + name);
    for (const std::size_t piece : {std::size_t{0}, std::size_t{4096}, std::size_t{7}}) {
      const Json got = answers(read(page, piece));
      for (const auto& [field, value] : fields.items()) {
        if (value.is_number_float()) {
          ASSERT_TRUE(got[field].is_number()) << name << ", " << field << ": " << got[field];
          EXPECT_NEAR(got[field].get<double>(), value.get<double>(), 1e-6) << name << ", " << field;
        } else {
          EXPECT_EQ(got[field], value) << name << ", " << field << ", pieces of " << piece;
        }
      }
    }
  }
}

TEST(ReferencePages, AnyCutOfAnyPageGivesTheSame) {
  const std::string pages = reference_pages();
  if (pages.empty()) GTEST_SKIP() << "no reference pages beside the source, nor in REFERENCE_DIR";
  for (const auto& entry : std::filesystem::directory_iterator(pages)) {
    const std::string page = contents(entry.path());
    if (page.size() > 100'000) continue;
    const std::string whole = words(read(page));
    for (const std::size_t piece : {1U, 2U, 3U, 5U, 17U, 64U, 1000U}) {
      EXPECT_EQ(words(read(page, piece)), whole) << entry.path() << " in pieces of " << piece;
    }
  }
}

}  // namespace
}  // namespace pickd::scrape::test
