// Reads pages in tests: whole, or in pieces.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "daemon/scrape/page_reader.hpp"

namespace pickd::scrape::test {

inline constexpr std::uint32_t kUnknown = abi::kUnknown32;

inline const MetricSpecs& built_in() {
  static const MetricSpecs specs;
  return specs;
}

// `piece` 0: in one.
inline PageFacts read(std::string_view page, std::size_t piece = 0, std::string_view engine = {},
                      std::uint32_t rank = kUnknown, const MetricSpecs& specs = built_in()) {
  PageReader reader(specs);
  reader.begin(engine, rank);
  if (piece == 0) piece = page.size() + 1;
  for (std::size_t at = 0; at < page.size(); at += piece) {
    // In a block of its own: an access beyond the piece is seen by the sanitizers.
    const std::string bytes(page.substr(at, piece));
    reader.feed(bytes);
  }
  return reader.finish();
}

// Everything that a page says as one text, to compare readings.
inline std::string words(const PageFacts& page) {
  const endpoints::EngineFacts& facts = page.facts;
  std::string text = std::string(page.refused) + "|" + std::string(page.engine);
  const auto number = [&text](auto value) { text += "|" + std::to_string(value); };
  number(page.bytes), number(page.samples), number(page.bad_lines), number(page.dropped_series);
  number(facts.waiting), number(facts.running), number(facts.kv_use_ppm);
  number(facts.kv_use_max_ppm), number(facts.ranks), number(facts.block_tokens);
  number(facts.blocks), number(facts.tells_adapters), number(facts.adapters_max);
  for (const auto* list : {&facts.adapters_active, &facts.adapters_waiting}) {
    text += "|";
    for (const std::string& name : *list) text += name + ",";
  }
  for (const endpoints::ModelLoad& model : facts.models) {
    text += "|" + model.model;
    number(model.waiting), number(model.running);
  }
  number(facts.process_start_s), number(facts.progress), number(facts.progress_series);
  return text;
}

}  // namespace pickd::scrape::test
