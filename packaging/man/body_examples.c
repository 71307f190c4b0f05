/* Examples of the manual pages of libpickd-body: each function below is the example of the
 * functions that it calls. Plain C11, compiled by tests/man_pages_test.py; knows the public headers
 * only. */
#include <pickd/body.h>
#include <pickd/pickd.h>

#include <inttypes.h>
#include <stdio.h>

int new_readers(pickd_body** body, pickd_answer** answer, pickd_body_counters* counters);
void end_of_request(pickd_body* body, pickd_answer* answer);
int pick_for(pickd_client* client, pickd_body* body, pickd_slice json, pickd_result* result);
void print_body(const pickd_body* body);
int stream(pickd_client* client, pickd_ticket ticket, pickd_answer* answer, FILE* file);
int next_turn(pickd_body* body, const pickd_answer* answer, pickd_request* request);
void print_metrics(const pickd_body_counters* counters);
void count_in_one_place(void);

int new_readers(pickd_body** body, pickd_answer** answer, pickd_body_counters* counters) {
  pickd_body_options of_body = PICKD_BODY_OPTIONS_INIT;
  pickd_answer_options of_answer = PICKD_ANSWER_OPTIONS_INIT;
  int code;

  of_body.body_bytes_max = 8 << 20; /* as the gateway itself takes */
  of_body.counters = counters;
  of_answer.counters = counters;
  code = pickd_body_new(&of_body, body);
  if (code != 0) return code;
  code = pickd_answer_new(&of_answer, answer);
  if (code != 0) pickd_body_free(*body);
  return code;
}

void end_of_request(pickd_body* body, pickd_answer* answer) {
  pickd_answer_free(answer); /* or keep both for the next request */
  pickd_body_free(body);
}

int pick_for(pickd_client* client, pickd_body* body, pickd_slice json, pickd_result* result) {
  pickd_body_head head = PICKD_BODY_HEAD_INIT;
  pickd_request request = PICKD_REQUEST_INIT;
  const pickd_attribute headers[] = {{pickd_string("X-Session-ID"), pickd_string("s-17")}};
  int code;

  head.path = pickd_string("/v1/chat/completions");
  head.headers = headers;
  head.header_count = 1;
  head.tenant = pickd_string("acme"); /* shares no prefix with other tenants */
  code = pickd_body_begin(body, &head);
  if (code != 0) return code;
  pickd_body_add(body, json.data, json.size); /* again for each piece that comes */
  code = pickd_body_end(body);
  if (code != 0) /* picked by load, and the engine says what is wrong */
    fprintf(stderr, "no prompt: %s\n", pickd_body_strerror(code));
  pickd_body_request(body, PICKD_BODY_LONGEST, &request);
  request.priority = 0; /* what the body does not tell is the gateway's */
  return pickd_pick(client, &request, 50000, result);
}

void print_body(const pickd_body* body) {
  pickd_body_info info = PICKD_BODY_INFO_INIT;

  if (pickd_body_read_info(body, &info) != 0) return;
  printf("%.*s, %u prompts, %u media, %u answers each%s\n", (int)info.model.size,
         info.model.size != 0 ? (const char*)info.model.data : "", (unsigned)info.prompt_count,
         (unsigned)info.media_count, (unsigned)info.n,
         (info.flags & PICKD_BODY_STREAM) != 0 ? ", streamed" : "");
}

int stream(pickd_client* client, pickd_ticket ticket, pickd_answer* answer, FILE* file) {
  const pickd_attribute headers[] = {
      {pickd_string("content-type"), pickd_string("text/event-stream")}};
  pickd_answer_head head = PICKD_ANSWER_HEAD_INIT;
  pickd_report_info report = PICKD_REPORT_INIT;
  char piece[16384];
  size_t size;
  int code;

  head.api = PICKD_BODY_CHAT;
  head.headers = headers;
  head.header_count = 1;
  head.flags = PICKD_ANSWER_KEEP_TEXT;
  code = pickd_answer_begin(answer, &head);
  if (code != 0) return code;
  report.ticket = ticket;
  while ((size = fread(piece, 1, sizeof piece, file)) > 0) {
    int came = pickd_answer_add(answer, piece, size);
    if (came > 0 && (came & PICKD_ANSWER_FIRST_TOKEN) != 0) {
      pickd_answer_report(answer, &report); /* PICKD_REPORT_FIRST_TOKEN */
      pickd_report(client, &report, 0);
    }
  }
  pickd_answer_end(answer);
  pickd_answer_report(answer, &report); /* PICKD_REPORT_DONE with usage, or how it failed */
  return pickd_report(client, &report, 0);
}

int next_turn(pickd_body* body, const pickd_answer* answer, pickd_request* request) {
  int code = pickd_body_append(body, answer);

  if (code == 0) code = pickd_body_request(body, PICKD_BODY_LONGEST, request);
  return code; /* the request's prompt is the one that the next turn begins with */
}

void print_metrics(const pickd_body_counters* counters) {
  const char *name, *help;
  size_t at;

  for (at = 0; (name = pickd_body_counter_name(at, &help)) != NULL; ++at)
    printf("# HELP gateway_%s %s\ngateway_%s %" PRIu64 "\n", name, help, name,
           pickd_body_counter_value(counters, at));
}

void count_in_one_place(void) {
  pickd_body_counters* counters = pickd_body_counters_new();

  if (counters == NULL) return;
  /* ... readers are made with it, used and freed ... */
  print_metrics(counters);
  pickd_body_counters_free(counters);
}
