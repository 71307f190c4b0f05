// A page of any number of lines allocates nothing for them: this program counts what it asks of
// operator new.
#include "tests/counted_allocations.hpp"
#include "tests/scrape/support.hpp"

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
    const std::uint64_t before = tests::allocations;
    for (std::size_t at = 0; at < page.size(); at += 1000)
      reader.feed(std::string_view(page).substr(at, 1000));
    const std::uint64_t made = tests::allocations - before;
    EXPECT_EQ(reader.finish().samples, 8U * 503U);
    EXPECT_TRUE(turn == 0 || made == 0) << made;
  }
}

}  // namespace
}  // namespace pickd::scrape::test
