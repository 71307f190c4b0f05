// The C client of tests/interop_test.py: runs the steps of scenario.txt, which says what they mean.
//
//   interop_client SOCKET SCRIPT REPETITIONS blocking|queue
//
// Prints "ready", waits for a line, runs the script so often and prints a line for each step. With
// "queue" the picks go through the asynchronous queue: neighbours in the script are outstanding
// together.
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pickd/pickd.h"

enum { kStepsMax = 100, kItemsMax = 16, kLineMax = 2048 };

typedef struct Step {
  int is_pick;
  char words[kLineMax];  // cut at blanks, zero-terminated; what follows points into it
  const char* name;
  pickd_request request;
  pickd_report_info report;
  const char* kind;
  pickd_slice text[kItemsMax];
  pickd_slice subset[kItemsMax];
  pickd_extra extras[kItemsMax];
  pickd_attribute attributes[kItemsMax];
  // Of a pick, when it was answered.
  pickd_ticket ticket;
  char said[512];
} Step;

static Step steps[kStepsMax];
static size_t step_count;

static void fail(const char* what, int code) {
  fprintf(stderr, "interop_client: %s: %s\n", what, pickd_strerror(code));
  exit(1);
}

static void* need(void* memory) {
  if (memory == NULL) fail("memory", -ENOMEM);
  return memory;
}

static uint32_t next(uint32_t* x) { return *x = *x * 1103515245u + 12345u; }

// ---- Reading the script ------------------------------------------------------------------------

static void read_text(Step* step, char* value) {
  uint32_t x = (uint32_t)strtoul(value, &value, 10);
  const size_t size = strtoul(value + 1, &value, 10);
  char* bytes = need(malloc(size));
  size_t at, begin = 0;
  for (at = 0; at < size; ++at) bytes[at] = (char)('a' + (next(&x) >> 16) % 26);
  while (*value != '\0') {
    const size_t cut = strtoul(value + 1, &value, 10);
    step->text[step->request.text_count++] = (pickd_slice){bytes + begin, cut - begin};
    begin = cut;
  }
  step->text[step->request.text_count++] = (pickd_slice){bytes + begin, size - begin};
  step->request.text = step->text;
}

static void read_ids(Step* step, char* value) {
  uint32_t x = (uint32_t)strtoul(value, &value, 10);
  const size_t count = strtoul(value + 1, NULL, 10);
  uint32_t* ids = need(malloc(count * sizeof *ids));
  size_t at;
  for (at = 0; at < count; ++at) ids[at] = next(&x) >> 8;
  step->request.token_ids = ids;
  step->request.token_count = count;
}

static void read_extra(Step* step, char* value) {
  const size_t offset = strtoul(value, &value, 10);
  uint32_t x = (uint32_t)strtoul(value + 1, NULL, 10);
  uint8_t* digest = need(malloc(32));
  size_t at;
  for (at = 0; at < 32; ++at) digest[at] = (uint8_t)(next(&x) >> 16);
  step->extras[step->request.extra_count++] = (pickd_extra){offset, {digest, 32}};
  step->request.extras = step->extras;
}

static void read_subset(Step* step, char* value) {
  char* name;
  step->request.flags |= PICKD_REQUEST_SUBSET;
  for (name = strtok(value, ","); name != NULL; name = strtok(NULL, ",")) {
    step->subset[step->request.subset_count++] = pickd_string(name);
  }
  step->request.subset = step->subset;
}

static void read_attribute(Step* step, char* value) {
  char* colon = strchr(value, ':');
  *colon = '\0';
  step->attributes[step->request.attribute_count++] =
      (pickd_attribute){pickd_string(value), pickd_string(colon + 1)};
  step->request.attributes = step->attributes;
}

