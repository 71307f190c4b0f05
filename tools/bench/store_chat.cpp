#include "tools/bench/store_chat.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "daemon/base/random.hpp"

namespace pickd::bench {
namespace {

constexpr std::uint32_t kSystemPrompts = 24;
constexpr std::uint32_t kChatsAtOnce = 400;
constexpr double kFollowUpShare = 0.6;  // of requests that continue a chat
constexpr double kRequestsPerSecond = 3.4;
constexpr double kTurnBlocksMean = 14;  // a turn brings a question, documents and the last answer
constexpr std::uint32_t kTurnBlocksMax = 200;
constexpr std::uint32_t kChatBlocksMax = 250;  // 128,000 tokens: a chat ends there

double uniform(base::Random& random) {
  return (static_cast<double>(random.below(1U << 30)) + 0.5) / (1U << 30);
}
std::uint32_t exponential(base::Random& random, double mean, std::uint32_t most) {
  return std::min(most, 1 + static_cast<std::uint32_t>(-mean * std::log(uniform(random))));
}

}  // namespace

Trace make_chat_trace(std::uint64_t seed, std::uint32_t requests) {
  base::Random random(seed);
  std::uint64_t next_id = 1;
  const auto append = [&next_id](std::vector<std::uint64_t>& to, std::uint32_t blocks) {
    for (std::uint32_t i = 0; i < blocks; ++i) to.push_back(next_id++);
  };
  std::vector<std::vector<std::uint64_t>> system_prompts(kSystemPrompts);
  for (auto& prompt : system_prompts) append(prompt, 1 + random.below(6));

  Trace trace;
  std::vector<std::vector<std::uint64_t>> chats;
  double at_s = 0;
  for (std::uint32_t i = 0; i < requests; ++i) {
    at_s -= std::log(uniform(random)) / kRequestsPerSecond;
    std::size_t chat = 0;
    if (!chats.empty() && uniform(random) < kFollowUpShare) {
      chat = random.below(static_cast<std::uint32_t>(chats.size()));
    } else {
      // The lower the number of a shared prompt, the more chats begin with it.
      const double place = uniform(random) * uniform(random) * kSystemPrompts;
      if (chats.size() < kChatsAtOnce) chats.emplace_back();
      chat = chats.size() < kChatsAtOnce ? chats.size() - 1
                                         : random.below(static_cast<std::uint32_t>(chats.size()));
      chats[chat] = system_prompts[static_cast<std::size_t>(place)];
    }
    append(chats[chat], exponential(random, kTurnBlocksMean, kTurnBlocksMax));
    TraceRequest request;
    request.arrival_s = at_s;
    request.block_ids = chats[chat];
    request.input_tokens = static_cast<std::uint32_t>(request.block_ids.size()) * kTraceBlockTokens;
    request.output_tokens = 100 + random.below(500);
    trace.input_tokens += request.input_tokens;
    trace.requests.push_back(std::move(request));
    if (chats[chat].size() > kChatBlocksMax) {
      chats[chat].swap(chats.back());
      chats.pop_back();
    }
  }
  return trace;
}

}  // namespace pickd::bench
