/* pickd-demo-load: a small gateway under load. Plays the conversations of a workload file: asks
 * pickd for an endpoint for every turn, streams the completion from it with libcurl, and reports
 * first token, usage and failures back. Uses pickd.h and libcurl only; one thread.
 *
 * Prints one line for every turn that ended, and one at the end:
 *
 *   turn ENDPOINT STATUS PROMPT CACHED OUTPUT TTFT_US PICK_US FALLBACKS ITL_US,ITL_US,...
 *   picks COUNT SECONDS
 *
 * STATUS is "ok" or a word for what failed; PROMPT, CACHED and OUTPUT are the tokens of the
 * engine's usage; TTFT counts from when the turn was due, with the pick in it; PICK is the duration
 * of the call pickd_pick(). `picks` says how many picks, each with a report, one caller made one
 * after another in how many seconds. */
#include <curl/curl.h>
#include <inttypes.h>
#include <pickd/pickd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attempts.h"
#include "load_options.h"
#include "sse.h"
#include "workload.h"

/* A pick that takes longer than this is a failed turn. */
#define PICK_TIMEOUT_US 1000000
/* With --retry: a request is given up after so many attempts. */
#define ATTEMPTS_MAX 10
#define STALL_LOOK_MS 50
/* Turns under way at the end may take this long to finish. */
#define DRAIN_US 30000000
/* Both are eight bytes: whole pseudo-tokens of enginesim. */
#define USER_MARK "\nUser:  "
#define ANSWER_MARK "\nAnswer:"

enum phase { WAITING, STREAMING, ENDED };

/* One conversation, and the turn of it that is under way. */
struct talk {
  const struct conversation* plan;
  enum phase phase;
  size_t turn;
  int64_t start_us;
  int64_t due_us;       /* when the turn is to be sent */
  struct buffer prompt; /* system prompt, what was said, and what was answered so far */

  CURL* easy;
  struct buffer body;
  struct buffer answer;
  struct sse sse;
  pickd_result* result;
  size_t endpoint;   /* of the result: 0 the winner, then fallbacks */
  int64_t alive_us;  /* when the attempt began, or its newest byte came */
  unsigned attempt;  /* of the turn; the first is 1 */
  int64_t picked_us; /* when the result was made */
  int64_t pick_us;
  int64_t first_us; /* 0: no token yet */
  int64_t last_us;
  struct sse_event usage;
  int done;
  struct buffer gaps; /* uint32_t: microseconds between tokens */
};

struct driver {
  pickd_client* client;
  CURLM* multi;
  struct curl_slist* headers;
  const char* model;
  struct talk* talks;
  size_t talk_count;
  size_t streaming;
  int64_t end_us;    /* no turn begins after this */
  int retry;         /* a turn that fails is tried elsewhere whatever was answered of it */
  int64_t stall_us;  /* without a byte for so long an attempt has failed; 0: no limit */
  int64_t looked_us; /* when stalled attempts were looked for */
  struct attempts attempts;
};

static int64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static void die(const char* what, const char* why) {
  fprintf(stderr, "pickd-demo-load: %s: %s\n", what, why);
  exit(1);
}

static const struct turn* turn_of(const struct talk* talk) {
  return &talk->plan->turns[talk->turn];
}

/* ---- Picks and reports
 * --------------------------------------------------------------------------- */

static struct attempt attempt_of(const struct driver* driver, const struct talk* talk) {
  const char* name = pickd_result_name(talk->result, talk->endpoint);
  const struct attempt attempt = {(size_t)(talk - driver->talks), talk->turn,
                                  name == NULL ? "-" : name, talk->attempt};
  return attempt;
}

static int pick(struct driver* driver, struct talk* talk, uint32_t output_tokens) {
  pickd_slice text = {talk->prompt.data, talk->prompt.size};
  pickd_request request = PICKD_REQUEST_INIT;
  request.model = pickd_string(driver->model);
  request.text = &text;
  request.text_count = 1;
  request.expected_output_tokens = output_tokens;
  request.flags = PICKD_REQUEST_STREAM;
  return pickd_pick(driver->client, &request, PICK_TIMEOUT_US, talk->result);
}

