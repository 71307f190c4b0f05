// pickd_pick: one blocking pick on a channel of the pool.
#include <errno.h>

#include "libclient/client.hpp"
#include "libclient/pick_request.hpp"
#include "libclient/result.hpp"

using pickd::client::Channel;
using pickd::client::CompletionRecord;
using pickd::client::Deadline;
using pickd::client::PickRequest;
using pickd::client::PickShape;

namespace {

int pick_on(pickd_client& client, Channel& channel, const PickRequest& request,
            const Deadline& deadline, pickd_result& result) {
  PickShape shape;
  const pickd::client::StateView& state = channel.session().state();
  if (const int code = request.shape(state, channel.keys_max(), shape, client.error); code != 0)
    return code;
  // Room for the cancel record is kept behind every pick, so that giving up always works.
  std::byte* to = channel.wait_for_room(shape.bytes, Channel::kCancelRoom, deadline);
  if (to == nullptr) {
    if (!channel.broken()) channel.session().timed_out();
    return channel.broken() ? -ENOTCONN : -ETIMEDOUT;
  }

  const std::uint64_t sequence = client.draw_sequence();
  const std::uint64_t hash_ns = request.write(shape, state, sequence, to);
  channel.submissions().publish();
  channel.wake_daemon();

  CompletionRecord record;
  const int code = channel.wait_for(sequence, deadline, client.wait_policy, record);
  if (code == -ETIMEDOUT) {
    channel.session().timed_out();
    if (!channel.cancel(sequence)) channel.mark_broken();
  }
  if (code == -EPROTO) channel.mark_broken();
  if (code == -ENOTCONN) client.give_up(sequence);
  if (code != 0) return code;
  const int status = result.fill(record);
  channel.completions().take();
  client.saw(sequence);
  result.ticket = {client.id, sequence};
  result.hash_ns = hash_ns;
  return status;
}

// The part of a timeout that is kept back for picking without the daemon.
std::int64_t degraded_us(std::int64_t timeout_us) {
  constexpr std::int64_t kMaxUs = 2000;
  if (timeout_us >= PICKD_NO_DEADLINE / 8) return 0;
  return timeout_us / 4 < kMaxUs ? timeout_us / 4 : kMaxUs;
}

int pick_by_daemon(pickd_client& client, const PickRequest& request, const Deadline& deadline,
                   pickd_result& result) {
  int code = -ENOTCONN;
  // The second round is for a daemon that went away under the first and is back already.
  for (int round = 0; round < 2 && code == -ENOTCONN; ++round) {
    Channel* channel = nullptr;
    code = client.acquire(deadline, &channel, pickd_client::WhenBusy::kPick);
    if (code != 0) return code;
    code = pick_on(client, *channel, request, deadline, result);
    client.release(channel);
  }
  return code;
}

int pick_degraded(pickd_client& client, const PickRequest& request, pickd_result& result) {
  pickd::client::Session* session = client.last_session();
  const pickd_ticket ticket{client.id, client.draw_sequence()};
  const int code =
      client.degraded.pick(session->state(), session->keys_max(), request, ticket, result);
  session->drop();
  return code;
}

}  // namespace

extern "C" int pickd_pick(pickd_client* client, const pickd_request* request, int64_t timeout_us,
                          pickd_result* result) {
  if (client == nullptr || request == nullptr || result == nullptr) return -EINVAL;
  if (client->fork.in_child()) return result->fail(-EOWNERDEAD);
  if (timeout_us < 0) return result->fail(client->error.set(-EINVAL, "timeout_us is negative"));
  PickRequest checked;
  if (const int code = checked.read(request, client->error); code != 0) return result->fail(code);

  // The library's own answer needs a moment too.
  const Deadline deadline = Deadline::after_us(timeout_us - degraded_us(timeout_us));
  int code = pick_by_daemon(*client, checked, deadline, *result);
  if (code == -ENOTCONN || code == -ETIMEDOUT) {
    const int picked = pick_degraded(*client, checked, *result);
    if (picked != -ENOTCONN && picked != -ENOMEM) return picked;
    if (code == -ENOTCONN) client->error.set(code, "the daemon is away, and no endpoint is known");
    if (code == -ETIMEDOUT)
      client->error.set(code, "the daemon did not answer before the deadline");
  }
  if (code != 0 && result->status != code) result->fail(code);
  return code;
}
