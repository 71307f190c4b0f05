#include "daemon/workers/worker.hpp"

#include <pthread.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "abi/fence.hpp"
#include "daemon/base/clock.hpp"

namespace pickd::workers {

namespace {

constexpr std::uint32_t kLettersAtOnce = 4;
constexpr std::uint32_t kRecordsAtOnce = 32;  // of one channel before the next has its turn
constexpr std::uint32_t kPausesPerClockRead = 16;

// Of a channel that closes: enough to empty a full ring, and an end for one that is filled again
// meanwhile.
std::uint64_t last_turns_max(const Channel& channel) {
  return channel.parameters().submissions_bytes / abi::kRingUnitBytes / kRecordsAtOnce + 1;
}

}  // namespace

base::Result<std::unique_ptr<Worker>> Worker::create(const WorkerOptions& options,
                                                     const WorkerParts& parts, Gone gone) {
  std::unique_ptr<Worker> worker(new Worker(options, parts, std::move(gone)));
  worker->epoll_ = base::Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!worker->epoll_.valid()) return base::errno_error("worker: epoll_create1");
  worker->bell_ = base::Fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!worker->bell_.valid()) return base::errno_error("worker: eventfd");
  epoll_event event{EPOLLIN | EPOLLET, {}};
  if (::epoll_ctl(worker->epoll_.get(), EPOLL_CTL_ADD, worker->bell_.get(), &event) != 0) {
    return base::errno_error("worker: epoll add");
  }
  return worker;
}

Worker::Worker(const WorkerOptions& options, const WorkerParts& parts, Gone gone)
    : options_(options),
      parts_(parts),
      gone_(std::move(gone)),
      counters_(parts.counters_row),
      scratch_(base::random_u64(), options.index),
      traces_(parts.trace_bytes),
      trace_(traces_.trace_words_max()),
      traces_left_(parts.traces_per_s),
      reports_(*parts.reservations, parts.records),
      copy_(Channel::record_bytes_max(parts.limits.keys_max) / sizeof(std::uint64_t)),
      answer_{} {}

Worker::~Worker() {
  if (!thread_.joinable()) return;
  stop_.store(true, std::memory_order_release);
  post([] {});
  thread_.join();
}

void Worker::start() {
  thread_ = std::thread([this] { run(); });
}

void Worker::post(std::function<void()> mail) {
  {
    const std::lock_guard lock(mail_mutex_);
    mail_.push_back(std::move(mail));
    // Release; partner: the acquire in run().
    mail_waits_.store(true, std::memory_order_release);
  }
  // Always: mail is rare.
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote = ::write(bell_.get(), &one, sizeof one);
}

void Worker::add(std::unique_ptr<Channel> channel) {
  auto shared = std::make_shared<std::unique_ptr<Channel>>(std::move(channel));
  post([this, shared] {
    // Edge-triggered and never read: the client shares the open file and could make a read block.
    epoll_event event{EPOLLIN | EPOLLET, {}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, (*shared)->bell(), &event) != 0) {
      // Its bell would never be heard: better a channel that is gone than one that hangs.
      return end(std::move(*shared), true);
    }
    channels_.push_back(std::move(*shared));
  });
}

void Worker::remove(std::uint32_t channel) {
  post([this, channel] {
    const auto at = std::find_if(channels_.begin(), channels_.end(), [channel](const auto& held) {
      return held->parameters().id == channel;
    });
    if (at == channels_.end()) return;  // broken, and gone already
    serve_last(**at);
    let_go(at, false);
  });
}

void Worker::ask(Asker asker) {
  // Release; partner: the acquire in answered().
  post([this, asker] {
    answered_[static_cast<std::size_t>(asker)].fetch_add(1, std::memory_order_release);
  });
}

void Worker::let_go(std::vector<std::unique_ptr<Channel>>::iterator channel, bool broken) {
  // By hand: the client holds the bell's open file too, and closing our descriptor alone would
  // leave it registered, for the client to ring as long as it likes.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, (*channel)->bell(), nullptr);
  std::unique_ptr<Channel> gone = std::move(*channel);
  channels_.erase(channel);
  end(std::move(gone), broken);
}

// Its pages are given back, and whoever waits at the other end of its pipe is told: that takes as
// long as the client made it.
void Worker::end(std::unique_ptr<Channel> channel, bool broken) {
  const std::uint32_t id = channel->parameters().id;
  // Without its thread, in tests and benchmarks that turn a worker by hand: here and now.
  if (parts_.ends == nullptr || !parts_.ends->runs()) {
    channel.reset();
    return gone_(id, broken);
  }
  // Copyable, as a function has to be.
  auto shared = std::make_shared<std::unique_ptr<Channel>>(std::move(channel));
  parts_.ends->post([gone = gone_, shared = std::move(shared), id, broken] {
    shared->reset();
    gone(id, broken);
  });
}

