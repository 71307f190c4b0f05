/* Attempts: what a gateway remembers of failed endpoints, and the request log: a line on stdout for
 * everything that happens to a request. Knows nothing of pickd or HTTP.
 *
 *   send US REQUEST ENDPOINT ATTEMPT     a request goes out; the first attempt is 1
 *   fail US REQUEST ENDPOINT ATTEMPT WHY it failed there
 *   done US REQUEST ENDPOINT ATTEMPT     it was answered to the end
 *   lost US REQUEST                      nobody answered it
 *
 * US is CLOCK_MONOTONIC in microseconds, REQUEST is CONVERSATION.TURN, WHY goes to the end of the
 * line. */
#ifndef PICKD_DEMO_ATTEMPTS_H
#define PICKD_DEMO_ATTEMPTS_H

#include <stddef.h>
#include <stdint.h>

struct failed_endpoint {
  char name[128];
  int64_t last_us;
};

struct attempts {
  int log; /* whether lines are written */
  struct failed_endpoint* failed;
  size_t failed_count;
};

/* Of which request a line is. */
struct attempt {
  size_t conversation;
  size_t turn;
  const char* endpoint;
  unsigned number;
};

void attempts_sent(struct attempts* attempts, int64_t now_us, const struct attempt* attempt);
void attempts_done(struct attempts* attempts, int64_t now_us, const struct attempt* attempt);
void attempts_lost(struct attempts* attempts, int64_t now_us, const struct attempt* attempt);
/* Also remembered for attempts_failed_since(). */
void attempts_failed(struct attempts* attempts, int64_t now_us, const struct attempt* attempt,
                     const char* why);
/* Whether a request failed at this endpoint at that time or later. */
int attempts_failed_since(const struct attempts* attempts, const char* endpoint, int64_t since_us);
void attempts_free(struct attempts* attempts);

#endif
