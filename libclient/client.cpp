// pickd_client: see client.hpp. Connecting is at the top, the pool below; the C functions are in
// client_calls.cpp.
#include "libclient/client.hpp"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libclient/memory.hpp"
#include "libclient/report_request.hpp"

using pickd::client::Channel;
using pickd::client::Deadline;
using pickd::client::destroy_object;
using pickd::client::Lock;
using pickd::client::make_object;
using pickd::client::ReportRequest;
using pickd::client::RingSizes;
using pickd::client::Session;
namespace abi = pickd::abi;

namespace {

constexpr std::uint64_t kAttemptEveryNs = 100'000'000;

// A session is followed by another only after its connection was found dead: a channel of one that
// lives is the live session's. Who waits for an answer notices a hang-up then; who does not has to
// look for it.
bool serves(Channel& channel, pickd_client::WhenBusy when_busy) {
  Session& its = channel.session();
  if (when_busy == pickd_client::WhenBusy::kPick && its.stands_still()) return false;
  return when_busy == pickd_client::WhenBusy::kFail ? !its.gone() : !its.connection().dead();
}

}  // namespace

pickd_client::~pickd_client() {
  destroy_object(ready.take());
  while (free_channels != nullptr) {
    Channel* channel = free_channels;
    free_channels = channel->next_free;
    destroy_object(channel);
  }
  if (session != nullptr) session->drop();
  if (greeting != nullptr) greeting->drop();
  while (versions != nullptr) {
    Version* version = versions;
    versions = version->next;
    destroy_object(version);
  }
}

void pickd_client::abandon() {
  // No lock: another thread of the parent may have held it when the process was forked.
  for (Channel* channel = free_channels; channel != nullptr; channel = channel->next_free)
    channel->abandon();
  if (Channel* channel = ready.take(); channel != nullptr) {
    channel->next_free = free_channels;
    free_channels = channel;
    channel->abandon();
  }
  if (session != nullptr) session->abandon();
  if (greeting != nullptr) greeting->abandon();
}

void pickd_client::saw(std::uint64_t sequence) {
  std::uint64_t seen = last_seen.load(std::memory_order_relaxed);
  while (seen < sequence &&
         !last_seen.compare_exchange_weak(seen, sequence, std::memory_order_relaxed)) {
  }
}

// ---- Connecting ---------------------------------------------------------------------------------

int pickd_client::connect(const Deadline& deadline) {
  Session* opened = nullptr;
  int code = Session::open(identity(), deadline, error, &opened);
  if (code != 0) return code;
  // One channel is opened now, so that the first pick finds it there.
  Channel* channel = nullptr;
  code = Channel::open(*opened, ring_sizes(), deadline, error, &channel);
  if (code != 0) {
    opened->drop();
    return code;
  }
  const Lock lock(mutex);
  code = adopt(opened);
  if (code != 0) {
    destroy_object(channel);
    opened->drop();
    return code;
  }
  channel->next_free = free_channels;
  free_channels = channel;
  ++channel_count;
  return 0;
}

// Makes `opened` the session of all calls from now on. Channels of the former are given up as they
// come back. Under the mutex.
int pickd_client::adopt(Session* opened) {
  if (versions == nullptr || ::strcmp(versions->text, opened->daemon_version()) != 0) {
    auto* version = make_object<Version>();
    if (version == nullptr) return error.set(-ENOMEM, "out of memory");
    ::snprintf(version->text, sizeof version->text, "%s", opened->daemon_version());
    version->next = versions;
    versions = version;
  }
  while (Channel* channel = pop_free()) destroy_of_another_session(channel);
  if (session != nullptr) session->drop();
  session = opened;
  return 0;
}

// Connects again, once for all threads that wait for it. The identity and the sequence counter
// stay, so tickets stay good; the hello's last_sequence lets the daemon free what was never seen.
int pickd_client::reconnect(Lock& lock, const Deadline& deadline) {
  if (reconnecting) {
    while (reconnecting) {
      if (!changed.wait(lock, deadline))
        return error.set(-ETIMEDOUT, "another thread is connecting again");
    }
    return session->connection().dead() ? -ENOTCONN : 0;
  }
  reconnecting = true;
  Session* unanswered = greeting;
  greeting = nullptr;
  lock.unlock();
  if (unanswered != nullptr) unanswered->drop();
  const int code = connect(deadline.or_sooner(connect_deadline()));
  lock.lock();
  reconnecting = false;
  changed.wake_all();
  if (code == 0 || code == -ENOMEM) return code;
  return -ENOTCONN;
}

