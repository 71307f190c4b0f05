// Why a pick found nobody: see refusal.hpp.
#include "libclient/refusal.hpp"

#include <errno.h>

namespace pickd::client {

int explain_refusal(LastError& error, const PickRequest* request, bool degraded, int status) {
  const char* alone = degraded ? " (picked without the daemon)" : "";
  if (request != nullptr && status == -ENOENT && request->raw().model.size != 0) {
    constexpr std::size_t kShownMax = 64;
    const pickd_slice& model = request->raw().model;
    const auto shown = static_cast<int>(model.size < kShownMax ? model.size : kShownMax);
    return error.set(status, "no endpoint serves the model %.*s%s", shown,
                     static_cast<const char*>(model.data), alone);
  }
  if (request != nullptr && status == -EHOSTUNREACH) {
    if ((request->raw().flags & PICKD_REQUEST_SUBSET) == 0)
      return error.set(status, "no endpoint is ready%s", alone);
    return error.set(status,
                     "none of the %zu endpoints of the subset serves the model and is ready%s",
                     request->subset_count(), alone);
  }
  if (status == -EAGAIN) {
    return error.set(status,
                     "this user is over a limit of the daemon: listen.messages_per_s, "
                     "listen.blocks_per_s or reservations.per_uid_max");
  }
  return error.set(status, "%s%s", pickd_strerror(status), alone);
}

}  // namespace pickd::client
