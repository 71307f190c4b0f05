/* What a gateway remembers of failed endpoints, and its request log; see attempts.h. */
#include "attempts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void line(const struct attempts* attempts, const char* what, int64_t now_us,
                 const struct attempt* attempt, const char* why) {
  if (!attempts->log) return;
  printf("%s %" PRId64 " %zu.%zu %s %u%s%s\n", what, now_us, attempt->conversation, attempt->turn,
         attempt->endpoint, attempt->number, why == NULL ? "" : " ", why == NULL ? "" : why);
  fflush(stdout);
}

void attempts_sent(struct attempts* attempts, int64_t now_us, const struct attempt* attempt) {
  line(attempts, "send", now_us, attempt, NULL);
}

void attempts_done(struct attempts* attempts, int64_t now_us, const struct attempt* attempt) {
  line(attempts, "done", now_us, attempt, NULL);
}

void attempts_lost(struct attempts* attempts, int64_t now_us, const struct attempt* attempt) {
  if (!attempts->log) return;
  printf("lost %" PRId64 " %zu.%zu\n", now_us, attempt->conversation, attempt->turn);
  fflush(stdout);
}

void attempts_failed(struct attempts* attempts, int64_t now_us, const struct attempt* attempt,
                     const char* why) {
  line(attempts, "fail", now_us, attempt, why);
  for (size_t i = 0; i < attempts->failed_count; i++) {
    if (strcmp(attempts->failed[i].name, attempt->endpoint) != 0) continue;
    attempts->failed[i].last_us = now_us;
    return;
  }
  struct failed_endpoint* grown =
      realloc(attempts->failed, (attempts->failed_count + 1) * sizeof *grown);
  if (grown == NULL) return; /* not remembered: it may be tried once more */
  attempts->failed = grown;
  struct failed_endpoint* added = &grown[attempts->failed_count++];
  snprintf(added->name, sizeof added->name, "%s", attempt->endpoint);
  added->last_us = now_us;
}

int attempts_failed_since(const struct attempts* attempts, const char* endpoint, int64_t since_us) {
  for (size_t i = 0; i < attempts->failed_count; i++) {
    if (strcmp(attempts->failed[i].name, endpoint) == 0)
      return attempts->failed[i].last_us >= since_us;
  }
  return 0;
}

void attempts_free(struct attempts* attempts) { free(attempts->failed); }