// What a client wrote before it closed the channel holds: a report or a cancel may be the last
// record. But not its picks: nobody would report on what they reserve, and the client may have
// found no room to cancel them.
void Worker::serve_last(Channel& channel) {
  last_turn_ = true;
  const endpoints::Topology* topology = &parts_.topologies->acquire(options_.index);
  const std::uint64_t turns_max = last_turns_max(channel);
  for (std::uint64_t turn = 0; turn < turns_max && serve(channel, topology); ++turn) {
    if (!broken_.empty()) break;
  }
  last_turn_ = false;
  broken_.clear();  // it goes in any case
  parts_.topologies->release(options_.index);
}

// A few at a time: a client that ends with thousands of channels is no reason for others to wait.
void Worker::take_mail() {
  for (std::uint32_t count = 0; count < kLettersAtOnce; ++count) {
    std::function<void()> letter;
    {
      const std::lock_guard lock(mail_mutex_);
      if (!mail_.empty()) {
        letter = std::move(mail_.front());
        mail_.pop_front();
      }
      // Under the lock: who posts after this sets it again.
      if (mail_.empty()) mail_waits_.store(false, std::memory_order_relaxed);
    }
    if (!letter) return;
    letter();
  }
}

void Worker::run() {
  ::pthread_setname_np(::pthread_self(), ("pickd-worker" + std::to_string(options_.index)).c_str());
  if (options_.cpu >= 0) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(static_cast<std::size_t>(options_.cpu), &cpus);
    const int refused = ::pthread_setaffinity_np(::pthread_self(), sizeof cpus, &cpus);
    if (refused != 0) {
      spdlog::warn("workers.cpus: worker {} is not on core {}: {}; under systemd see {}",
                   options_.index, options_.cpu, std::strerror(refused),
                   "/usr/share/doc/pickd/systemd/busy-polling.conf");
    }
  }
  abi::SpinBudget spin(options_.spin_ns);
  while (!stop_.load(std::memory_order_acquire)) {
    if (turn()) continue;
    abi::spin_pause();
    if (options_.busy_poll) continue;
    if (spin.ns() != 0 && spin_for_work(spin)) continue;
    sleep();
    spin.failed();
  }
}

// True when work came, and was done, while spinning: only what was waited for says that it pays.
bool Worker::spin_for_work(abi::SpinBudget& spin) {
  const std::uint64_t idle_since_ns = base::monotonic_ns();
  std::uint64_t looked_ns = idle_since_ns;
  while (!stop_.load(std::memory_order_acquire)) {
    bool served = false;
    for (std::uint32_t pause = 0; pause < kPausesPerClockRead && !served; ++pause) {
      abi::spin_pause();
      served = turn();
    }
    // After the work, which nobody waits for any more; what it took is far below the gap.
    const std::uint64_t now_ns = base::monotonic_ns();
    const bool lost_core = now_ns - looked_ns >= abi::kSpinGapNs;
    looked_ns = now_ns;
    if (lost_core) spin.preempted();
    if (served) {
      if (!lost_core) spin.paid();
      return true;
    }
    if (now_ns - idle_since_ns >= spin.ns()) return false;
  }
  return false;
}

bool Worker::turn() {
  if (mail_waits_.load(std::memory_order_acquire)) take_mail();
  return serve_all();
}

bool Worker::work_waits(bool sleeping) const {
  if (mail_waits_.load(std::memory_order_acquire)) return true;
  return std::any_of(channels_.begin(), channels_.end(), [sleeping](const auto& channel) {
    return channel->has_submissions(sleeping);
  });
}

void Worker::sleep() {
  // Announce, then look once more: a client that published before it saw the announcement is seen
  // here, any later one rings the bell. Partner: the publisher of libpickd's submission ring.
  parts_.word->asleep.store(1, abi::kAnnounceStore);
  abi::announce_then_check();
  if (!work_waits(true) && !stop_.load(std::memory_order_acquire)) {
    epoll_event events[16];
    ::epoll_wait(epoll_.get(), events, 16, -1);
    counters_.add(abi::Counter::worker_wakes);
  }
  parts_.word->asleep.store(0, std::memory_order_relaxed);
}

bool Worker::serve_all() {
  if (!work_waits(false)) return false;
  const endpoints::Topology* topology = &parts_.topologies->acquire(options_.index);
  bool served = false;
  for (const auto& channel : channels_) served |= serve(*channel, topology);
  parts_.topologies->release(options_.index);
  if (!broken_.empty()) drop_broken();
  return served;
}