// The same for picks, which have another answer, and for who does not wait: a step at a time, and
// each only as far as it goes without waiting. A daemon that does not answer the hello at once is
// asked by a later pick whether it has; there is one attempt every kAttemptEveryNs.
int pickd_client::reconnect_now(Lock& lock) {
  if (reconnecting) return -ENOTCONN;
  const std::uint64_t now_ns = pickd::client::monotonic_ns();
  if (greeting == nullptr && now_ns < next_attempt_ns) return -ENOTCONN;
  reconnecting = true;
  Session* attempt = greeting;
  greeting = nullptr;
  std::uint32_t patience_us = 0;
  lock.unlock();
  int code = 0;
  if (attempt == nullptr) {
    patience_us = pickd::client::kNoWaitPatienceUs;
    code = Session::begin(identity(), connect_deadline(), pickd::client::Connection::When::kNow,
                          error, &attempt);
  }
  if (code == 0) code = attempt->finish(Deadline::after_us(patience_us), error);
  lock.lock();
  if (code == 0) code = adopt(attempt);
  if (code == -ETIMEDOUT && attempt != nullptr) {
    greeting = attempt;
  } else if (code != 0 && attempt != nullptr) {
    attempt->drop();
  }
  next_attempt_ns = now_ns + kAttemptEveryNs;
  reconnecting = false;
  changed.wake_all();
  return code == 0 ? 0 : -ENOTCONN;
}

Session* pickd_client::last_session() {
  const Lock lock(mutex);
  session->retain();
  return session;
}

int pickd_client::acquire_session_now(Session** out) {
  Lock lock(mutex);
  if (session->connection().hung_up()) {
    if (const int code = reconnect_now(lock); code != 0) return code;
  }
  if (session->stands_still()) return -ENOTCONN;
  session->retain();
  *out = session;
  return 0;
}

void pickd_client::give_up(std::uint64_t sequence) {
  const Lock lock(mutex);
  note_given_up(sequence);
}

bool pickd_client::keep_end(const ReportRequest& report) {
  if (report.ticket().client != id || !report.ends_request()) return false;
  give_up(report.ticket().sequence);
  return true;
}

// Under the mutex.
void pickd_client::note_given_up(std::uint64_t sequence) {
  given_up.add(sequence);
  has_given_up.store(true, std::memory_order_relaxed);
}

void pickd_client::salvage(Channel& channel) {
  const Lock lock(mutex);
  channel.each_lost_end(id, [this](std::uint64_t sequence) { note_given_up(sequence); });
}

// Under the mutex: a free one, of a session that another took the place of.
void pickd_client::destroy_of_another_session(Channel* channel) {
  channel->each_lost_end(id, [this](std::uint64_t sequence) { note_given_up(sequence); });
  destroy_object(channel);
  --channel_count;
}

void pickd_client::cancel_given_up(Channel& channel) {
  const Lock lock(mutex);
  write_given_up(channel);
}

// Under the mutex. Half of the ring is left to who holds the channel; the rest goes with the next
// call.
void pickd_client::write_given_up(Channel& channel) {
  while (given_up.count() != 0 &&
         channel.cancel(given_up.last(), channel.submissions().ring_bytes() / 2)) {
    given_up.remove_last();
  }
  has_given_up.store(given_up.count() != 0, std::memory_order_relaxed);
}

int pickd_client::acquire_session(const Deadline& deadline, Session** out) {
  Lock lock(mutex);
  if (session->connection().hung_up()) {
    if (const int code = reconnect(lock, deadline); code != 0) return code;
  }
  session->retain();
  *out = session;
  return 0;
}

// ---- The pool -----------------------------------------------------------------------------------

RingSizes pickd_client::ring_sizes() const {
  // A record must fit twice, or a wrap at the wrong place leaves no contiguous room for it.
  const std::uint64_t record = sizeof(abi::PickRecord) +
                               std::uint64_t{keys_wanted} * sizeof(std::uint64_t) +
                               abi::kFieldBytesMax + 4 * abi::kRingUnitBytes;
  std::uint64_t bytes = abi::kSubmissionRingBytesDefault;
  while (bytes < 2 * record) bytes *= 2;
  const bool default_fits = bytes == abi::kSubmissionRingBytesDefault;
  return {default_fits ? 0 : static_cast<std::uint32_t>(bytes), 0};
}

// Of the free channels of whatever session. Under the mutex.
Channel* pickd_client::pop_free() {
  Channel* channel = free_channels;
  if (channel == nullptr) return ready.take();
  free_channels = channel->next_free;
  return channel;
}

int pickd_client::acquire(const Deadline& deadline, Channel** out, WhenBusy when_busy) {
  if (Channel* channel = ready.take(); channel != nullptr) {
    if (serves(*channel, when_busy)) {
      if (has_given_up.load(std::memory_order_relaxed)) cancel_given_up(*channel);
      *out = channel;
      return 0;
    }
    give_back(channel);
  }
  Lock lock(mutex);
  const int code = find_channel(lock, deadline, out, when_busy);
  if (code == -ENOTCONN) changed.wake_one();
  return code;
}

