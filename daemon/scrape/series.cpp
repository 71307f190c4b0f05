#include "daemon/scrape/series.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "daemon/scrape/number.hpp"

namespace pickd::scrape {

namespace {

constexpr double kCountMax = 2147483648.0;  // 2^31: no engine has so many requests, a wrap has
// A cache that is used a little over its size is full; far over it, the value is no share.
constexpr double kShareMax = 1.1;

const Sample::Label& label_of(const Sample& sample, KnownLabel label) {
  return sample.known[static_cast<std::size_t>(label)];
}

std::uint32_t read_rank(const Sample& sample) {
  for (const KnownLabel label : {KnownLabel::kDpRank, KnownLabel::kEngineRank}) {
    const Sample::Label& text = label_of(sample, label);
    std::uint32_t rank = 0;
    if (!text.present) continue;
    const auto [end, error] =
        std::from_chars(text.text.data(), text.text.data() + text.text.size(), rank);
    if (error == std::errc{} && end == text.text.data() + text.text.size()) return rank;
  }
  return abi::kUnknown32;
}

// "None", "" and the like are no number: unknown, not 0.
double read_label_number(const Sample::Label& label) {
  double value = std::numeric_limits<double>::quiet_NaN();
  if (label.present) parse_number(label.text, &value);
  return value;
}

bool is_count(double value) { return value >= 0 && value < kCountMax; }  // false for NaN

// Names between commas, trimmed, empties and repeats dropped.
std::vector<std::string> split_names(std::string_view list) {
  std::vector<std::string> names;
  while (true) {
    const std::size_t comma = list.find(',');
    std::string_view name = list.substr(0, comma);
    while (!name.empty() && is_blank(name.front())) name.remove_prefix(1);
    while (!name.empty() && is_blank(name.back())) name.remove_suffix(1);
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end() &&
        name.size() <= abi::kAdapterBytesMax && names.size() < abi::kEndpointAdaptersMax) {
      names.emplace_back(name);
    }
    if (comma == std::string_view::npos) return names;
    list.remove_prefix(comma + 1);
  }
}

std::uint32_t to_count(double sum, bool sound) {
  return sound && is_count(sum) ? static_cast<std::uint32_t>(std::lround(sum)) : abi::kUnknown32;
}

std::uint32_t to_ppm(double share) {
  return static_cast<std::uint32_t>(std::lround(std::min(share, 1.0) * 1e6));
}

}  // namespace

SeriesStore::SeriesStore(const MetricSpecs& specs) : specs_(&specs) {
  series_.reserve(kSeriesMax);
  order_.reserve(kSeriesMax);
  ranks_.reserve(kSeriesMax);
}

void SeriesStore::begin(std::uint16_t engine, std::uint32_t rank) {
  engine_asked_ = engine;
  rank_asked_ = rank;
  dropped_ = 0;
  series_.clear();
  ranks_.clear();
  adapter_sets_ = 0;
  model_count_ = 0;
}

bool SeriesStore::matches(const MetricSpecs::Entry& entry, const Sample& sample) const {
  const std::vector<std::string>& labels = specs_->labels();
  return std::all_of(entry.spec.labels.begin(), entry.spec.labels.end(), [&](const auto& wanted) {
    const auto at = std::find(labels.begin(), labels.end(), wanted.first) - labels.begin();
    return sample.known[at].present && sample.known[at].text == wanted.second;
  });
}

void SeriesStore::add(const Sample& sample) {
  for (const std::uint16_t at : specs_->entries_of(sample.name)) {
    const MetricSpecs::Entry& entry = specs_->entries()[at];
    if (!matches(entry, sample)) continue;
    if (entry.field == Field::kAdapters) {
      add_adapters(at, sample);
    } else {
      add_series(at, sample);
    }
  }
}

std::uint16_t SeriesStore::model_of(const Sample& sample) {
  for (const KnownLabel label : {KnownLabel::kModelName, KnownLabel::kModel}) {
    const Sample::Label& text = label_of(sample, label);
    if (!text.present || text.text.size() > abi::kModelBytesMax) continue;
    const auto end = models_.begin() + static_cast<std::ptrdiff_t>(model_count_);
    const auto known = std::find(models_.begin(), end, text.text);
    if (known != end) return static_cast<std::uint16_t>(known - models_.begin());
    if (model_count_ == kModelsMax) return kNoModel;
    models_[model_count_].assign(text.text);
    return static_cast<std::uint16_t>(model_count_++);
  }
  return kNoModel;
}

