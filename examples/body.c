/* A request as a gateway has it: example_body PATH [ANSWER_FILE] <BODY picks an endpoint for it,
 * and reports what ANSWER_FILE, the body of an engine's answer, tells of usage. */
#include <pickd/body.h>
#include <pickd/pickd.h>
#include <stdio.h>

/* Gives the answer's bytes to the reader as they come, and reports what they tell. */
static int report_answer(pickd_client* client, pickd_ticket ticket, pickd_answer* answer,
                         pickd_body_api api, FILE* file) {
  pickd_answer_head head = PICKD_ANSWER_HEAD_INIT;
  pickd_report_info report = PICKD_REPORT_INIT;
  char piece[4096];
  size_t size;

  head.api = api; /* head.status and head.headers: as the engine answered */
  head.flags = PICKD_ANSWER_KEEP_TEXT;
  pickd_answer_begin(answer, &head);
  report.ticket = ticket;
  while ((size = fread(piece, 1, sizeof piece, file)) > 0) {
    if (pickd_answer_add(answer, piece, size) & PICKD_ANSWER_FIRST_TOKEN) {
      pickd_answer_report(answer, &report);
      pickd_report(client, &report, 0);
    }
    /* ... and on to the caller ... */
  }
  pickd_answer_end(answer);
  pickd_answer_report(answer, &report);
  printf("prompt %u, cached %u, output %u tokens\n", (unsigned)report.prompt_tokens,
         (unsigned)report.cached_tokens, (unsigned)report.output_tokens);
  return pickd_report(client, &report, 100000);
}

/* The engine holds its answer, too. Tells pickd so by a pick that can only go there, behind the
 * prompt that was answered; the next turn of the conversation is matched with both. */
static int remember_answer(pickd_client* client, pickd_body* body, const pickd_answer* answer,
                           pickd_result* result) {
  pickd_request request = PICKD_REQUEST_INIT;
  pickd_report_info report = PICKD_REPORT_INIT;
  char served[128];
  pickd_slice subset;
  int error = pickd_body_append(body, answer);

  if (error != 0) return 0; /* no text, or no next turn */
  snprintf(served, sizeof served, "%s", pickd_result_name(result, 0));
  subset = pickd_string(served);
  pickd_body_request(body, PICKD_BODY_LONGEST, &request);
  request.subset = &subset;
  request.subset_count = 1;
  request.flags |= PICKD_REQUEST_SUBSET;
  error = pickd_pick(client, &request, 100000, result);
  report.ticket = pickd_result_ticket(result);
  report.kind = PICKD_REPORT_CANCELLED; /* nothing is sent: frees what was reserved */
  return error != 0 ? error : pickd_report(client, &report, 100000);
}

int main(int argc, char** argv) {
  pickd_client* client = NULL;
  pickd_body* body = NULL;
  pickd_answer* answer = NULL;
  pickd_result* result = pickd_result_new();
  pickd_body_head head = PICKD_BODY_HEAD_INIT;
  pickd_body_info info = PICKD_BODY_INFO_INIT;
  pickd_request request = PICKD_REQUEST_INIT;
  FILE* file = argc > 2 ? fopen(argv[2], "rb") : NULL;
  char piece[4096];
  size_t size;
  int error = pickd_body_new(NULL, &body);

  if (error == 0) error = pickd_answer_new(NULL, &answer);
  if (error != 0 || result == NULL) return 1;

  head.path = pickd_string(argc > 1 ? argv[1] : "/v1/chat/completions");
  pickd_body_begin(body, &head);
  while ((size = fread(piece, 1, sizeof piece, stdin)) > 0) pickd_body_add(body, piece, size);
  error = pickd_body_end(body); /* whatever it says, there is a request */
  if (error != 0) fprintf(stderr, "no prompt: %s\n", pickd_body_strerror(error));
  pickd_body_read_info(body, &info);
  pickd_body_request(body, PICKD_BODY_LONGEST, &request);
  printf("model %.*s, %u prompts, %u tokens\n", (int)info.model.size,
         info.model.size != 0 ? (const char*)info.model.data : "", (unsigned)info.prompt_count,
         (unsigned)request.prompt_tokens);

  error = pickd_open(NULL, &client);
  if (error == 0) error = pickd_pick(client, &request, 100000, result); /* at most 100 ms */
  if (error == 0) {
    printf("%s, %u tokens cached\n", pickd_result_address(result, 0),
           (unsigned)pickd_result_match_tokens(result, 0));
    if (file != NULL)
      error = report_answer(client, pickd_result_ticket(result), answer, info.api, file);
    if (file != NULL && error == 0) error = remember_answer(client, body, answer, result);
  }
  if (error != 0) fprintf(stderr, "pick: %s\n", pickd_strerror(error));
  if (file != NULL) fclose(file);
  pickd_result_free(result);
  pickd_close(client);
  pickd_answer_free(answer);
  pickd_body_free(body);
  return error != 0;
}
