/* load: picks and reports without a pause until SIGTERM, then says how many there were, how many of
 * them the library answered without the daemon, how many failed, and how long the longest took.
 * What boot.sh runs through restarts, an upgrade and a hang of the daemon. */
#include <pickd/pickd.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

static volatile sig_atomic_t ended;

static void end(int number) {
  (void)number;
  ended = 1;
}

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

int main(void) {
  unsigned long picks = 0, degraded = 0, failed = 0;
  double longest_ms = 0;
  pickd_client* client = NULL;
  pickd_result* result = pickd_result_new();
  pickd_request request = PICKD_REQUEST_INIT;
  pickd_slice prompt = pickd_string("the same prompt again and again");
  int error = pickd_open(NULL, &client);
  signal(SIGTERM, end);
  if (error != 0) {
    fprintf(stderr, "load: %s\n", pickd_strerror(error));
    return 1;
  }
  printf("started\n");
  fflush(stdout);
  request.text = &prompt;
  request.text_count = 1;
  while (!ended) {
    const double begun_ms = now_ms();
    error = pickd_pick(client, &request, 100000, result); /* at most 100 ms */
    if (now_ms() - begun_ms > longest_ms) longest_ms = now_ms() - begun_ms;
    ++picks;
    if (error != 0) {
      ++failed;
      fprintf(stderr, "load: %s\n", pickd_strerror(error));
      continue;
    }
    if (pickd_result_flags(result) & PICKD_RESULT_DEGRADED) ++degraded;
    {
      pickd_report_info report = PICKD_REPORT_INIT;
      report.ticket = pickd_result_ticket(result);
      report.kind = PICKD_REPORT_DONE;
      pickd_report(client, &report, 0);
    }
  }
  printf("%lu picks, %lu degraded, %lu failed, longest %.1f ms\n", picks, degraded, failed,
         longest_ms);
  pickd_result_free(result);
  pickd_close(client);
  return failed != 0;
}
