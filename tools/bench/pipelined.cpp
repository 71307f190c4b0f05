#include "tools/bench/pipelined.hpp"

#include "abi/fence.hpp"
#include "daemon/base/clock.hpp"
#include "tools/bench/prompt_text.hpp"

namespace pickd::bench {

namespace {

DaemonOptions daemon_options(const PipelinedOptions& options) {
  DaemonOptions made;
  made.profile = options.policy;
  made.endpoints = options.endpoints;
  made.state_mib = 64;
  made.busy_poll = true;
  return made;
}

}  // namespace

Pipelined::Pipelined(const PipelinedOptions& options)
    : options_(options),
      daemon_(daemon_options(options)),
      client_(open_client(daemon_.socket(), 0, 0)),
      result_(pickd_result_new()) {
  check(pickd_queue_open(client_.get(), options.outstanding, &queue_), "queue");
  for (std::uint32_t at = 0; at < options.prompts; ++at)
    prompts_.push_back(make_prompt_text(options.prompt_tokens, at));
  for (std::uint32_t at = 0; at < options.prompts; ++at) {
    submit();
    while (!take_answer()) abi::spin_pause();
  }
  daemon_.rest();
}

Pipelined::~Pipelined() {
  daemon_.go_on();
  pickd_queue_close(queue_);
}

void Pipelined::submit() {
  const std::string& text = prompts_[next_prompt_];
  if (++next_prompt_ == prompts_.size()) next_prompt_ = 0;
  const pickd_slice slice{text.data(), text.size()};
  pickd_request request = PICKD_REQUEST_INIT;
  request.text = &slice;
  request.text_count = 1;
  check(pickd_queue_submit(queue_, &request, 0, nullptr), "submit");
}

// Takes an answer and reports its request done. False when there is none yet.
bool Pipelined::take_answer() {
  const int taken = pickd_queue_poll(queue_, result_.get(), nullptr);
  if (taken == 0) return false;
  check(taken < 0 ? taken : pickd_result_status(result_.get()), "pick");
  pickd_report_info report = PICKD_REPORT_INIT;
  report.ticket = pickd_result_ticket(result_.get());
  report.kind = PICKD_REPORT_DONE;
  check(pickd_queue_report(queue_, &report), "report");
  return true;
}

void Pipelined::run() {
  daemon_.go_on();
  const std::uint64_t worker_from_ns = daemon_.worker_cpu_ns();
  const std::uint64_t client_from_ns = base::clock_ns(CLOCK_THREAD_CPUTIME_ID);
  const std::uint64_t from_ns = base::monotonic_ns();
  const auto until_ns = from_ns + static_cast<std::uint64_t>(options_.slice_s * 1e9);
  std::uint64_t answered = 0;
  std::uint64_t now_ns = from_ns;
  for (std::uint32_t at = 0; at < options_.outstanding; ++at) submit();
  while (now_ns < until_ns) {
    // What has come is taken before its places are filled: both sides then work on batches.
    std::uint32_t free = 0;
    while (free < options_.outstanding && take_answer()) ++free;
    for (std::uint32_t at = 0; at < free; ++at) submit();
    answered += free;
    if (free == 0) abi::spin_pause();
    now_ns = base::monotonic_ns();
  }
  picks_s_.add(static_cast<double>(answered) * 1e9 / static_cast<double>(now_ns - from_ns));
  measured_ns_ += now_ns - from_ns;
  client_cpu_ns_ += base::clock_ns(CLOCK_THREAD_CPUTIME_ID) - client_from_ns;
  worker_cpu_ns_ += daemon_.worker_cpu_ns() - worker_from_ns;
  for (std::uint32_t at = 0; at < options_.outstanding; ++at) {
    while (!take_answer()) abi::spin_pause();
  }
  daemon_.rest();
}

}  // namespace pickd::bench
