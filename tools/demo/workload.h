/* A workload: conversations with the times at which their turns are due. Read from a file of lines:
 *
 *   system TEXT                    a system prompt; they are numbered from 0 in order
 *   conversation START_MS SYSTEM   a conversation begins, with system prompt number SYSTEM
 *   turn AT_MS TOKENS TEXT         the user says TEXT at AT_MS after the start, or when the turn
 *                                  before is answered if that is later; the answer has TOKENS
 *                                  tokens
 *
 * Times are in milliseconds. Texts go to the end of the line. */
#ifndef PICKD_DEMO_WORKLOAD_H
#define PICKD_DEMO_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

struct turn {
  int64_t at_ms;
  uint32_t output_tokens;
  char* text;
};

struct conversation {
  int64_t start_ms;
  const char* system;
  struct turn* turns;
  size_t turn_count;
};

struct workload {
  char** systems;
  size_t system_count;
  struct conversation* conversations;
  size_t conversation_count;
};

/* 0, or -1 after saying on stderr which line is wrong and why. Free it in both cases. */
int workload_read(const char* path, struct workload* workload);
void workload_free(struct workload* workload);

#endif
