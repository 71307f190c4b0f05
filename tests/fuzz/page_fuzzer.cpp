// Arbitrary bytes as a metrics page. The first byte says how the page is cut: whole pieces go the
// fast way over a line, single bytes the careful one, and both must say the same.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/scrape/support.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pickd::scrape::test;
  if (size == 0) return 0;
  const std::size_t piece = data[0] + 1U;
  const std::string_view page(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = read(page);
  if (words(whole) != words(read(page, 1)) || words(whole) != words(read(page, piece)))
    std::abort();
  const auto& facts = whole.facts;
  const auto is_count = [](std::uint32_t value) { return value == kUnknown || value < 1U << 31; };
  if (!is_count(facts.waiting) || !is_count(facts.running)) std::abort();
  if (facts.kv_use_ppm != kUnknown && facts.kv_use_ppm > 1'000'000) std::abort();
  if (facts.kv_use_max_ppm != kUnknown && facts.kv_use_max_ppm > 1'000'000) std::abort();
  if (facts.adapters_active.size() > pickd::abi::kEndpointAdaptersMax) std::abort();
  if (facts.progress < 0 || std::isinf(facts.progress)) std::abort();
  return 0;
}