int pickd_client::find_channel(Lock& lock, const Deadline& deadline, Channel** out,
                               WhenBusy when_busy) {
  bool reconnected = false;
  bool more_allowed = true;  // by the daemon
  for (;;) {
    // Who waits for an answer notices a hang-up then; who does not has to look for it.
    const bool still = when_busy == WhenBusy::kPick && session->stands_still();
    const bool dead = still                          ? session->connection().hung_up()
                      : when_busy == WhenBusy::kFail ? session->gone()
                                                     : session->connection().dead();
    if (still && !dead) return -ENOTCONN;
    if (dead) {
      if (reconnected) return error.set(-ENOTCONN, "the daemon went away again");
      reconnected = true;
      const int code =
          when_busy == WhenBusy::kWait ? reconnect(lock, deadline) : reconnect_now(lock);
      if (code != 0) return code;
      continue;
    }
    if (Channel* channel = pop_free(); channel != nullptr) {
      if (&channel->session() != session) {  // laid down while another thread connected again
        destroy_of_another_session(channel);
        continue;
      }
      write_given_up(*channel);
      *out = channel;
      return 0;
    }
    // Picks have another answer: they do not each ask for a channel that there is no room for.
    if (when_busy == WhenBusy::kPick && channel_count == 0 &&
        pickd::client::monotonic_ns() < next_channel_ns) {
      return error.set(-EMFILE, "no channel could be opened a moment ago");
    }
    if (channel_count < channels_max && (more_allowed || channel_count == 0)) {
      const int code = open_channel(lock, deadline, out, when_busy);
      // The daemon's limit, or this process's: what is open has to do. -ENOTCONN: the connection is
      // marked dead now.
      more_allowed = code == 0 || !pickd::client::is_out_of_reach(code);
      if (code == 0) write_given_up(**out);
      if (code == -ENOTCONN || (!more_allowed && channel_count != 0)) continue;
      return code;
    }
    if (when_busy == WhenBusy::kFail) {
      return error.set(-EAGAIN, "all %u channels are in use; channels_max allows more",
                       channel_count);
    }
    ready.announce_sleeper();
    const bool in_time = ready.filled() || changed.wait(lock, deadline);
    ready.dismiss_sleeper();
    if (!in_time) {
      return error.set(-ETIMEDOUT,
                       "all %u channels were in use until the deadline; channels_max allows more",
                       channel_count);
    }
  }
}

// One more for the pool, which the caller has at once.
int pickd_client::open_channel(Lock& lock, const Deadline& deadline, Channel** out,
                               WhenBusy when_busy) {
  Session* opening = session;
  const bool wait = when_busy != WhenBusy::kFail;
  if (!wait && opening->stands_still())
    return error.set(-EAGAIN, "all %u channels are in use, and the daemon stands still",
                     channel_count);
  const bool first = channel_count == 0;
  const std::uint32_t patience_us = channel_count == 0 ? pickd::client::kFirstChannelPatienceUs
                                                       : pickd::client::kNoWaitPatienceUs;
  ++channel_count;
  opening->retain();
  lock.unlock();
  const int code = wait ? Channel::open(*opening, ring_sizes(),
                                        deadline.or_sooner(connect_deadline()), error, out)
                        : Channel::open(*opening, ring_sizes(), Deadline::after_us(patience_us),
                                        error, out, pickd::client::Connection::When::kNow);
  if (code == -ETIMEDOUT) opening->timed_out();
  opening->drop();
  lock.lock();
  if (code == 0) return 0;
  --channel_count;
  if (first && pickd::client::is_out_of_reach(code))
    next_channel_ns = pickd::client::monotonic_ns() + kAttemptEveryNs;
  changed.wake_one();
  return code == -ETIMEDOUT && !wait ? -EAGAIN : code;
}

void pickd_client::release(Channel* channel) {
  const bool alive = !channel->broken() && !channel->session().connection().dead();
  if (!alive || !ready.put(channel)) return give_back(channel);
  if (!ready.awaited()) return;
  const Lock lock(mutex);
  changed.wake_one();
}

// To the list, or to the daemon.
void pickd_client::give_back(Channel* channel) {
  Lock lock(mutex);
  const bool usable =
      !channel->broken() && &channel->session() == session && !session->connection().dead();
  if (usable) {
    channel->next_free = free_channels;
    free_channels = channel;
  } else {
    --channel_count;
  }
  changed.wake_one();
  lock.unlock();
  if (usable) return;
  if (channel->left_behind()) salvage(*channel);
  Channel::close(channel);
}