void SeriesStore::add_series(std::uint16_t at, const Sample& sample) {
  const MetricSpecs::Entry& entry = specs_->entries()[at];
  const auto known = std::find_if(series_.begin(), series_.end(), [&](const Series& series) {
    return series.labels == sample.labels && series.entry == at;
  });
  if (known == series_.end() && series_.size() == kSeriesMax) {
    ++dropped_;
    return;
  }
  Series series{sample.labels,
                sample.group,
                at,
                kNoModel,
                read_rank(sample),
                sample.value,
                std::numeric_limits<double>::quiet_NaN()};
  if (entry.field == Field::kWaiting || entry.field == Field::kRunning)
    series.model = model_of(sample);
  if (entry.field == Field::kCacheInfo) {
    const MetricSpecs::Engine& engine = specs_->engines()[entry.engine];
    const std::vector<std::string>& labels = specs_->labels();
    const auto number = [&](const std::string& label) {
      const auto place = std::find(labels.begin(), labels.end(), label);
      return place == labels.end() ? std::numeric_limits<double>::quiet_NaN()
                                   : read_label_number(sample.known[place - labels.begin()]);
    };
    series.value = number(engine.block_tokens_label);
    series.blocks = number(engine.blocks_label);
  }
  if (known == series_.end()) {
    series_.push_back(series);
  } else {
    *known = series;
  }
}

void SeriesStore::add_adapters(std::uint16_t at, const Sample& sample) {
  // The value is a wall-clock stamp: one that is none cannot be the newest.
  if (!std::isfinite(sample.value) || sample.value < 0) return;
  const auto begin = adapters_.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(adapter_sets_);
  auto place = std::find_if(begin, end, [&](const AdapterSet& set) {
    return set.labels == sample.labels && set.entry == at;
  });
  if (place != end) {
    place->stamp = sample.value;
    return;
  }
  if (adapter_sets_ < kAdapterSetsMax) {
    ++adapter_sets_;
  } else {
    // An engine keeps a series for each set that it ever had: only the newest matter.
    place = std::min_element(
        begin, end, [](const AdapterSet& a, const AdapterSet& b) { return a.stamp < b.stamp; });
    if (place->stamp >= sample.value) return;
  }
  place->labels = sample.labels;
  place->entry = at;
  place->rank = read_rank(sample);
  place->stamp = sample.value;
  place->max.assign(label_of(sample, KnownLabel::kMaxLora).text);
  place->active.assign(label_of(sample, KnownLabel::kRunningLora).text);
  place->waiting.assign(label_of(sample, KnownLabel::kWaitingLora).text);
}

// The engine of which the page has most of waiting, running and KV use.
std::uint16_t SeriesStore::detect() const {
  std::array<std::uint8_t, MetricSpecs::kEnginesMax> seen{};
  for (const Series& series : series_) {
    const MetricSpecs::Entry& entry = specs_->entries()[series.entry];
    if (entry.engine == MetricSpecs::kAnyEngine || entry.field > Field::kKvUse) continue;
    seen[entry.engine] |= static_cast<std::uint8_t>(1U << static_cast<unsigned>(entry.field));
  }
  std::uint16_t best = MetricSpecs::kAnyEngine;
  int most = 0;
  for (std::size_t engine = 0; engine < specs_->engines().size(); ++engine) {
    const int fields = std::popcount(seen[engine]);
    if (fields <= most) continue;
    most = fields;
    best = static_cast<std::uint16_t>(engine);
  }
  return best;
}

bool SeriesStore::is_asked(std::uint32_t rank) const {
  // A page of one rank alone is that rank's, whatever it calls it: each rank has a port of its own
  // there.
  return rank_asked_ == abi::kUnknown32 || rank == abi::kUnknown32 || rank == rank_asked_ ||
         ranks_.size() <= 1;
}

SeriesStore::Total SeriesStore::total(std::uint16_t engine, Field field, std::uint16_t model,
                                      double Series::*value) {
  order_.clear();
  std::uint8_t order = 0xFF;
  const auto entry_of = [this](const Series& series) -> const MetricSpecs::Entry& {
    return specs_->entries()[series.entry];
  };
  const auto is_of = [&](const Series& series) {
    const MetricSpecs::Entry& entry = entry_of(series);
    return entry.engine == engine && entry.field == field;
  };
  for (const Series& series : series_) {
    if (is_of(series)) order = std::min(order, entry_of(series).order);
  }
  for (std::size_t at = 0; at < series_.size(); ++at) {
    const Series& series = series_[at];
    if (!is_of(series) || entry_of(series).order != order || !is_asked(series.rank)) continue;
    if (model == kNoModel || series.model == model) order_.push_back(at);
  }
  // Parts of one rank stand beside each other then, and count once, by the largest.
  std::sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {
    return std::pair(series_[a].entry, series_[a].group) <
           std::pair(series_[b].entry, series_[b].group);
  });
  Total total;
  for (std::size_t at = 0; at < order_.size();) {
    const Series& first = series_[order_[at]];
    double largest = first.*value;
    for (; at < order_.size(); ++at) {
      const Series& series = series_[order_[at]];
      if (series.entry != first.entry || series.group != first.group) break;
      total.sound &=
          std::isfinite(series.*value) && series.*value >= 0 &&
          (field == Field::kProgress || field == Field::kProcessStart || series.*value < kCountMax);
      largest = std::max(largest, series.*value);
    }
    total.sum += largest;
    total.largest = std::max(total.largest, largest);
    ++total.groups;
  }
  total.sound &= total.groups != 0 && dropped_ == 0;
  return total;
}

