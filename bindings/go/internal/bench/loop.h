/* The yardstick: the same picks by C, one thread and one event loop, as a gateway in C has it. */
#ifndef PICKDGO_BENCH_LOOP_H
#define PICKDGO_BENCH_LOOP_H

#include <pickd/pickd.h>
#include <stdint.h>

typedef struct bench_prompt {
  const char* data;
  size_t size;
} bench_prompt;

/* Keeps `outstanding` picks outstanding for so long, each reported done as it is answered, waiting
 * on the queue's descriptor whenever there is no answer. Returns the number of picks or a negative
 * errno. */
int64_t bench_loop(pickd_client* client, uint32_t outstanding, const bench_prompt* prompts,
                   uint32_t prompt_count, int64_t duration_ns);

#endif /* PICKDGO_BENCH_LOOP_H */