static void read_pick_field(Step* step, const char* key, char* value) {
  pickd_request* request = &step->request;
  if (strcmp(key, "model") == 0)
    request->model = pickd_string(value);
  else if (strcmp(key, "adapter") == 0)
    request->adapter = pickd_string(value);
  else if (strcmp(key, "salt") == 0)
    request->salt = pickd_string(value);
  else if (strcmp(key, "session") == 0)
    request->session_id = pickd_string(value);
  else if (strcmp(key, "fairness") == 0)
    request->fairness_id = pickd_string(value);
  else if (strcmp(key, "request") == 0)
    request->request_id = pickd_string(value);
  else if (strcmp(key, "text") == 0)
    read_text(step, value);
  else if (strcmp(key, "ids") == 0)
    read_ids(step, value);
  else if (strcmp(key, "extra") == 0)
    read_extra(step, value);
  else if (strcmp(key, "subset") == 0)
    read_subset(step, value);
  else if (strcmp(key, "attribute") == 0)
    read_attribute(step, value);
  else if (strcmp(key, "prompt_tokens") == 0)
    request->prompt_tokens = (uint32_t)atoi(value);
  else if (strcmp(key, "expected") == 0)
    request->expected_output_tokens = (uint32_t)atoi(value);
  else if (strcmp(key, "endpoints_max") == 0)
    request->endpoints_max = (uint32_t)atoi(value);
  else if (strcmp(key, "priority") == 0)
    request->priority = atoi(value);
  else if (strcmp(key, "slo_ttft_ms") == 0)
    request->slo_ttft_ms = atof(value);
  else if (strcmp(key, "slo_itl_ms") == 0)
    request->slo_itl_ms = atof(value);
  else if (strcmp(key, "stream") == 0)
    request->flags |= PICKD_REQUEST_STREAM;
  else if (strcmp(key, "dry_run") == 0)
    request->flags |= PICKD_REQUEST_DRY_RUN;
  else
    fail(key, -EINVAL);
}

static void read_report_field(Step* step, const char* key, const char* value) {
  pickd_report_info* report = &step->report;
  if (strcmp(key, "prompt") == 0)
    report->prompt_tokens = (uint32_t)atoi(value);
  else if (strcmp(key, "cached") == 0)
    report->cached_tokens = (uint32_t)atoi(value);
  else if (strcmp(key, "output") == 0)
    report->output_tokens = (uint32_t)atoi(value);
  else if (strcmp(key, "endpoint") == 0)
    report->endpoint = pickd_string(value);
  else
    fail(key, -EINVAL);
}

static pickd_report_kind kind_of(const char* word) {
  static const char* const kinds[] = {"first_token", "progress", "done",
                                      "failed",      "fallback", "cancelled"};
  size_t at;
  for (at = 0; at < sizeof kinds / sizeof kinds[0]; ++at) {
    if (strcmp(word, kinds[at]) == 0) return (pickd_report_kind)(at + 1);
  }
  fail(word, -EINVAL);
  return PICKD_REPORT_DONE;
}

// Cuts a line into words; how many there are before "->".
static size_t cut_words(char* line, char* words[], size_t words_max) {
  size_t count = 0;
  char* word;
  char* rest = NULL;
  for (word = strtok_r(line, " \n", &rest); word != NULL && strcmp(word, "->") != 0;
       word = strtok_r(NULL, " \n", &rest)) {
    if (count == words_max) fail("too many words", -E2BIG);
    words[count++] = word;
  }
  return count;
}

static void read_script(const char* path) {
  char line[kLineMax];
  FILE* file = fopen(path, "r");
  if (file == NULL) fail(path, -errno);
  while (fgets(line, sizeof line, file) != NULL) {
    Step* step = &steps[step_count];
    char* words[40];
    size_t count, at;
    if (line[0] == '#' || line[0] == '\n') continue;
    if (step_count == kStepsMax) fail("too many steps", -E2BIG);
    memcpy(step->words, line, sizeof line);
    count = cut_words(step->words, words, sizeof words / sizeof words[0]);
    step->is_pick = strcmp(words[0], "pick") == 0;
    step->name = words[1];
    step->request = (pickd_request)PICKD_REQUEST_INIT;
    step->report = (pickd_report_info)PICKD_REPORT_INIT;
    if (!step->is_pick) {
      step->kind = words[2];
      step->report.kind = kind_of(words[2]);
    }
    for (at = step->is_pick ? 2 : 3; at < count; ++at) {
      char* equals = strchr(words[at], '=');
      if (equals == NULL) fail(words[at], -EINVAL);
      *equals = '\0';
      if (step->is_pick)
        read_pick_field(step, words[at], equals + 1);
      else
        read_report_field(step, words[at], equals + 1);
    }
    ++step_count;
  }
  fclose(file);
}

