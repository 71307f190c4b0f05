/* Asks pickd for an endpoint and reports on it: example_pick MODEL PROMPT */
#include <pickd/pickd.h>
#include <stdio.h>

int main(int argc, char** argv) {
  pickd_client* client = NULL;
  pickd_result* result = pickd_result_new();
  pickd_request request = PICKD_REQUEST_INIT;
  pickd_slice prompt = pickd_string(argc > 2 ? argv[2] : "Hello");
  int error = pickd_open(NULL, &client);

  request.model = pickd_string(argc > 1 ? argv[1] : NULL);
  request.text = &prompt;
  request.text_count = 1;
  if (error == 0) error = pickd_pick(client, &request, 100000, result); /* at most 100 ms */
  if (error == 0) {
    pickd_report_info report = PICKD_REPORT_INIT;
    printf("%s (%s), %u of %u tokens cached\n", pickd_result_address(result, 0),
           pickd_reason_name(pickd_result_reason(result)), pickd_result_match_tokens(result, 0),
           pickd_result_prompt_tokens(result));
    /* ... send the request there ... */
    report.ticket = pickd_result_ticket(result);
    report.kind = PICKD_REPORT_DONE;
    report.output_tokens = 12;
    error = pickd_report(client, &report, 0);
  }
  if (error != 0) fprintf(stderr, "pick: %s\n", pickd_strerror(error));
  pickd_result_free(result);
  pickd_close(client);
  return error != 0;
}