bool Worker::serve(Channel& channel, const endpoints::Topology*& topology) {
  const std::span<std::byte> copy(reinterpret_cast<std::byte*>(copy_.data()),
                                  copy_.size() * sizeof(std::uint64_t));
  coarse_ns_ = base::coarse_ns();
  first_answer_ = true;
  times_pick_ = !parts_.clock.is_virtual();
  const bool served = serve_row(channel, copy, topology);
  // Once for the row: its fence costs as much as a tenth of a pick.
  if (channel.owes_wake() && channel.wake_client()) counters_.add(abi::Counter::client_wakes);
  return served;
}

bool Worker::serve_row(Channel& channel, std::span<std::byte> copy,
                       const endpoints::Topology*& topology) {
  for (std::uint32_t count = 0; count < kRecordsAtOnce; ++count) {
    std::size_t bytes = 0;
    switch (channel.take(copy, &bytes)) {
      case Channel::Look::kNothing: return count != 0;
      case Channel::Look::kBroken: broken_.push_back(channel.parameters().id); return true;
      case Channel::Look::kRecord:
        // After the record was taken: who submits when a change of endpoints has been answered must
        // find it made, though this round began before it.
        topology = &parts_.topologies->renew(options_.index, *topology);
        if (bytes != 0) handle(channel, copy.first(bytes), *topology);
        break;
    }
  }
  return true;
}

void Worker::drop_broken() {
  for (const std::uint32_t id : broken_) {
    const auto at = std::find_if(channels_.begin(), channels_.end(),
                                 [id](const auto& held) { return held->parameters().id == id; });
    if (at == channels_.end()) continue;
    counters_.add(abi::Counter::channels_broken);
    let_go(at, true);
  }
  broken_.clear();
}

void Worker::handle(Channel& channel, std::span<const std::byte> record,
                    const endpoints::Topology& topology) {
  abi::RecordHead head;
  std::memcpy(&head, record.data(), sizeof head);
  switch (head.type) {
    case abi::RecordType::kPick:
      if (last_turn_) return;
      return handle_pick(channel, record, topology);
    case abi::RecordType::kReport: return handle_report(channel, record, topology);
    case abi::RecordType::kCancel: return handle_cancel(channel, record);
    case abi::RecordType::kPadding: break;
  }
  counters_.add(abi::Counter::submissions_malformed);
}

bool Worker::answer(Channel& channel, std::span<const std::byte> record) {
  if (!channel.put(record)) {
    counters_.add(abi::Counter::completions_dropped);
    return false;
  }
  // Of a row the first only: the flag stands on a line that the client writes while it reads.
  if (first_answer_ && channel.wake_early()) counters_.add(abi::Counter::client_wakes);
  first_answer_ = false;
  return true;
}

// What one user may take, of the table and of the others' time, whatever it sends.
bool Worker::within_limits(Channel& channel, const pick::PickRequest& request) {
  if (UserRates* rates = channel.parameters().rates.get(); rates != nullptr) {
    if (!rates->messages.take(1, coarse_ns_)) return false;
    if (!rates->blocks.take(request.keys.size(), coarse_ns_)) return false;
  }
  return parts_.inflight_per_uid_max == 0 || request.dry_run ||
         parts_.reservations->count_of_user(request.uid) < parts_.inflight_per_uid_max;
}

void Worker::refuse(Channel& channel, std::span<const std::byte> record, int status) {
  abi::RecordHead head;
  std::memcpy(&head, record.data(), sizeof head);
  answer(channel, encode_refused(head.sequence, status, answer_));
}

