// See loop.h.
#include "loop.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// The daemon has to take records before there is room for more.
static void await_room(void) {
  const struct timespec pause = {0, 50000};
  nanosleep(&pause, NULL);
}

static int submit(pickd_queue* queue, const bench_prompt* prompt) {
  pickd_request request = PICKD_REQUEST_INIT;
  const pickd_slice text = {prompt->data, prompt->size};
  request.model = pickd_string("m");
  request.text = &text;
  request.text_count = 1;
  return pickd_queue_submit(queue, &request, 0, NULL);
}

// Takes what has been answered; the number of answers or a negative errno.
static int take(pickd_queue* queue, pickd_result* result) {
  int taken = 0;
  for (;;) {
    pickd_report_info report = PICKD_REPORT_INIT;
    int code = pickd_queue_poll(queue, result, NULL);
    if (code <= 0) return code < 0 ? code : taken;
    if (pickd_result_status(result) != 0) return pickd_result_status(result);
    report.ticket = pickd_result_ticket(result);
    report.kind = PICKD_REPORT_DONE;
    while ((code = pickd_queue_report(queue, &report)) == -EAGAIN) await_room();
    if (code != 0) return code;
    ++taken;
  }
}

static int64_t run(pickd_queue* queue, pickd_result* result, uint32_t outstanding,
                   const bench_prompt* prompts, uint32_t prompt_count, int64_t duration_ns) {
  struct pollfd event = {pickd_queue_event_fd(queue), POLLIN, 0};
  const int64_t until_ns = now_ns() + duration_ns;
  uint32_t free = outstanding;
  uint32_t next = 0;
  int64_t picks = 0;
  int going_on = 1;
  while (going_on || free < outstanding) {
    int taken;
    for (; going_on && free > 0; --free) {
      const int code = submit(queue, &prompts[next]);
      if (code == -EAGAIN) break;
      if (code != 0) return code;
      next = (next + 1) % prompt_count;
    }
    taken = take(queue, result);
    if (taken < 0) return taken;
    picks += taken;
    free += (uint32_t)taken;
    if (taken == 0) poll(&event, 1, 1000);
    going_on = now_ns() < until_ns;
  }
  return picks;
}

int64_t bench_loop(pickd_client* client, uint32_t outstanding, const bench_prompt* prompts,
                   uint32_t prompt_count, int64_t duration_ns) {
  pickd_queue* queue = NULL;
  pickd_result* result = pickd_result_new();
  int64_t done;
  if (result == NULL) return -ENOMEM;
  done = pickd_queue_open(client, outstanding, &queue);
  if (done == 0) done = run(queue, result, outstanding, prompts, prompt_count, duration_ns);
  pickd_queue_close(queue);
  pickd_result_free(result);
  return done;
}
