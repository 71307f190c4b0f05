// How many clients and channels there may be, and how much memory the channels may take: in all, of
// one client, and of one user (uid), so that no user can keep the others out.
#include <algorithm>

#include "daemon/base/clock.hpp"
#include "daemon/control/control_server.hpp"

namespace pickd::control {

namespace {

constexpr std::uint64_t kMib = 1024 * 1024;

// Of one user: as set, else three quarters of all; who administers the daemon could do worse than
// fill it.
std::uint64_t share_of(std::uint64_t set, std::uint64_t all, bool admin) {
  if (set != 0) return set;
  return admin ? all : std::max<std::uint64_t>(1, all - all / 4);
}

// A user that is no administrator may take a fifth of the control thread, and a second's worth of
// that at once. The thousand channels of a large gateway are opened within it; requests without end
// leave the others their turn.
constexpr std::uint64_t kControlUsPerS = 200'000;
// Of one message at most: a thread that lost its core in the midst of it took none of that time,
// and its user must not wait five times as long.
constexpr std::uint64_t kChargeUsMax = 20'000;
constexpr std::uint64_t kRestNs = 20'000'000;
constexpr std::uint64_t kNewBlocksPerSMin = 1000;
constexpr std::uint64_t kRenewRatesNs = 1'000'000'000;

}  // namespace

const char* ControlServer::over_clients(std::uint32_t uid) const {
  const config::ListenConfig& limits = config_.listen;
  if (sessions_.size() >= limits.clients_max) {
    return "the daemon has all the clients it may have; listen.clients_max limits them";
  }
  const auto own = static_cast<std::uint64_t>(
      std::count_if(sessions_.begin(), sessions_.end(),
                    [uid](const auto& session) { return session.second.peer.uid == uid; }));
  if (own >= share_of(limits.clients_per_uid_max, limits.clients_max, is_admin(uid))) {
    return "this user has all the clients it may have; listen.clients_per_uid_max limits them";
  }
  return nullptr;
}

std::string ControlServer::over_channels(const Session& session, std::uint64_t bytes) const {
  const config::ListenConfig& limits = config_.listen;
  if (session.channels.size() >= limits.channels_per_client_max) {
    return "this client has all the channels it may have; listen.channels_per_client_max limits "
           "them";
  }
  if (channels_.size() >= limits.channels_max) {
    return "the daemon has all the channels it may have; listen.channels_max limits them";
  }
  std::uint64_t own = 0;
  for (const auto& [id, other] : sessions_) {
    if (other.peer.uid == session.peer.uid) own += other.channels.size();
  }
  if (own >= share_of(limits.channels_per_uid_max, limits.channels_max, session.admin)) {
    return "this user has all the channels it may have; listen.channels_per_uid_max limits them";
  }
  // Also of those that are closed already and still on their way out of a worker.
  std::uint64_t all_bytes = bytes;
  std::uint64_t own_bytes = bytes;
  for (const auto& [id, channel] : channels_) {
    all_bytes += channel.bytes;
    if (channel.uid == session.peer.uid) own_bytes += channel.bytes;
  }
  const auto over = [bytes](const char* whose, const char* setting) {
    return "a channel of " + std::to_string(bytes / 1024) + " KiB is more than what is left of " +
           whose + "; " + setting + " limits that";
  };
  if (all_bytes > limits.channels_mib_max * kMib)
    return over("the memory of all channels", "listen.channels_mib_max");
  const std::uint64_t own_mib =
      share_of(limits.channels_mib_per_uid_max, limits.channels_mib_max, session.admin);
  if (own_bytes > own_mib * kMib)
    return over("this user's memory for channels", "listen.channels_mib_per_uid_max");
  return {};
}

std::shared_ptr<workers::UserRates> ControlServer::rates_of(std::uint32_t uid) {
  const std::uint64_t now_ns = base::coarse_ns();
  // Forgotten only when full: a user that closes and opens again goes on with what it had.
  std::erase_if(rates_, [now_ns](const auto& entry) {
    const workers::UserRates& rates = *entry.second;
    return entry.second.use_count() == 1 && rates.messages.is_full(now_ns) &&
           rates.blocks.is_full(now_ns) && !rates.wakes.apart.load(std::memory_order_relaxed);
  });
  std::shared_ptr<workers::UserRates>& rates = rates_[uid];
  if (rates == nullptr) {
    rates = std::make_shared<workers::UserRates>(config_.listen.messages_per_s,
                                                 config_.listen.blocks_per_s);
    rates->new_blocks.set_rate(new_blocks_per_s(uid));
  }
  return rates;
}

// An eighth of what all engines together are known to hold: no engine computes faster. A user so
// needs seconds to push the prompts of others out of the fleet, and by then these have been used
// again; out of the one engine that it aims at, less.
std::uint64_t ControlServer::new_blocks_per_s(std::uint32_t uid) const {
  if (is_admin(uid)) return 0;
  const state::StateSegment& segment = room_->segment();
  const std::uint64_t table = segment.header().prefix_lines * abi::kWordsPerLine;
  std::uint64_t held = 0;
  for (const endpoints::TopologyEndpoint& endpoint : room_->topologies().current().endpoints()) {
    const std::uint64_t capacity =
        segment.endpoints()[endpoint.id].capacity_blocks.load(std::memory_order_relaxed);
    held += capacity == 0 ? table : capacity;
  }
  return std::max(kNewBlocksPerSMin, std::min(held, table) / 8);
}

// Endpoints come and go, and learn what they hold.
void ControlServer::renew_rates() {
  for (const auto& [uid, rates] : rates_) rates->new_blocks.set_rate(new_blocks_per_s(uid));
  reactor_->after(kRenewRatesNs, [this] { renew_rates(); });
}

bool ControlServer::has_time_left(const Session& session) {
  if (session.admin) return true;
  const auto at = time_of_user_.try_emplace(session.peer.uid, kControlUsPerS).first;
  return at->second.take(1, base::coarse_ns());
}

void ControlServer::charge_time(const Session& session, std::uint64_t from_ns) {
  if (session.admin) return;
  const auto at = time_of_user_.try_emplace(session.peer.uid, kControlUsPerS).first;
  const std::uint64_t took_us = (base::monotonic_ns() - from_ns) / 1000;
  at->second.charge(std::min(took_us, kChargeUsMax), base::coarse_ns());
}

// Not read until others have had their turn. Its messages wait in its socket.
void ControlServer::rest(Session& session) {
  if (session.resting) return;
  warn(time_warnings_, session.words() + ": its user's requests take more than " +
                           std::to_string(kControlUsPerS / 10'000) +
                           " % of the control thread; they wait");
  session.resting = true;
  reactor_->unwatch(session.socket.get());
  resting_.push_back(session.id);
  if (resting_.size() == 1) reactor_->after(kRestNs, [this] { wake_resting(); });
}

void ControlServer::wake_resting() {
  std::vector<std::uint64_t> resting;
  resting.swap(resting_);
  for (const std::uint64_t id : resting) {
    const auto at = sessions_.find(id);
    if (at == sessions_.end() || at->second.ended) continue;
    at->second.resting = false;
    if (auto watched = watch_session(at->second); !watched) {
      at->second.resting = true;
      end_session(at->second, "it cannot be watched");
    }
  }
}

}  // namespace pickd::control
