/* What Go calls in place of libpickd's queue functions: requests and answers lie flat in C memory,
 * so that a pick costs one call in and a share of one call out, and no Go pointer is kept on this
 * side. Knows nothing of goroutines: one caller at a time, except where said otherwise. */
#ifndef PICKDGO_BRIDGE_H
#define PICKDGO_BRIDGE_H

#include <stddef.h>
#include <stdint.h>

#include <pickd/pickd.h>

enum {
  PICKDGO_ENDPOINTS_MAX = 8,
  PICKDGO_BATCH = 64,       /* answers that one call hands over at most */
  PICKDGO_NAME_BYTES = 128, /* of an endpoint, and more than it may have */
  PICKDGO_TEXT_BYTES =
      8 * 256 /* addresses and names of one answer, at most: see limits of pickd.h */
};

/* As pickd_slice; the address is a number to Go, so that storing it involves no collector. */
typedef struct pickdgo_slice {
  uintptr_t data;
  size_t size;
} pickdgo_slice;

typedef struct pickdgo_extra {
  size_t offset;
  pickdgo_slice digest;
} pickdgo_extra;

typedef struct pickdgo_attribute {
  pickdgo_slice key;
  pickdgo_slice value;
} pickdgo_attribute;

/* The fields of pickd_request but prompt text and token ids, which come as arguments. */
typedef struct pickdgo_request {
  pickdgo_slice model;
  pickdgo_slice adapter;
  pickdgo_slice salt;
  pickdgo_slice session_id;
  pickdgo_slice fairness_id;
  pickdgo_slice request_id;
  uintptr_t segments; /* of pickdgo_slice: the text, when it has more than one segment */
  size_t segment_count;
  uintptr_t extras; /* of pickdgo_extra */
  size_t extra_count;
  uintptr_t subset; /* of pickdgo_slice */
  size_t subset_count;
  uintptr_t attributes; /* of pickdgo_attribute */
  size_t attribute_count;
  double slo_ttft_ms;
  double slo_itl_ms;
  int64_t timeout_us;
  int32_t priority;
  uint32_t prompt_tokens;
  uint32_t expected_output_tokens;
  uint32_t endpoints_max;
  uint32_t flags;
} pickdgo_request;

typedef struct pickdgo_endpoint {
  double score;
  uint32_t match_tokens;
  uint32_t role;
  uint16_t address_size; /* its bytes follow those before it in `text`, the name's follow them */
  uint16_t name_size;
} pickdgo_endpoint;

typedef struct pickdgo_answer {
  uint64_t user_data;
  pickd_ticket ticket;
  uint64_t hash_ns;
  double ttft_ms;
  double itl_ms;
  int32_t status;
  uint32_t reason;
  uint32_t flags;
  uint32_t prompt_tokens;
  uint32_t endpoint_count; /* the prefill endpoint, where there is one, stands behind them */
  uint32_t has_prefill;
  uint32_t has_encode; /* the one that encodes stands last */
  uint32_t text_size;
  pickdgo_endpoint endpoints[PICKDGO_ENDPOINTS_MAX + 2];
  char text[PICKDGO_TEXT_BYTES + 256];
} pickdgo_answer;

/* A report of many. */
typedef struct pickdgo_report_entry {
  uint64_t client;
  uint64_t sequence;
  uint32_t kind;
  uint32_t prompt_tokens;
  uint32_t cached_tokens;
  uint32_t output_tokens;
  uint32_t endpoint_size;
  char endpoint[PICKDGO_NAME_BYTES];
} pickdgo_report_entry;

/* A queue with the memory that its calls use. */
typedef struct pickdgo_queue {
  pickd_queue* queue;
  pickd_result* result;
  pickdgo_request request; /* filled before pickdgo_submit() */
  pickd_ticket ticket;     /* of the last pickdgo_submit() */
  int32_t unarmed;         /* the last look found an answer, so nothing will signal the next one */
  int32_t wanted;          /* another thread waits for this queue: stop looking; atomic */
  pickdgo_answer own;      /* of the last pickdgo_submit(), when it returned 1 */
  pickdgo_answer answers[PICKDGO_BATCH];
  pickdgo_report_entry reports[PICKDGO_BATCH]; /* filled before pickdgo_report_many() */
} pickdgo_queue;

int pickdgo_open(pickd_client* client, uint32_t depth, pickdgo_queue** queue);

/* Closes the queue. The memory stays, for `wanted`, until it is given to free(). */
void pickdgo_close(pickdgo_queue* queue);

/* Submits queue->request with one segment of text or with token ids; either may be absent. The
 * handle is a number for the same reason as above. Then looks for an answer for at most `look_ns`:
 * for a pick that is alone in the queue. Returns 1 when it came: it is in queue->own; else 0. May
 * look once, and return 1, when it was not asked to, but for such a pick only. */
int pickdgo_submit(uintptr_t queue, const void* text, size_t text_size, const uint32_t* token_ids,
                   size_t token_count, uint64_t user_data, int64_t look_ns);

/* Fills queue->answers with at most PICKDGO_BATCH answers; returns how many. When it is fewer the
 * queue has been asked to signal the next. `spins`: looks that often again while there is none. */
int pickdgo_poll(uintptr_t queue, uint32_t spins);

int pickdgo_cancel(uintptr_t queue, uint64_t client, uint64_t sequence);

int pickdgo_report(uintptr_t queue, uint64_t client, uint64_t sequence, uint32_t kind,
                   uint32_t prompt_tokens, uint32_t cached_tokens, uint32_t output_tokens,
                   const void* endpoint, size_t endpoint_size);

/* Hands over the first `count` of queue->reports; returns how many, fewer when the ring is full.
 * What is refused counts as handed over. */
int pickdgo_report_many(uintptr_t queue, int count);

/* pickd_report() with these values: any number of callers. */
int pickdgo_report_wait(pickd_client* client, uint64_t ticket_client, uint64_t sequence,
                        uint32_t kind, uint32_t prompt_tokens, uint32_t cached_tokens,
                        uint32_t output_tokens, const void* endpoint, size_t endpoint_size,
                        int64_t timeout_us);

#endif /* PICKDGO_BRIDGE_H */