void Worker::handle_pick(Channel& channel, std::span<const std::byte> record,
                         const endpoints::Topology& topology) {
  DecodedPick decoded;
  if (!decode_pick(record, parts_.limits, decode_, decoded)) {
    counters_.add(abi::Counter::submissions_malformed);
    return refuse(channel, record, -EINVAL);
  }
  pick::PickRequest& request = decoded.request;
  request.ticket.client = channel.parameters().client;
  request.uid = channel.parameters().uid;
  parts_.reservations->prefetch(request.ticket);
  if (!within_limits(channel, request)) {
    counters_.add(abi::Counter::picks_limited);
    counters_.add(abi::Counter::picks_refused);
    return refuse(channel, record, -EAGAIN);
  }
  // Before the candidates are looked at: what is reset after this lies above it.
  request.now_ns = parts_.clock.now_ns();
  const std::uint64_t tick = request.now_ns / abi::kTickNs;
  pick::PickResult result;
  const bool traced = parts_.traces_per_s != 0 && traces_left_.take(1, coarse_ns_);
  scratch_.trace = traced ? &trace_ : nullptr;
  parts_.core->pick(request, topology, tick, scratch_, counters_, result);
  // Before the answer: who has it finds it counted, and explained.
  if (traced) traces_.put(trace_.words());
  if (decoded.cut) counters_.add(abi::Counter::picks_cut);
  if (decoded.slo_ignored != 0) counters_.add(abi::Counter::slo_ignored, decoded.slo_ignored);
  if (decoded.ttl_ignored != 0)
    counters_.add(abi::Counter::affinity_ttl_ignored, decoded.ttl_ignored);
  const std::span<std::byte> room =
      decoded.answer_bytes_max == 0
          ? std::span<std::byte>(answer_)
          : std::span<std::byte>(answer_).first(std::clamp<std::size_t>(
                decoded.answer_bytes_max, kAnswerBytesMin, kAnswerBytesMax));
  const bool answered = answer(channel, encode_picked(request.ticket.sequence, result, decoded.cut,
                                                      request.prompt_tokens, room));
  if (!answered) {
    // Nobody will report on a ticket that nobody got.
    if (result.reserved) parts_.reservations->end(request.ticket, request.uid);
    return;
  }
  // One clock read a row: under load that is one in many picks, and the caller has its answer.
  if (times_pick_) figures_.took(parts_.clock.now_ns() - request.now_ns);
  times_pick_ = false;
  if (result.status == 0 && !request.dry_run) figures_.picked(result);
  if (Recorder* recorder = recorder_.load(std::memory_order_acquire); recorder != nullptr)
    recorder->put_pick(request, result);
  fetch_ahead(channel);
  if (!request.dry_run) forget_beyond_share(channel, result);
  // After the answer: the caller does not wait for the stamps, the next submission does.
  parts_.core->remember(request, result, tick, counters_);
}

// The lines of the prefix table for the pick that comes next are on their way while this one is
// stamped.
void Worker::fetch_ahead(const Channel& channel) const {
  std::array<std::uint64_t, prefix::PrefixTable::kFirstKeys> keys;
  const auto ahead = channel.look_ahead(keys.size());
  if (ahead.empty()) return;
  // Relaxed: the client may be writing there; any keys will do.
  std::transform(ahead.begin(), ahead.end(), keys.begin(),
                 [](const auto& key) { return key.load(std::memory_order_relaxed); });
  parts_.core->prefetch(std::span(keys).first(ahead.size()));
}

// What a user's prompts make the store remember pushes out what others' made it. Who brings more
// new blocks than the engines could compute has the known part of its prompts stamped, and no more.
void Worker::forget_beyond_share(const Channel& channel, pick::PickResult& result) {
  UserRates* const rates = channel.parameters().rates.get();
  if (rates == nullptr || result.status != 0 || result.keys.empty()) return;
  const std::size_t known =
      std::min<std::size_t>(result.endpoints[0].match_blocks, result.keys.size());
  const std::size_t unknown = result.keys.size() - known;
  if (unknown == 0 || rates->new_blocks.take(unknown, coarse_ns_)) return;
  counters_.add(abi::Counter::blocks_left_out, unknown);
  result.keys = result.keys.first(known);
}

void Worker::handle_report(Channel& channel, std::span<const std::byte> record,
                           const endpoints::Topology& topology) {
  abi::RecordHead head;
  std::memcpy(&head, record.data(), sizeof head);
  // Counted, never refused: a report that is lost holds its reservation until the lease ends.
  if (UserRates* rates = channel.parameters().rates.get(); rates != nullptr) {
    rates->messages.charge(1, coarse_ns_);
  }
  DecodedReport report;
  int status = -EINVAL;
  if (decode_report(record, report)) {
    status = reports_.apply(report, channel.parameters().uid, parts_.clock.now_ns(), topology,
                            counters_);
    Recorder* recorder = recorder_.load(std::memory_order_acquire);
    if (recorder != nullptr && status == 0) recorder->put_end(report, parts_.clock.now_ns());
  } else {
    counters_.add(abi::Counter::submissions_malformed);
  }
  if ((head.flags & abi::kReportAnswer) != 0) {
    answer(channel, encode_reported(head.sequence, status, answer_));
  }
}

void Worker::handle_cancel(Channel& channel, std::span<const std::byte> record) {
  abi::RecordHead head;
  std::memcpy(&head, record.data(), sizeof head);
  counters_.add(abi::Counter::picks_cancelled);
  // The pick stood before this in the ring, so it was served: what it reserved is given back.
  parts_.reservations->end({channel.parameters().client, head.sequence}, channel.parameters().uid);
}

}  // namespace pickd::workers
