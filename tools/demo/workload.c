/* Reading workload files. See workload.h. */
#include "workload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One more element of `size` bytes at the end of an array that grows by doubling. */
static void* grow(void* array, size_t count, size_t size) {
  if ((count & (count - 1)) == 0) array = realloc(array, size * (count == 0 ? 1 : count * 2));
  if (array == NULL) {
    fputs("pickd-demo-load: out of memory\n", stderr);
    exit(1);
  }
  return array;
}

static const char* read_system(struct workload* workload, const char* text) {
  workload->systems = grow(workload->systems, workload->system_count, sizeof *workload->systems);
  workload->systems[workload->system_count++] = strdup(text);
  return NULL;
}

static const char* read_conversation(struct workload* workload, const char* text) {
  int64_t start_ms;
  size_t system;
  if (sscanf(text, "%" SCNd64 " %zu", &start_ms, &system) != 2) return "wants START_MS SYSTEM";
  if (system >= workload->system_count) return "names a system prompt that was not given before";
  workload->conversations =
      grow(workload->conversations, workload->conversation_count, sizeof *workload->conversations);
  struct conversation* conversation = &workload->conversations[workload->conversation_count++];
  memset(conversation, 0, sizeof *conversation);
  conversation->start_ms = start_ms;
  conversation->system = workload->systems[system];
  return NULL;
}

static const char* read_turn(struct workload* workload, const char* text) {
  struct turn turn;
  int at = 0;
  if (sscanf(text, "%" SCNd64 " %" SCNu32 " %n", &turn.at_ms, &turn.output_tokens, &at) != 2 ||
      at == 0) {
    return "wants AT_MS TOKENS TEXT";
  }
  if (turn.output_tokens == 0) return "wants an answer of at least one token";
  if (workload->conversation_count == 0) return "stands before every conversation";
  struct conversation* conversation = &workload->conversations[workload->conversation_count - 1];
  conversation->turns =
      grow(conversation->turns, conversation->turn_count, sizeof *conversation->turns);
  turn.text = strdup(text + at);
  conversation->turns[conversation->turn_count++] = turn;
  return NULL;
}

int workload_read(const char* path, struct workload* workload) {
  static const struct {
    const char* word;
    const char* (*read)(struct workload*, const char*);
  } kLines[] = {
      {"system ", read_system}, {"conversation ", read_conversation}, {"turn ", read_turn}};

  memset(workload, 0, sizeof *workload);
  FILE* file = fopen(path, "re");
  if (file == NULL) {
    fprintf(stderr, "pickd-demo-load: %s: %m\n", path);
    return -1;
  }
  char* line = NULL;
  size_t capacity = 0;
  ssize_t size;
  int number = 0;
  const char* mistake = NULL;
  while (mistake == NULL && (size = getline(&line, &capacity, file)) >= 0) {
    number++;
    if (size > 0 && line[size - 1] == '\n') line[size - 1] = '\0';
    mistake = "must begin with system, conversation or turn";
    for (size_t i = 0; i < sizeof kLines / sizeof *kLines; i++) {
      const size_t length = strlen(kLines[i].word);
      if (strncmp(line, kLines[i].word, length) == 0)
        mistake = kLines[i].read(workload, line + length);
    }
  }
  free(line);
  fclose(file);
  if (mistake != NULL) fprintf(stderr, "pickd-demo-load: %s:%d: %s\n", path, number, mistake);
  return mistake == NULL ? 0 : -1;
}

void workload_free(struct workload* workload) {
  for (size_t i = 0; i < workload->conversation_count; i++) {
    struct conversation* conversation = &workload->conversations[i];
    for (size_t t = 0; t < conversation->turn_count; t++) free(conversation->turns[t].text);
    free(conversation->turns);
  }
  for (size_t i = 0; i < workload->system_count; i++) free(workload->systems[i]);
  free(workload->conversations);
  free(workload->systems);
  memset(workload, 0, sizeof *workload);
}
