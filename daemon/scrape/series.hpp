// The wanted series of one page, and the facts that they make. Knows no text format: a series comes
// with its labels read.
//
// Bounded: so many series, so many candidates for the newest adapters, whatever a page holds.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/endpoints/engine_facts.hpp"
#include "daemon/scrape/metric_specs.hpp"

namespace pickd::scrape {

// One sample of a metric that somebody asks for.
struct Sample {
  std::uint16_t name = MetricSpecs::kNone;  // place of its name in the specs
  std::uint64_t labels = 0;                 // hash of the label set, in whatever order it came
  // The same without the labels that tell parts of one rank apart, which all report its value.
  std::uint64_t group = 0;
  double value = 0;

  // The values of the labels that the specs know, by their place there; `present` tells which came.
  struct Label {
    std::string_view text;
    bool present = false;
  };
  const Label* known = nullptr;
};

class SeriesStore {
 public:
  explicit SeriesStore(const MetricSpecs& specs);

  void begin(std::uint16_t engine, std::uint32_t rank);
  // A label set that came before is replaced: the last line of a page counts.
  void add(const Sample& sample);
  // Makes the facts, names the engine. Returns the place of the engine, kAnyEngine for none.
  std::uint16_t make_facts(endpoints::EngineFacts& facts);
  std::uint64_t dropped() const { return dropped_; }

 private:
  static constexpr std::size_t kSeriesMax = 512;
  static constexpr std::size_t kModelsMax = 16;
  static constexpr std::size_t kAdapterSetsMax = 8;
  static constexpr std::uint16_t kNoModel = 0xFFFF;

  struct Series {
    std::uint64_t labels;
    std::uint64_t group;
    std::uint16_t entry;
    std::uint16_t model;  // place in models_
    std::uint32_t rank;   // kUnknown32: no label says
    double value;         // of cache information: tokens of a block
    double blocks;        // of cache information
  };
  struct AdapterSet {
    std::uint64_t labels = 0;
    std::uint16_t entry = 0;
    std::uint32_t rank = 0;
    double stamp = 0;
    std::string max;
    std::string active;
    std::string waiting;
  };
  // What the series of one field come to.
  struct Total {
    double sum = 0;
    double largest = 0;
    std::uint32_t groups = 0;
    bool sound = true;
  };

  bool matches(const MetricSpecs::Entry& entry, const Sample& sample) const;
  void add_series(std::uint16_t at, const Sample& sample);
  void add_adapters(std::uint16_t at, const Sample& sample);
  std::uint16_t model_of(const Sample& sample);
  std::uint16_t detect() const;
  bool is_asked(std::uint32_t rank) const;
  // Takes those of the preferred spec of this field that the page has.
  Total total(std::uint16_t engine, Field field, std::uint16_t model = kNoModel,
              double Series::*value = &Series::value);
  void make_ranks(std::uint16_t engine, endpoints::EngineFacts& facts);
  void make_models(std::uint16_t engine, endpoints::EngineFacts& facts);
  void make_adapters(std::uint16_t engine, endpoints::EngineFacts& facts) const;

  const MetricSpecs* specs_;
  std::uint16_t engine_asked_ = MetricSpecs::kAnyEngine;
  std::uint32_t rank_asked_ = abi::kUnknown32;
  std::uint64_t dropped_ = 0;
  std::vector<Series> series_;
  std::vector<std::size_t> order_;  // scratch of total()
  std::array<AdapterSet, kAdapterSetsMax> adapters_;
  std::size_t adapter_sets_ = 0;
  std::array<std::string, kModelsMax> models_;
  std::size_t model_count_ = 0;
  std::vector<std::uint32_t> ranks_;  // that load was told of
};

}  // namespace pickd::scrape