/* A report that finds no room is lost, as it may be in any gateway: the reservation ends with its
 * lease. */
static int report(struct driver* driver, struct talk* talk, pickd_report_kind kind) {
  pickd_report_info info = PICKD_REPORT_INIT;
  info.ticket = pickd_result_ticket(talk->result);
  info.kind = kind;
  if (kind == PICKD_REPORT_DONE && talk->usage.has_usage) {
    info.prompt_tokens = talk->usage.prompt_tokens;
    info.cached_tokens = talk->usage.cached_tokens;
    info.output_tokens = talk->usage.output_tokens;
  }
  if (kind == PICKD_REPORT_FALLBACK) {
    info.endpoint = pickd_string(pickd_result_name(talk->result, talk->endpoint));
  }
  return pickd_report(driver->client, &info, 0);
}

/* ---- Streaming
 * ----------------------------------------------------------------------------------- */

static void on_event(struct driver* driver, struct talk* talk, const struct sse_event* event) {
  if (event->text_size > 0) {
    const int64_t now = now_us();
    if (talk->first_us == 0) {
      talk->first_us = now;
      report(driver, talk, PICKD_REPORT_FIRST_TOKEN);
    } else {
      const uint32_t gap = (uint32_t)(now - talk->last_us);
      buffer_append(&talk->gaps, &gap, sizeof gap);
    }
    talk->last_us = now;
    buffer_append(&talk->answer, event->text, event->text_size);
  }
  if (event->has_usage) talk->usage = *event;
  if (event->done) talk->done = 1;
}

struct stream {
  struct driver* driver;
  struct talk* talk;
};

static size_t on_bytes(char* data, size_t size, size_t count, void* user) {
  struct stream* stream = user;
  long status = 0;
  stream->talk->alive_us = now_us();
  curl_easy_getinfo(stream->talk->easy, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) return count * size; /* an error page: on_ended() sees the status */
  sse_feed(&stream->talk->sse, data, size * count);
  struct sse_event event;
  while (sse_next(&stream->talk->sse, &event)) on_event(stream->driver, stream->talk, &event);
  return count * size;
}

static void send_request(struct driver* driver, struct talk* talk) {
  char url[256];
  const char* address = pickd_result_address(talk->result, talk->endpoint);
  snprintf(url, sizeof url, "%s%s/v1/completions", strstr(address, "://") == NULL ? "http://" : "",
           address);
  curl_easy_setopt(talk->easy, CURLOPT_URL, url);
  curl_easy_setopt(talk->easy, CURLOPT_POSTFIELDS, talk->body.data);
  curl_easy_setopt(talk->easy, CURLOPT_POSTFIELDSIZE, (long)talk->body.size);
  sse_reset(&talk->sse);
  talk->attempt++;
  talk->alive_us = now_us();
  const struct attempt attempt = attempt_of(driver, talk);
  attempts_sent(&driver->attempts, now_us(), &attempt);
  curl_multi_add_handle(driver->multi, talk->easy);
}

static void write_body(struct driver* driver, struct talk* talk) {
  char members[160];
  talk->body.size = 0;
  buffer_text(&talk->body, "{\"model\":\"");
  buffer_json(&talk->body, driver->model, strlen(driver->model));
  snprintf(members, sizeof members,
           "\",\"max_tokens\":%" PRIu32
           ",\"ignore_eos\":true,\"stream\":true,"
           "\"stream_options\":{\"include_usage\":true},\"prompt\":\"",
           turn_of(talk)->output_tokens);
  buffer_text(&talk->body, members);
  buffer_json(&talk->body, talk->prompt.data, talk->prompt.size);
  buffer_text(&talk->body, "\"}");
}

/* ---- Turns
 * --------------------------------------------------------------------------------------- */

