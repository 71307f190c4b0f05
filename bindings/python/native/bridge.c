// See bridge.h.
#include "bridge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Static_assert(sizeof(pickdpy_head) == 72, "answer.py reads heads of 72 bytes");
_Static_assert(sizeof(pickdpy_endpoint) == 24, "answer.py reads endpoints of 24 bytes");

// What a packed answer has room for is more than the limits of pickd.h let it need: ten addresses
// and ten names of 127 bytes.
enum { STAGES_MAX = 2 };  // who computes the prompt, and who encodes
_Static_assert(sizeof(pickdpy_head) +
                       (PICKDPY_ENDPOINTS_MAX + STAGES_MAX) * (sizeof(pickdpy_endpoint) + 254) <
                   PICKDPY_ANSWER_BYTES,
               "an answer fits");

static uint8_t* put_text(uint8_t* at, const char* text, uint16_t* size) {
  const size_t bytes = text == NULL ? 0 : strnlen(text, 127);
  memcpy(at, text == NULL ? "" : text, bytes);
  *size = (uint16_t)bytes;
  return at + bytes;
}

// Packs a result; returns the bytes it takes, which keep the next one aligned.
static size_t pack(const pickd_result* from, uint64_t user_data, uint8_t* to) {
  pickdpy_head head;
  pickdpy_endpoint endpoints[PICKDPY_ENDPOINTS_MAX + STAGES_MAX];
  const pickd_ticket ticket = pickd_result_ticket(from);
  size_t count = pickd_result_endpoint_count(from);
  size_t at, all;
  uint8_t* text;
  if (count > PICKDPY_ENDPOINTS_MAX) count = PICKDPY_ENDPOINTS_MAX;
  memset(endpoints, 0, sizeof endpoints);
  head.status = pickd_result_status(from);
  head.user_data = user_data;
  head.ticket_client = ticket.client;
  head.ticket_sequence = ticket.sequence;
  head.hash_ns = pickd_result_hash_ns(from);
  head.ttft_ms = pickd_result_ttft_ms(from);
  head.itl_ms = pickd_result_itl_ms(from);
  head.reason = (uint32_t)pickd_result_reason(from);
  head.flags = pickd_result_flags(from);
  head.prompt_tokens = pickd_result_prompt_tokens(from);
  head.endpoint_count = (uint16_t)count;
  head.has_prefill = pickd_result_prefill_name(from) != NULL;
  head.has_encode = pickd_result_encode_name(from) != NULL;
  all = count + head.has_prefill + head.has_encode;
  text = to + sizeof head + all * sizeof endpoints[0];
  for (at = 0; at < count; ++at) {
    pickdpy_endpoint* endpoint = &endpoints[at];
    endpoint->score = pickd_result_score(from, at);
    endpoint->match_tokens = pickd_result_match_tokens(from, at);
    endpoint->role = (uint16_t)pickd_result_role(from, at);
    text = put_text(text, pickd_result_address(from, at), &endpoint->address_size);
    text = put_text(text, pickd_result_name(from, at), &endpoint->name_size);
  }
  if (head.has_prefill) {
    pickdpy_endpoint* endpoint = &endpoints[count];
    endpoint->match_tokens = pickd_result_prefill_match_tokens(from);
    endpoint->role = PICKD_ROLE_PREFILL;
    text = put_text(text, pickd_result_prefill_address(from), &endpoint->address_size);
    text = put_text(text, pickd_result_prefill_name(from), &endpoint->name_size);
  }
  if (head.has_encode) {
    pickdpy_endpoint* endpoint = &endpoints[all - 1];
    endpoint->role = PICKD_ROLE_ENCODE;
    text = put_text(text, pickd_result_encode_address(from), &endpoint->address_size);
    text = put_text(text, pickd_result_encode_name(from), &endpoint->name_size);
  }
  head.size = (uint32_t)(((size_t)(text - to) + 7) & ~(size_t)7);
  memcpy(to, &head, sizeof head);
  memcpy(to + sizeof head, endpoints, all * sizeof endpoints[0]);
  return head.size;
}

int pickdpy_pick(pickd_client* client, const pickd_request* request, int64_t timeout_us,
                 pickd_result* result, void* answer) {
  const int code = pickd_pick(client, request, timeout_us, result);
  if (code == 0) pack(result, 0, answer);
  return code;
}

int pickdpy_queue_open(pickd_client* client, uint32_t depth, pickdpy_queue** queue) {
  pickdpy_queue* opened = calloc(1, sizeof *opened);
  int code;
  if (opened == NULL) return -ENOMEM;
  opened->result = pickd_result_new();
  code = opened->result == NULL ? -ENOMEM : pickd_queue_open(client, depth, &opened->queue);
  if (code != 0) {
    pickd_result_free(opened->result);
    free(opened);
    return code;
  }
  *queue = opened;
  return 0;
}

void pickdpy_queue_close(pickdpy_queue* queue) {
  if (queue == NULL) return;
  pickd_queue_close(queue->queue);
  pickd_result_free(queue->result);
  free(queue);
}

int pickdpy_queue_submit(pickdpy_queue* queue, const pickd_request* request, uint64_t user_data) {
  pickd_ticket ticket = {0, 0};
  const int code = pickd_queue_submit(queue->queue, request, user_data, &ticket);
  if (code == 0) {
    queue->client = ticket.client;
    queue->sequence = ticket.sequence;
  }
  return code;
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int pickdpy_queue_poll(pickdpy_queue* queue, int64_t look_ns) {
  const int64_t until_ns = look_ns > 0 ? now_ns() + look_ns : 0;
  uint8_t* at = queue->answers;
  int taken = 0;
  while (taken < PICKDPY_BATCH) {
    uint64_t user_data = 0;
    const int code = pickd_queue_poll(queue->queue, queue->result, &user_data);
    if (code < 0) return taken > 0 ? taken : code;
    if (code == 1) {
      at += pack(queue->result, user_data, at);
      ++taken;
    } else if (taken > 0 || look_ns <= 0 || now_ns() >= until_ns) {
      break;
    }
  }
  return taken;
}

int pickdpy_queue_cancel(pickdpy_queue* queue, uint64_t client, uint64_t sequence) {
  const pickd_ticket ticket = {client, sequence};
  return pickd_queue_cancel(queue->queue, ticket);
}

int pickdpy_queue_report(pickdpy_queue* queue, const pickd_report_info* report) {
  return pickd_queue_report(queue->queue, report);
}

int pickdpy_queue_event_fd(pickdpy_queue* queue) { return pickd_queue_event_fd(queue->queue); }

size_t pickdpy_join_size(const pickd_slice* slices, size_t count) {
  size_t size = 0;
  size_t at;
  for (at = 0; at < count; ++at) size += slices[at].size;
  return size;
}

void pickdpy_join(const pickd_slice* slices, size_t count, void* to) {
  uint8_t* end = to;
  size_t at;
  for (at = 0; at < count; ++at) {
    if (slices[at].size > 0) memcpy(end, slices[at].data, slices[at].size);
    end += slices[at].size;
  }
}
