// A page of any number of lines allocates nothing for them: this program counts what it asks of
// operator new.
#include <cstdlib>
#include <new>

#include "tests/scrape/support.hpp"

namespace {

thread_local std::uint64_t allocations = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace pickd::scrape::test {
namespace {

TEST(PageAllocations, AreNoneForLinesOnceAReaderIsWarm) {
  std::string page;
  for (int rank = 0; rank < 8; ++rank) {
    const std::string labels = "{engine=\"" + std::to_string(rank) + "\",model_name=\"m\"} ";
    page += "vllm:num_requests_waiting" + labels + "1\nvllm:num_requests_running" + labels + "2\n";
    page +=
        "vllm:lora_requests_info{running_lora_adapters=\"an-adapter-with-a-name-of-some-length-" +
        std::to_string(rank) + "\"} " + std::to_string(rank) + "\n";
    for (int bucket = 0; bucket < 500; ++bucket)
      page += "vllm:time_bucket{le=\"" + std::to_string(bucket) + "\"} 1\n";
    page += "bad line\n";
  }
  PageReader reader(built_in());
  for (int turn = 0; turn < 3; ++turn) {
    reader.begin();
    const std::uint64_t before = allocations;
    for (std::size_t at = 0; at < page.size(); at += 1000)
      reader.feed(std::string_view(page).substr(at, 1000));
    const std::uint64_t made = allocations - before;
    EXPECT_EQ(reader.finish().samples, 8U * 503U);
    EXPECT_TRUE(turn == 0 || made == 0) << made;
  }
}

}  // namespace
}  // namespace pickd::scrape::test