static void print_turn(const struct talk* talk, const char* status) {
  const char* name = pickd_result_name(talk->result, talk->endpoint);
  printf("turn %s %s %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRId64 " %" PRId64 " %zu ",
         name == NULL ? "-" : name, status, talk->usage.prompt_tokens, talk->usage.cached_tokens,
         talk->usage.output_tokens, talk->first_us == 0 ? 0 : talk->first_us - talk->due_us,
         talk->pick_us, talk->endpoint);
  const size_t count = talk->gaps.size / sizeof(uint32_t);
  for (size_t i = 0; i < count; i++) {
    uint32_t gap;
    memcpy(&gap, talk->gaps.data + i * sizeof gap, sizeof gap);
    printf("%s%" PRIu32, i == 0 ? "" : ",", gap);
  }
  puts(count == 0 ? "-" : "");
  fflush(stdout);
}

/* Picks an endpoint for the turn and sends it there. */
static int pick_and_send(struct driver* driver, struct talk* talk) {
  talk->endpoint = 0;
  const int64_t before = now_us();
  const int status = pick(driver, talk, turn_of(talk)->output_tokens);
  talk->picked_us = before; /* what failed from then on, the result may not know of */
  talk->pick_us = now_us() - before;
  if (status == 0) {
    send_request(driver, talk);
    return 0;
  }
  char why[256];
  pickd_last_error(driver->client, why, sizeof why);
  fprintf(stderr, "pickd-demo-load: pick: %s (%s)\n", pickd_strerror(status), why);
  return status;
}

static void give_up(struct driver* driver, struct talk* talk, const char* status) {
  const struct attempt attempt = attempt_of(driver, talk);
  attempts_lost(&driver->attempts, now_us(), &attempt);
  driver->streaming--;
  print_turn(talk, status);
  talk->phase = ENDED;
}

static void forget_answer(struct talk* talk) {
  memset(&talk->usage, 0, sizeof talk->usage);
  talk->answer.size = talk->gaps.size = 0;
  talk->first_us = 0;
  talk->done = 0;
}

static void start_turn(struct driver* driver, struct talk* talk) {
  if (talk->turn == 0) buffer_text(&talk->prompt, talk->plan->system);
  buffer_text(&talk->prompt, USER_MARK);
  buffer_text(&talk->prompt, turn_of(talk)->text);
  buffer_text(&talk->prompt, ANSWER_MARK);
  forget_answer(talk);
  talk->attempt = 0;
  write_body(driver, talk);
  talk->phase = STREAMING;
  driver->streaming++;
  if (pick_and_send(driver, talk) != 0) give_up(driver, talk, "pick-failed");
}

static void next_turn(const struct driver* driver, struct talk* talk) {
  const int64_t now = now_us();
  buffer_append(&talk->prompt, talk->answer.data, talk->answer.size);
  if (++talk->turn == talk->plan->turn_count) {
    talk->phase = ENDED;
    return;
  }
  /* Turns keep their times however slow the answers are, but nobody replies to what was not said
   * yet. */
  const int64_t due = talk->start_us + turn_of(talk)->at_ms * 1000;
  talk->due_us = due > now ? due : now;
  talk->phase = talk->due_us < driver->end_us ? WAITING : ENDED;
}

/* The next best endpoint at which nothing failed since the pick; the count when there is none. */
static size_t next_fallback(const struct driver* driver, const struct talk* talk) {
  const size_t count = pickd_result_endpoint_count(talk->result);
  size_t next = talk->endpoint + 1;
  while (next < count &&
         attempts_failed_since(&driver->attempts, pickd_result_name(talk->result, next),
                               talk->picked_us)) {
    next++;
  }
  return next;
}

/* The attempt failed: another endpoint may still serve the turn. */
static void try_elsewhere(struct driver* driver, struct talk* talk) {
  const int again = talk->first_us == 0 || driver->retry; /* else a part was answered */
  const size_t next = next_fallback(driver, talk);
  if (again && next < pickd_result_endpoint_count(talk->result)) {
    talk->endpoint = next;
    forget_answer(talk);
    report(driver, talk, PICKD_REPORT_FALLBACK);
    send_request(driver, talk);
    return;
  }
  report(driver, talk, PICKD_REPORT_FAILED);
  if (driver->retry && talk->attempt < ATTEMPTS_MAX) {
    forget_answer(talk);
    if (pick_and_send(driver, talk) == 0) return;
  }
  give_up(driver, talk, "failed");
}

