// See bridge.h.
#include "bridge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Static_assert(sizeof(pickdgo_slice) == sizeof(pickd_slice), "a pickdgo_slice is a pickd_slice");
_Static_assert(sizeof(pickdgo_extra) == sizeof(pickd_extra), "a pickdgo_extra is a pickd_extra");
_Static_assert(sizeof(pickdgo_attribute) == sizeof(pickd_attribute),
               "a pickdgo_attribute is a pickd_attribute");

int pickdgo_open(pickd_client* client, uint32_t depth, pickdgo_queue** queue) {
  pickdgo_queue* opened = calloc(1, sizeof *opened);
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

void pickdgo_close(pickdgo_queue* queue) {
  pickd_queue_close(queue->queue);
  pickd_result_free(queue->result);
}

static pickd_slice slice_of(pickdgo_slice from) {
  pickd_slice made = {(const void*)from.data, from.size};
  return made;
}

// Appends a string to the text of an answer; what has no room is left out, which the limits of the
// library exclude.
static uint16_t put_text(pickdgo_answer* answer, const char* text) {
  const size_t size = text == NULL ? 0 : strlen(text);
  if (size > sizeof answer->text - answer->text_size) return 0;
  memcpy(answer->text + answer->text_size, text == NULL ? "" : text, size);
  answer->text_size += (uint32_t)size;
  return (uint16_t)size;
}

static void flatten(const pickd_result* from, pickdgo_answer* to) {
  uint32_t at;
  to->status = pickd_result_status(from);
  to->ticket = pickd_result_ticket(from);
  to->reason = (uint32_t)pickd_result_reason(from);
  to->flags = pickd_result_flags(from);
  to->prompt_tokens = pickd_result_prompt_tokens(from);
  to->ttft_ms = pickd_result_ttft_ms(from);
  to->itl_ms = pickd_result_itl_ms(from);
  to->hash_ns = pickd_result_hash_ns(from);
  to->endpoint_count = (uint32_t)pickd_result_endpoint_count(from);
  if (to->endpoint_count > PICKDGO_ENDPOINTS_MAX) to->endpoint_count = PICKDGO_ENDPOINTS_MAX;
  to->text_size = 0;
  for (at = 0; at < to->endpoint_count; ++at) {
    pickdgo_endpoint* endpoint = &to->endpoints[at];
    endpoint->score = pickd_result_score(from, at);
    endpoint->match_tokens = pickd_result_match_tokens(from, at);
    endpoint->role = (uint32_t)pickd_result_role(from, at);
    endpoint->address_size = put_text(to, pickd_result_address(from, at));
    endpoint->name_size = put_text(to, pickd_result_name(from, at));
  }
  to->has_prefill = pickd_result_prefill_name(from) != NULL;
  to->has_encode = pickd_result_encode_name(from) != NULL;
  if (to->has_prefill) {
    pickdgo_endpoint* endpoint = &to->endpoints[to->endpoint_count];
    endpoint->score = 0;
    endpoint->match_tokens = pickd_result_prefill_match_tokens(from);
    endpoint->role = PICKD_ROLE_PREFILL;
    endpoint->address_size = put_text(to, pickd_result_prefill_address(from));
    endpoint->name_size = put_text(to, pickd_result_prefill_name(from));
  }
  if (to->has_encode) {
    pickdgo_endpoint* endpoint = &to->endpoints[to->endpoint_count + to->has_prefill];
    endpoint->score = 0;
    endpoint->match_tokens = 0;
    endpoint->role = PICKD_ROLE_ENCODE;
    endpoint->address_size = put_text(to, pickd_result_encode_address(from));
    endpoint->name_size = put_text(to, pickd_result_encode_name(from));
  }
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Each look takes back the request to be woken and makes it again, so that the daemon, which most
// often finds it taken back, has nobody to wake.
static int look(pickdgo_queue* queue, int64_t look_ns) {
  const int64_t until_ns = now_ns() + look_ns;
  do {
    const int code = pickd_queue_poll(queue->queue, queue->result, &queue->own.user_data);
    if (code < 0) return 0;  // pickdgo_poll() will find it too
    queue->unarmed = code == 1;
    if (code == 1) {
      flatten(queue->result, &queue->own);
      return 1;
    }
    // Partner: Go stores it before it waits for the lock that this thread holds.
  } while (__atomic_load_n(&queue->wanted, __ATOMIC_RELAXED) == 0 && now_ns() < until_ns);
  return 0;
}

int pickdgo_submit(uintptr_t handle, const void* text, size_t text_size, const uint32_t* token_ids,
                   size_t token_count, uint64_t user_data, int64_t look_ns) {
  pickdgo_queue* queue = (pickdgo_queue*)handle;
  const pickdgo_request* from = &queue->request;
  const pickd_slice segment = {text, text_size};
  pickd_request request = PICKD_REQUEST_INIT;
  request.model = slice_of(from->model);
  request.adapter = slice_of(from->adapter);
  request.salt = slice_of(from->salt);
  request.session_id = slice_of(from->session_id);
  request.fairness_id = slice_of(from->fairness_id);
  request.request_id = slice_of(from->request_id);
  if (from->segment_count != 0) {
    request.text = (const pickd_slice*)from->segments;
    request.text_count = from->segment_count;
  } else if (text != NULL) {
    request.text = &segment;
    request.text_count = 1;
  }
  request.token_ids = token_ids;
  request.token_count = token_count;
  request.prompt_tokens = from->prompt_tokens;
  request.extras = (const pickd_extra*)from->extras;
  request.extra_count = from->extra_count;
  request.subset = (const pickd_slice*)from->subset;
  request.subset_count = from->subset_count;
  request.attributes = (const pickd_attribute*)from->attributes;
  request.attribute_count = from->attribute_count;
  request.slo_ttft_ms = from->slo_ttft_ms;
  request.slo_itl_ms = from->slo_itl_ms;
  request.priority = from->priority;
  request.expected_output_tokens = from->expected_output_tokens;
  request.endpoints_max = from->endpoints_max;
  request.flags = from->flags;
  request.queue_timeout_us = from->timeout_us;
  int code = pickd_queue_submit(queue->queue, &request, user_data, &queue->ticket);
  return code != 0 || (look_ns == 0 && !queue->unarmed) ? code : look(queue, look_ns);
}

int pickdgo_poll(uintptr_t handle, uint32_t spins) {
  pickdgo_queue* queue = (pickdgo_queue*)handle;
  int taken = 0;
  while (taken < PICKDGO_BATCH) {
    pickdgo_answer* answer = &queue->answers[taken];
    const int code = pickd_queue_poll(queue->queue, queue->result, &answer->user_data);
    if (code < 0) return taken > 0 ? taken : code;
    if (code == 0) {
      if (taken > 0 || spins == 0) break;
      --spins;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
      continue;
    }
    flatten(queue->result, answer);
    ++taken;
  }
  return taken;
}

int pickdgo_cancel(uintptr_t handle, uint64_t client, uint64_t sequence) {
  const pickd_ticket ticket = {client, sequence};
  return pickd_queue_cancel(((pickdgo_queue*)handle)->queue, ticket);
}

static pickd_report_info report_info(uint64_t client, uint64_t sequence, uint32_t kind,
                                     uint32_t prompt_tokens, uint32_t cached_tokens,
                                     uint32_t output_tokens, const void* endpoint,
                                     size_t endpoint_size) {
  pickd_report_info report = PICKD_REPORT_INIT;
  report.ticket.client = client;
  report.ticket.sequence = sequence;
  report.kind = (pickd_report_kind)kind;
  report.prompt_tokens = prompt_tokens;
  report.cached_tokens = cached_tokens;
  report.output_tokens = output_tokens;
  report.endpoint.data = endpoint;
  report.endpoint.size = endpoint_size;
  return report;
}

int pickdgo_report(uintptr_t handle, uint64_t client, uint64_t sequence, uint32_t kind,
                   uint32_t prompt_tokens, uint32_t cached_tokens, uint32_t output_tokens,
                   const void* endpoint, size_t endpoint_size) {
  const pickd_report_info report = report_info(client, sequence, kind, prompt_tokens, cached_tokens,
                                               output_tokens, endpoint, endpoint_size);
  return pickd_queue_report(((pickdgo_queue*)handle)->queue, &report);
}

int pickdgo_report_many(uintptr_t handle, int count) {
  pickdgo_queue* queue = (pickdgo_queue*)handle;
  int at;
  for (at = 0; at < count; ++at) {
    const pickdgo_report_entry* from = &queue->reports[at];
    const pickd_report_info report =
        report_info(from->client, from->sequence, from->kind, from->prompt_tokens,
                    from->cached_tokens, from->output_tokens, from->endpoint, from->endpoint_size);
    if (pickd_queue_report(queue->queue, &report) == -EAGAIN) break;
  }
  return at;
}

int pickdgo_report_wait(pickd_client* client, uint64_t ticket_client, uint64_t sequence,
                        uint32_t kind, uint32_t prompt_tokens, uint32_t cached_tokens,
                        uint32_t output_tokens, const void* endpoint, size_t endpoint_size,
                        int64_t timeout_us) {
  const pickd_report_info report =
      report_info(ticket_client, sequence, kind, prompt_tokens, cached_tokens, output_tokens,
                  endpoint, endpoint_size);
  return pickd_report(client, &report, timeout_us);
}
