#include "daemon/control/recording.hpp"

#include "abi/recording.hpp"

namespace pickd::control {

namespace {

constexpr std::size_t kWords = std::size_t{1} << 19;  // 4 MiB a worker

}  // namespace

void Recording::start(std::uint64_t session) {
  session_ = session;
  const std::uint32_t stride = abi::kRecordingStrideTokens / room_.segment().header().block_tokens;
  while (recorders_.size() < room_.worker_count())
    recorders_.push_back(std::make_unique<workers::Recorder>(kWords, stride));
  for (const auto& recorder : recorders_) recorder->forget();
  lost_before_ = 0;
  lost_before_ = lost();
  for (std::uint32_t at = 0; at < room_.worker_count(); ++at)
    room_.worker(at).record(recorders_[at].get());
}

std::size_t Recording::take(std::span<std::uint64_t> to) {
  std::size_t count = 0;
  for (const auto& recorder : recorders_) count += recorder->take(to.subspan(count));
  return count;
}

std::uint64_t Recording::lost() const {
  std::uint64_t lost = 0;
  for (const auto& recorder : recorders_) lost += recorder->lost();
  return lost - lost_before_;
}

void Recording::stop() {
  session_ = 0;
  for (std::uint32_t at = 0; at < room_.worker_count(); ++at) room_.worker(at).record(nullptr);
}

}  // namespace pickd::control