static void on_ended(struct driver* driver, struct talk* talk, CURLcode code) {
  long status = 0;
  curl_easy_getinfo(talk->easy, CURLINFO_RESPONSE_CODE, &status);
  curl_multi_remove_handle(driver->multi, talk->easy);
  const struct attempt attempt = attempt_of(driver, talk);
  if (code == CURLE_OK && status == 200 && talk->done) {
    attempts_done(&driver->attempts, now_us(), &attempt);
    driver->streaming--;
    report(driver, talk, PICKD_REPORT_DONE);
    print_turn(talk, "ok");
    next_turn(driver, talk);
    return;
  }
  fprintf(stderr, "pickd-demo-load: %s: %s, HTTP status %ld\n",
          pickd_result_address(talk->result, talk->endpoint), curl_easy_strerror(code), status);
  attempts_failed(&driver->attempts, now_us(), &attempt,
                  code == CURLE_OK ? "no whole answer" : curl_easy_strerror(code));
  try_elsewhere(driver, talk);
}

/* libcurl's own limit is on a mean over some seconds, which is late. */
static void end_stalled(struct driver* driver) {
  const int64_t now = now_us();
  if (driver->stall_us == 0 || now < driver->looked_us + STALL_LOOK_MS * 1000) return;
  driver->looked_us = now;
  for (size_t i = 0; i < driver->talk_count; i++) {
    struct talk* talk = &driver->talks[i];
    if (talk->phase == STREAMING && now - talk->alive_us > driver->stall_us)
      on_ended(driver, talk, CURLE_OPERATION_TIMEDOUT);
  }
}

/* Starts what is due; gives the time of the next turn that is not. */
static int64_t start_due(struct driver* driver) {
  int64_t next = INT64_MAX;
  for (size_t i = 0; i < driver->talk_count; i++) {
    struct talk* talk = &driver->talks[i];
    if (talk->phase != WAITING) continue;
    if (talk->due_us <= now_us()) {
      start_turn(driver, talk);
    } else if (talk->due_us < next) {
      next = talk->due_us;
    }
  }
  return next;
}

static void play(struct driver* driver) {
  int64_t next = 0;
  for (;;) {
    if (now_us() >= next) next = start_due(driver);
    int running;
    curl_multi_perform(driver->multi, &running);
    CURLMsg* message;
    int left;
    while ((message = curl_multi_info_read(driver->multi, &left)) != NULL) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result; /* the message dies with the handle's removal */
      struct talk* talk = NULL;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char**)&talk);
      on_ended(driver, talk, code);
      if (talk->phase == WAITING && talk->due_us < next) next = talk->due_us;
    }
    end_stalled(driver);
    if (driver->streaming == 0 && next == INT64_MAX) return;
    const int64_t now = now_us();
    if (now > driver->end_us + DRAIN_US) die("end", "turns under way did not finish within 30 s");
    if (next <= now) continue;
    const int64_t most_ms = driver->stall_us == 0 ? 1000 : STALL_LOOK_MS;
    const int64_t wait_ms = next == INT64_MAX ? most_ms : (next - now + 999) / 1000;
    curl_multi_poll(driver->multi, NULL, 0, (int)(wait_ms > most_ms ? most_ms : wait_ms), NULL);
  }
}

/* How fast one caller gets picks: the prompts of the conversations again, each pick taken back at
 * once. */
static void probe(struct driver* driver, int64_t duration_us) {
  uint64_t count = 0;
  const int64_t begin = now_us();
  int64_t now = begin;
  for (size_t i = 0; now < begin + duration_us; i = (i + 1) % driver->talk_count) {
    struct talk* talk = &driver->talks[i];
    if (talk->prompt.size > 0) {
      const int status = pick(driver, talk, 1);
      if (status != 0) die("pick", pickd_strerror(status));
      report(driver, talk, PICKD_REPORT_CANCELLED);
      count++;
    }
    now = now_us();
  }
  printf("picks %" PRIu64 " %.6f\n", count, (double)(now - begin) / 1e6);
}

