// pickd_pick: one blocking pick on a channel of the pool, else one by the library itself.
#include <errno.h>

#include "libclient/client.hpp"
#include "libclient/pick_steps.hpp"
#include "libclient/result.hpp"

using pickd::client::Deadline;
using pickd::client::PickRequest;

namespace {

// The part of a timeout that is kept back for picking without the daemon.
std::int64_t degraded_us(std::int64_t timeout_us) {
  constexpr std::int64_t kMaxUs = 2000;
  if (timeout_us >= Deadline::kNeverUs) return 0;
  return timeout_us / 4 < kMaxUs ? timeout_us / 4 : kMaxUs;
}

int pick_degraded(pickd_client& client, const PickRequest& request, pickd_result& result) {
  pickd::client::Session* session = client.last_session();
  const pickd_ticket ticket{client.id, client.draw_sequence()};
  const int code =
      client.degraded.pick(session->state(), session->keys_max(), request, ticket, result);
  session->drop();
  return code;
}

int pick(pickd_client& client, const pickd_request* request, std::int64_t timeout_us,
         pickd_result& result) {
  if (timeout_us < 0) return result.fail(client.error.set(-EINVAL, "timeout_us is negative"));
  PickRequest checked;
  if (const int code = checked.read(request, client.error); code != 0) return result.fail(code);

  // The library's own answer needs a moment too.
  const Deadline deadline = Deadline::after_us(timeout_us - degraded_us(timeout_us));
  const int code = pickd::client::pick_by_daemon(client, checked, deadline, result);
  if (code == -ETIMEDOUT || pickd::client::is_out_of_reach(code)) {
    const int picked = pick_degraded(client, checked, result);
    if (picked == 0) return 0;
    if (picked != -ENOTCONN && picked != -ENOMEM)
      return pickd::client::explain_refusal(client.error, &checked, true, picked);
    if (code == -ENOTCONN) client.error.set(code, "the daemon is away, and no endpoint is known");
    if (code == -ETIMEDOUT) client.error.set(code, "the daemon did not answer before the deadline");
  }
  if (code != 0 && result.status != code) result.fail(code);
  return code;
}

}  // namespace

extern "C" int pickd_pick(pickd_client* client, const pickd_request* request, int64_t timeout_us,
                          pickd_result* result) {
  if (client == nullptr || request == nullptr || result == nullptr) return -EINVAL;
  if (client->fork.in_child()) return result->fail(-EOWNERDEAD);
  pickd::client::Call call(client->error);
  return call.end(pick(*client, request, timeout_us, *result));
}
