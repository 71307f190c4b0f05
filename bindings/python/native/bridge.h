/* What Python calls in place of libpickd's functions that fill a result: an answer comes packed in
 * one piece of memory, which costs one read in place of one call for each of its fields. Knows
 * nothing of Python: the interpreter's lock is not held in here. */
#ifndef PICKDPY_BRIDGE_H
#define PICKDPY_BRIDGE_H

#include <pickd/body.h>
#include <pickd/pickd.h>
#include <stddef.h>
#include <stdint.h>

enum {
  PICKDPY_ENDPOINTS_MAX = 8,
  PICKDPY_BATCH = 64,         /* answers that one call hands over at most */
  PICKDPY_ANSWER_BYTES = 4096 /* of one packed answer, at most: see the limits of pickd.h */
};

/* A packed answer: this, then its endpoints, after them who computes the prompt and who encodes
 * where there are such, then addresses and names in the same order. answer.py reads it by the same
 * order of fields. */
typedef struct pickdpy_head {
  uint32_t size; /* of all of it */
  int32_t status;
  uint64_t user_data;
  uint64_t ticket_client;
  uint64_t ticket_sequence;
  uint64_t hash_ns;
  double ttft_ms;
  double itl_ms;
  uint32_t reason;
  uint32_t flags;
  uint32_t prompt_tokens;
  uint16_t endpoint_count;
  uint8_t has_prefill;
  uint8_t has_encode;
} pickdpy_head;

typedef struct pickdpy_endpoint {
  double score;
  uint32_t match_tokens;
  uint16_t role;
  uint16_t address_size;
  uint16_t name_size;
  uint16_t reserved[3];
} pickdpy_endpoint;

/* A queue with the memory that its calls use. */
typedef struct pickdpy_queue {
  pickd_queue* queue;
  pickd_result* result;
  uint64_t client;   /* of the ticket of the last pickdpy_queue_submit() */
  uint64_t sequence; /* likewise */
  uint8_t answers[PICKDPY_BATCH * PICKDPY_ANSWER_BYTES]; /* of the last pickdpy_queue_poll() */
} pickdpy_queue;

/* pickd_pick(), with the answer packed into `answer`, of PICKDPY_ANSWER_BYTES. `result` is scratch
 * memory of the caller's. Any thread, each with memory of its own. */
int pickdpy_pick(pickd_client* client, const pickd_request* request, int64_t timeout_us,
                 pickd_result* result, void* answer);

int pickdpy_queue_open(pickd_client* client, uint32_t depth, pickdpy_queue** queue);
void pickdpy_queue_close(pickdpy_queue* queue);

/* pickd_queue_submit(); the ticket is in `client` and `sequence` of the queue then. */
int pickdpy_queue_submit(pickdpy_queue* queue, const pickd_request* request, uint64_t user_data);

/* Packs at most PICKDPY_BATCH answers into queue->answers, one after the other; returns how many,
 * or a negative errno value. When it is fewer the queue has been asked to signal the next. Looks
 * for the first one for at most `look_ns`. */
int pickdpy_queue_poll(pickdpy_queue* queue, int64_t look_ns);

/* As the functions of pickd.h whose names they have. */
int pickdpy_queue_cancel(pickdpy_queue* queue, uint64_t client, uint64_t sequence);
int pickdpy_queue_report(pickdpy_queue* queue, const pickd_report_info* report);
int pickdpy_queue_event_fd(pickdpy_queue* queue);

/* The bytes of all slices together, and their copy one after the other. */
size_t pickdpy_join_size(const pickd_slice* slices, size_t count);
void pickdpy_join(const pickd_slice* slices, size_t count, void* to);

#endif /* PICKDPY_BRIDGE_H */