static void make_talks(struct driver* driver, const struct workload* workload,
                       struct stream* streams, int64_t begin_us) {
  for (size_t i = 0; i < driver->talk_count; i++) {
    struct talk* talk = &driver->talks[i];
    talk->plan = &workload->conversations[i];
    talk->phase = talk->plan->turn_count == 0 ? ENDED : WAITING;
    if (talk->phase == ENDED) continue;
    talk->start_us = begin_us + talk->plan->start_ms * 1000;
    talk->due_us = talk->start_us + turn_of(talk)->at_ms * 1000;
    if (talk->due_us >= driver->end_us) talk->phase = ENDED;
    talk->result = pickd_result_new();
    talk->easy = curl_easy_init();
    if (talk->result == NULL || talk->easy == NULL) die("start", "out of memory");
    streams[i] = (struct stream){driver, talk};
    curl_easy_setopt(talk->easy, CURLOPT_PRIVATE, (void*)talk);
    curl_easy_setopt(talk->easy, CURLOPT_HTTPHEADER, driver->headers);
    curl_easy_setopt(talk->easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(talk->easy, CURLOPT_WRITEDATA, (void*)&streams[i]);
    curl_easy_setopt(talk->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(talk->easy, CURLOPT_NOPROXY, "*");
  }
}

int main(int argc, char** argv) {
  struct load_options asked;
  const int parsed = load_options_parse(argc, argv, &asked);
  if (parsed >= 0) return parsed;
  pickd_options options = PICKD_OPTIONS_INIT;
  options.socket_path = asked.socket;
  struct driver driver = {.model = asked.model,
                          .retry = asked.retry,
                          .stall_us = asked.stall_s * INT64_C(1000000),
                          .attempts = {.log = asked.log}};

  struct workload workload;
  if (workload_read(asked.workload, &workload) != 0) return 1;
  const int opened = pickd_open(&options, &driver.client);
  if (opened != 0) die("cannot reach pickd", pickd_strerror(opened));
  curl_global_init(CURL_GLOBAL_DEFAULT);
  driver.multi = curl_multi_init();
  driver.headers = curl_slist_append(NULL, "Content-Type: application/json");
  driver.headers =
      curl_slist_append(driver.headers, "Expect:"); /* no round trip before long bodies */
  driver.talk_count = workload.conversation_count;
  driver.talks = calloc(driver.talk_count + 1, sizeof *driver.talks);
  struct stream* streams = calloc(driver.talk_count + 1, sizeof *streams);
  if (driver.multi == NULL || driver.talks == NULL || streams == NULL)
    die("start", "out of memory");
  curl_multi_setopt(driver.multi, CURLMOPT_MAXCONNECTS, 1024L);

  const int64_t begin_us = now_us();
  driver.end_us = begin_us + (int64_t)(asked.seconds * 1e6);
  make_talks(&driver, &workload, streams, begin_us);
  play(&driver);
  if (asked.probe_seconds > 0 && driver.talk_count > 0)
    probe(&driver, (int64_t)(asked.probe_seconds * 1e6));

  for (size_t i = 0; i < driver.talk_count; i++) {
    struct talk* talk = &driver.talks[i];
    struct buffer* buffers[] = {&talk->prompt, &talk->body, &talk->answer, &talk->sse.bytes,
                                &talk->gaps};
    for (size_t b = 0; b < sizeof buffers / sizeof *buffers; b++) buffer_free(buffers[b]);
    curl_easy_cleanup(talk->easy);
    pickd_result_free(talk->result);
  }
  free(driver.talks);
  attempts_free(&driver.attempts);
  workload_free(&workload);
  free(streams);
  curl_multi_cleanup(driver.multi);
  curl_slist_free_all(driver.headers);
  curl_global_cleanup();
  pickd_close(driver.client);
  return 0;
}
