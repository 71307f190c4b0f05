// The page of metrics, in Prometheus' text format or in OpenMetrics, from Facts and the tables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "daemon/admin/facts.hpp"

namespace pickd::admin {

enum class MetricsFormat : std::uint8_t { kPrometheus, kOpenMetrics };

// Which of the two a scraper would rather have, by its Accept field.
MetricsFormat format_for(std::string_view accept);
const char* content_type(MetricsFormat format);

// `endpoints_max`: as many are told apart.
std::string metrics_page(const Facts& facts, MetricsFormat format, std::size_t endpoints_max);

// Pools told apart; the endpoints of others count as of the pool `other`.
inline constexpr std::size_t kPoolsMax = 64;
inline constexpr char kOther[] = "other";

}  // namespace pickd::admin
