// The steps of a pick that the daemon answers. A template, so that a benchmark can run just these
// with a clock at their borders; pickd_pick() runs them without.
#pragma once

#include <errno.h>

#include <cstdint>

#include "libclient/client.hpp"
#include "libclient/pick_request.hpp"
#include "libclient/refusal.hpp"
#include "libclient/result.hpp"

namespace pickd::client {

struct NoStamps {
  void published() const {}  // the daemon can see the submission
  void copied() const {}     // its answer is in private memory
};

template <typename Stamps>
int pick_on(pickd_client& client, Channel& channel, const PickRequest& request,
            const Deadline& deadline, pickd_result& result, Stamps& stamps) {
  PickShape shape;
  const StateView& state = channel.session().state();
  if (const int code = request.shape(state, channel.keys_max(), shape, client.error); code != 0)
    return code;
  // Room for the cancel record is kept behind every pick, so that giving up always works.
  std::byte* to = channel.wait_for_room(shape.bytes, Channel::kCancelRoom, deadline);
  if (to == nullptr) {
    if (!channel.broken()) channel.session().timed_out();
    return channel.broken() ? -ENOTCONN : -ETIMEDOUT;
  }

  const std::uint64_t sequence = client.draw_sequence();
  const std::uint64_t hash_ns = request.write(shape, state, client.ticks, sequence, to);
  channel.submissions().publish();
  stamps.published();
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
  const int copied = result.copy(record);
  stamps.copied();
  channel.completions().take_quietly();
  client.saw(sequence);
  const int status = copied == 0 ? result.read() : copied;
  result.ticket = {client.id, sequence};
  result.hash_ns = hash_ns;
  if (status != 0) explain_refusal(client.error, &request, false, status);
  return status;
}

template <typename Stamps = const NoStamps>
int pick_by_daemon(pickd_client& client, const PickRequest& request, const Deadline& deadline,
                   pickd_result& result, Stamps& stamps = Stamps{}) {
  int code = -ENOTCONN;
  // The second round is for a daemon that went away under the first and is back already.
  for (int round = 0; round < 2 && code == -ENOTCONN; ++round) {
    Channel* channel = nullptr;
    code = client.acquire(deadline, &channel, pickd_client::WhenBusy::kPick);
    if (code != 0) return code;
    code = pick_on(client, *channel, request, deadline, result, stamps);
    client.release(channel);
  }
  return code;
}

}  // namespace pickd::client
