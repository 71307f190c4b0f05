// The C functions of queues: handles and structs checked, then queue.cpp.
#include <errno.h>

#include "libclient/memory.hpp"
#include "libclient/queue.hpp"
#include "libclient/result.hpp"

namespace abi = pickd::abi;
using pickd::client::Call;
using pickd::client::destroy_object;
using pickd::client::PickRequest;
using pickd::client::ReportRequest;

namespace {

constexpr std::uint32_t kDepthDefault = 256;

int open_queue(pickd_client& client, std::uint32_t depth, pickd_queue** queue) {
  if (depth > abi::kQueueDepthMax) {
    return client.error.set(-EINVAL, "depth %u: 1 to %u", depth, abi::kQueueDepthMax);
  }
  if (depth == 0) depth = kDepthDefault;
  pickd::client::Owned<pickd_queue> opened(pickd::client::make_object<pickd_queue>(&client, depth));
  if (opened == nullptr) return client.error.set(-ENOMEM, "out of memory");
  if (const int code = opened->open(); code != 0) return code;
  *queue = opened.release();
  return 0;
}

}  // namespace

extern "C" {

int pickd_queue_open(pickd_client* client, uint32_t depth, pickd_queue** queue) {
  if (queue != nullptr) *queue = nullptr;
  if (client == nullptr || queue == nullptr) return -EINVAL;
  if (client->fork.in_child()) return -EOWNERDEAD;
  Call call(client->error);
  return call.end(open_queue(*client, depth, queue));
}

void pickd_queue_close(pickd_queue* queue) {
  if (queue == nullptr) return;
  if (queue->client->fork.in_child()) queue->abandon();
  destroy_object(queue);
}

int pickd_queue_submit(pickd_queue* queue, const pickd_request* request, uint64_t user_data,
                       pickd_ticket* ticket) {
  if (queue == nullptr || request == nullptr) return -EINVAL;
  if (queue->client->fork.in_child()) return -EOWNERDEAD;
  Call call(queue->client->error);
  PickRequest checked;
  if (const int code = checked.read(request, queue->client->error); code != 0) return code;
  return call.end(queue->submit(checked, user_data, ticket));
}

int pickd_queue_poll(pickd_queue* queue, pickd_result* result, uint64_t* user_data) {
  if (queue == nullptr || result == nullptr) return -EINVAL;
  if (queue->client->fork.in_child()) return -EOWNERDEAD;
  return queue->poll(*result, user_data);
}

int pickd_queue_cancel(pickd_queue* queue, pickd_ticket ticket) {
  if (queue == nullptr) return -EINVAL;
  if (queue->client->fork.in_child()) return -EOWNERDEAD;
  const bool own = ticket.client == queue->client->id;
  if (own && queue->cancel(ticket.sequence) == 0) return 0;
  return queue->client->error.set(-ESTALE,
                                  "the ticket is not outstanding in this queue: it was answered or "
                                  "cancelled, or is another queue's");
}

int pickd_queue_report(pickd_queue* queue, const pickd_report_info* report) {
  if (queue == nullptr || report == nullptr) return -EINVAL;
  if (queue->client->fork.in_child()) return -EOWNERDEAD;
  Call call(queue->client->error);
  ReportRequest checked;
  if (const int code = checked.read(report, queue->client->error); code != 0) return code;
  return call.end(queue->report(checked));
}

int pickd_queue_event_fd(pickd_queue* queue) {
  if (queue == nullptr) return -EINVAL;
  if (queue->client->fork.in_child()) return -EOWNERDEAD;
  return queue->event_descriptor();
}

}  // extern "C"