void SeriesStore::make_ranks(std::uint16_t engine, endpoints::EngineFacts& facts) {
  bool any = false;
  for (const Series& series : series_) {
    const MetricSpecs::Entry& entry = specs_->entries()[series.entry];
    if (entry.engine != engine || entry.field > Field::kKvUse) continue;
    any = true;
    if (series.rank != abi::kUnknown32) ranks_.push_back(series.rank);
  }
  std::sort(ranks_.begin(), ranks_.end());
  ranks_.erase(std::unique(ranks_.begin(), ranks_.end()), ranks_.end());
  facts.ranks = ranks_.empty() ? (any ? 1 : 0) : static_cast<std::uint32_t>(ranks_.size());
}

void SeriesStore::make_models(std::uint16_t engine, endpoints::EngineFacts& facts) {
  facts.models.clear();
  for (std::size_t at = 0; at < model_count_; ++at) {
    const auto model = static_cast<std::uint16_t>(at);
    const Total waiting = total(engine, Field::kWaiting, model);
    const Total running = total(engine, Field::kRunning, model);
    if (waiting.groups == 0 && running.groups == 0) continue;
    facts.models.push_back({models_[model], to_count(waiting.sum, waiting.sound),
                            to_count(running.sum, running.sound)});
  }
  if (facts.models.size() < 2) facts.models.clear();
}

void SeriesStore::make_adapters(std::uint16_t engine, endpoints::EngineFacts& facts) const {
  const AdapterSet* newest = nullptr;
  for (std::size_t at = 0; at < adapter_sets_; ++at) {
    const AdapterSet& set = adapters_[at];
    if (specs_->entries()[set.entry].engine != engine || !is_asked(set.rank)) continue;
    if (newest == nullptr || set.stamp > newest->stamp) newest = &set;
  }
  facts.tells_adapters = newest != nullptr;
  facts.adapters_active.clear();
  facts.adapters_waiting.clear();
  facts.adapters_max = 0;
  if (newest == nullptr) return;
  facts.adapters_active = split_names(newest->active);
  facts.adapters_waiting = split_names(newest->waiting);
  double most = 0;
  if (parse_number(newest->max, &most) && is_count(most))
    facts.adapters_max = static_cast<std::uint32_t>(most);
}

std::uint16_t SeriesStore::make_facts(endpoints::EngineFacts& facts) {
  facts = {};
  const std::uint16_t engine = engine_asked_ != MetricSpecs::kAnyEngine ? engine_asked_ : detect();
  const Total start = total(MetricSpecs::kAnyEngine, Field::kProcessStart);
  if (start.sound) facts.process_start_s = start.largest;
  if (engine == MetricSpecs::kAnyEngine) return engine;
  make_ranks(engine, facts);
  const Total waiting = total(engine, Field::kWaiting);
  const Total running = total(engine, Field::kRunning);
  facts.waiting = to_count(waiting.sum, waiting.sound);
  facts.running = to_count(running.sum, running.sound);
  const Total kv = total(engine, Field::kKvUse);
  if (kv.sound && kv.largest <= kShareMax) {
    facts.kv_use_ppm = to_ppm(kv.sum / kv.groups);
    facts.kv_use_max_ppm = to_ppm(kv.largest);
  }
  Total block = total(engine, Field::kCacheInfo);
  Total blocks = total(engine, Field::kCacheInfo, kNoModel, &Series::blocks);
  if (block.groups == 0) block = total(engine, Field::kBlockTokens);
  if (blocks.groups == 0) blocks = total(engine, Field::kBlocks);
  if (block.sound && block.largest >= 1) facts.block_tokens = to_count(block.largest, true);
  if (blocks.sound) facts.blocks = static_cast<std::uint64_t>(std::llround(blocks.sum));
  const Total progress = total(engine, Field::kProgress);
  if (progress.sound) {
    facts.progress = progress.sum;
    facts.progress_series = progress.groups;
  }
  make_models(engine, facts);
  make_adapters(engine, facts);
  return engine;
}

}  // namespace pickd::scrape