// ---- Running it --------------------------------------------------------------------------------

static void say_refused(Step* step, int status) {
  snprintf(step->said, sizeof step->said, "pick %s status=%d", step->name, status);
}

static void say_picked(Step* step, const pickd_result* result) {
  const uint32_t flags = pickd_result_flags(result);
  step->ticket = pickd_result_ticket(result);
  snprintf(step->said, sizeof step->said,
           "pick %s status=0 winner=%s address=%s match=%u prompt_tokens=%u cut=%d degraded=%d "
           "endpoints=%zu",
           step->name, pickd_result_name(result, 0), pickd_result_address(result, 0),
           (unsigned)pickd_result_match_tokens(result, 0),
           (unsigned)pickd_result_prompt_tokens(result), (flags & PICKD_RESULT_CUT) != 0,
           (flags & PICKD_RESULT_DEGRADED) != 0, pickd_result_endpoint_count(result));
}

static void say_answer(Step* step, const pickd_result* result) {
  const int status = pickd_result_status(result);
  if (status == 0)
    say_picked(step, result);
  else
    say_refused(step, status);
}

static void await(pickd_queue* queue, pickd_result* result, size_t* outstanding) {
  struct pollfd event = {pickd_queue_event_fd(queue), POLLIN, 0};
  while (*outstanding > 0) {
    uint64_t at;
    const int code = pickd_queue_poll(queue, result, &at);
    if (code < 0) fail("poll", code);
    if (code == 1) {
      say_answer(&steps[at], result);
      --*outstanding;
    } else {
      poll(&event, 1, -1);
    }
  }
}

static void report(pickd_client* client, const Step* step) {
  pickd_report_info info = step->report;
  size_t at;
  for (at = 0; at < step_count; ++at) {
    if (steps[at].is_pick && strcmp(steps[at].name, step->name) == 0)
      info.ticket = steps[at].ticket;
  }
  printf("report %s %s status=%d\n", step->name, step->kind,
         pickd_report(client, &info, PICKD_NO_DEADLINE));
}

static void run(pickd_client* client, pickd_queue* queue, pickd_result* result) {
  size_t at, outstanding = 0;
  for (at = 0; at < step_count; ++at) {
    Step* step = &steps[at];
    if (!step->is_pick) {
      await(queue, result, &outstanding);
      report(client, step);
    } else if (queue == NULL) {
      pickd_pick(client, &step->request, PICKD_NO_DEADLINE, result);
      say_answer(step, result);
      puts(step->said);
    } else {
      int code;
      while ((code = pickd_queue_submit(queue, &step->request, at, NULL)) == -EAGAIN) {
        await(queue, result, &outstanding);
      }
      outstanding += code == 0;
      if (code != 0) say_refused(step, code);
      if (at + 1 == step_count || !steps[at + 1].is_pick) {
        size_t first = at;
        await(queue, result, &outstanding);
        while (first > 0 && steps[first - 1].is_pick) --first;
        for (; first <= at; ++first) puts(steps[first].said);
      }
    }
  }
}

int main(int argc, char** argv) {
  pickd_options options = PICKD_OPTIONS_INIT;
  pickd_client* client = NULL;
  pickd_queue* queue = NULL;
  pickd_result* result = pickd_result_new();
  char line[16];
  int code, times;
  if (argc != 5 || result == NULL) fail("SOCKET SCRIPT REPETITIONS blocking|queue", -EINVAL);
  read_script(argv[2]);
  options.socket_path = argv[1];
  if ((code = pickd_open(&options, &client)) != 0) fail("open", code);
  if (strcmp(argv[4], "queue") == 0) {
    if ((code = pickd_queue_open(client, 0, &queue)) != 0) fail("queue", code);
  }
  puts("ready");
  fflush(stdout);
  if (fgets(line, sizeof line, stdin) == NULL) return 1;
  for (times = atoi(argv[3]); times > 0; --times) run(client, queue, result);
  pickd_queue_close(queue);
  pickd_result_free(result);
  pickd_close(client);
  return 0;
}
