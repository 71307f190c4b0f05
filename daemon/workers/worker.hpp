// A worker: the thread that answers the channels given to it.
//
// It polls its channels while there is work, spins for a short time after, then sleeps until a bell
// rings. The control thread hands channels over and takes them back through a mailbox; the request
// path itself takes no lock, allocates nothing and calls the kernel only to sleep or to wake a
// client.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "abi/spin_budget.hpp"
#include "daemon/base/fd.hpp"
#include "daemon/base/result.hpp"
#include "daemon/endpoints/topology_store.hpp"
#include "daemon/pick/pick_core.hpp"
#include "daemon/pick/trace_ring.hpp"
#include "daemon/state/counters.hpp"
#include "daemon/state/tick_clock.hpp"
#include "daemon/workers/answer.hpp"
#include "daemon/workers/channel.hpp"
#include "daemon/workers/chores.hpp"
#include "daemon/workers/pick_figures.hpp"
#include "daemon/workers/rate_bucket.hpp"
#include "daemon/workers/recorder.hpp"
#include "daemon/workers/report_handler.hpp"
#include "daemon/workers/submission.hpp"

namespace pickd::workers {

struct WorkerOptions {
  std::uint32_t index = 0;
  // How long to poll at most after the last work before sleeping; shorter while that fails.
  std::uint64_t spin_ns = 0;
  bool busy_poll = false;  // never sleep
  int cpu = -1;            // run there only; -1: anywhere
};

// What a worker shares with the rest of the daemon. All outlive it.
struct WorkerParts {
  pick::PickCore* core;
  endpoints::TopologyStore* topologies;
  endpoints::Reservations* reservations;
  abi::EndpointRecord* records;
  abi::Word* counters_row;
  abi::WorkerWord* word;  // whether it sleeps, for the clients
  state::TickClock clock;
  PickLimits limits;
  std::uint32_t inflight_per_uid_max = 0;  // 0: no limit
  std::uint64_t traces_per_s = 0;          // picks written down; 0: none
  std::size_t trace_bytes = 0;             // kept of them
  Chores* ends = nullptr;                  // where channels end; none: on the worker's thread
};

class Worker {
 public:
  // A channel left this worker: `broken` when its client broke the protocol. Called after the
  // channel's memory is gone, on the thread of WorkerParts::ends or the worker's.
  using Gone = std::function<void(std::uint32_t channel, bool broken)>;

  static base::Result<std::unique_ptr<Worker>> create(const WorkerOptions& options,
                                                      const WorkerParts& parts, Gone gone);
  ~Worker();  // stops and joins

  void start();
  // One round on the caller's thread: mail, then a turn of every channel. False: there was nothing
  // to serve. What the thread of start() does again and again; without start(), for tests.
  bool turn();
  // Any thread: the picks that were written down.
  const pick::TraceRing& traces() const { return traces_; }
  // Any thread: from here on what it does goes to `recorder`, which outlives it; nullptr: nowhere.
  void record(Recorder* recorder) { recorder_.store(recorder, std::memory_order_release); }
  // Any thread: what its picks were like.
  const PickFigures& figures() const { return figures_; }
  // Control thread.
  void add(std::unique_ptr<Channel> channel);
  void remove(std::uint32_t channel);  // `gone` follows
  // Asks the worker's thread whether it goes on; it has answered this asker as often as answered()
  // says.
  enum class Asker : std::uint8_t { kWatchdog, kHealth };
  void ask(Asker asker);
  std::uint64_t answered(Asker asker) const {
    return answered_[static_cast<std::size_t>(asker)].load(std::memory_order_acquire);
  }

 private:
  Worker(const WorkerOptions& options, const WorkerParts& parts, Gone gone);
  void run();
  bool spin_for_work(abi::SpinBudget& spin);
  bool serve_all();
  bool serve(Channel& channel, const endpoints::Topology*& topology);
  bool serve_row(Channel& channel, std::span<std::byte> copy, const endpoints::Topology*& topology);
  void serve_last(Channel& channel);
  void handle(Channel& channel, std::span<const std::byte> record,
              const endpoints::Topology& topology);
  bool within_limits(Channel& channel, const pick::PickRequest& request);
  void refuse(Channel& channel, std::span<const std::byte> record, int status);
  void handle_pick(Channel& channel, std::span<const std::byte> record,
                   const endpoints::Topology& topology);
  void handle_report(Channel& channel, std::span<const std::byte> record,
                     const endpoints::Topology& topology);
  void handle_cancel(Channel& channel, std::span<const std::byte> record);
  void fetch_ahead(const Channel& channel) const;
  void forget_beyond_share(const Channel& channel, pick::PickResult& result);
  bool answer(Channel& channel, std::span<const std::byte> record);
  void drop_broken();
  void let_go(std::vector<std::unique_ptr<Channel>>::iterator channel, bool broken);
  void end(std::unique_ptr<Channel> channel, bool broken);
  void take_mail();
  void post(std::function<void()> mail);
  void sleep();
  bool work_waits(bool sleeping) const;

  WorkerOptions options_;
  WorkerParts parts_;
  Gone gone_;
  state::Counters counters_;
  pick::PickScratch scratch_;
  pick::TraceRing traces_;
  pick::PickTrace trace_;
  std::atomic<Recorder*> recorder_{
      nullptr};  // stored by record(), acquired by each pick and report
  RateBucket traces_left_;
  ReportHandler reports_;
  PickFigures figures_;
  DecodeScratch decode_;
  std::vector<std::uint64_t> copy_;  // the record being served, aligned for its keys
  std::array<std::byte, kAnswerBytesMax> answer_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<std::uint32_t> broken_;
  bool first_answer_ = false;    // of the row that is being served
  bool times_pick_ = false;      // the next pick is the row's first: it is timed
  bool last_turn_ = false;       // the channel being served closes: nobody reads its answers
  std::uint64_t coarse_ns_ = 0;  // read once a turn of a channel, for the rates

  base::Fd epoll_;
  base::Fd bell_;  // rung by the control thread
  std::mutex mail_mutex_;
  std::deque<std::function<void()>> mail_;
  std::atomic<bool> mail_waits_{false};
  std::atomic<bool> stop_{false};
  // By asker; added by its thread, read by the control thread.
  std::array<std::atomic<std::uint64_t>, 2> answered_{};
  std::thread thread_;
};

}  // namespace pickd::workers
