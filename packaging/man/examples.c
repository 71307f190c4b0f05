/* Examples of the manual pages: each function below is the example of the functions that it calls.
 * Plain C11, compiled by tests/man_pages_test.py; knows nothing but pickd.h. */
#include <pickd/pickd.h>

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int connect_and_ask(void);
int pick_and_report(pickd_client* client, const char* prompt);
void print_result(const pickd_result* result);
void forward(const pickd_result* result) {
  const char* prefill = pickd_result_prefill_address(result);
  const char* encode = pickd_result_encode_address(result);

  if (encode != NULL)
    printf("%s (%s) encodes the images; ", encode, pickd_result_encode_name(result));
  if (prefill != NULL)
    printf("%s (%s) computes the prompt, of which it holds %u tokens, for ", prefill,
           pickd_result_prefill_name(result), (unsigned)pickd_result_prefill_match_tokens(result));
  printf("%s\n", pickd_result_address(result, 0));
}

int event_loop(pickd_client* client, const pickd_request* requests, uint64_t count);
int scale_up(pickd_client* client);

int connect_and_ask(void) {
  pickd_client* client;
  pickd_options options = PICKD_OPTIONS_INIT;
  uint32_t block_tokens, keys_max;
  const char* daemon_version;
  int code;

  options.name = "my-gateway"; /* the socket is $PICKD_SOCKET, else the usual one */
  code = pickd_open(&options, &client);
  if (code != 0) {
    fprintf(stderr, "no pickd: %s\n", pickd_strerror(code));
    return code;
  }
  code = pickd_daemon_info(client, &block_tokens, &keys_max, &daemon_version);
  if (code == 0)
    printf("pickd %s (library %s): prompts of up to %lu tokens\n", daemon_version, pickd_version(),
           (unsigned long)keys_max * block_tokens);
  pickd_close(client);
  return code;
}

int pick_and_report(pickd_client* client, const char* prompt) {
  pickd_request request = PICKD_REQUEST_INIT;
  pickd_report_info report = PICKD_REPORT_INIT;
  pickd_slice text = pickd_string(prompt);
  pickd_result* result = pickd_result_new(); /* keep one a thread and use it again */
  int code;

  if (result == NULL) return -1;
  request.model = pickd_string("llama-3.1-70b");
  request.text = &text;
  request.text_count = 1;
  code = pickd_pick(client, &request, 50000, result); /* within 50 ms */
  if (code == 0) {
    /* ... send the request to pickd_result_address(result, 0), and when the answer is there: */
    report.ticket = pickd_result_ticket(result);
    report.kind = PICKD_REPORT_DONE;
    report.prompt_tokens = 1200; /* from the engine's usage; leave out what it does not tell */
    report.output_tokens = 96;
    code = pickd_report(client, &report, 0); /* hands it over, does not wait */
  } else {
    char words[256];
    pickd_last_error(client, words, sizeof words);
    fprintf(stderr, "no endpoint: %s (%s)\n", pickd_strerror(code), words);
  }
  pickd_result_free(result);
  return code;
}

void print_result(const pickd_result* result) {
  static const char* const roles[] = {"both", "decode", "prefill", "encode"};
  size_t at;

  printf("status %d, picked by %s%s, %u prompt tokens hashed in %llu ns\n",
         pickd_result_status(result), pickd_reason_name(pickd_result_reason(result)),
         pickd_result_flags(result) & PICKD_RESULT_DEGRADED ? " without the daemon" : "",
         (unsigned)pickd_result_prompt_tokens(result),
         (unsigned long long)pickd_result_hash_ns(result));
  for (at = 0; at < pickd_result_endpoint_count(result); ++at)
    printf("%s at %s (%s): %u tokens cached, score %.2f\n", pickd_result_name(result, at),
           pickd_result_address(result, at), roles[pickd_result_role(result, at)],
           (unsigned)pickd_result_match_tokens(result, at), pickd_result_score(result, at));
  printf("first token in %.0f ms, then one every %.1f ms (NaN: no prediction)\n",
         pickd_result_ttft_ms(result), pickd_result_itl_ms(result));
}

int event_loop(pickd_client* client, const pickd_request* requests, uint64_t count) {
  pickd_queue* queue;
  pickd_result* result = pickd_result_new();
  uint64_t sent = 0, answered = 0, which;
  int code = pickd_queue_open(client, 64, &queue);

  if (code != 0) {
    pickd_result_free(result);
    return code;
  }
  while (code == 0 && answered < count) {
    struct pollfd waiting = {0};
    pickd_ticket ticket;

    /* -EAGAIN: enough is outstanding, answers come first. */
    while (sent < count && pickd_queue_submit(queue, &requests[sent], sent, &ticket) == 0) {
      if (requests[sent].priority < 0) { /* for example: its caller went away */
        pickd_queue_cancel(queue, ticket);
        ++answered;
      }
      ++sent;
    }
    waiting.fd = pickd_queue_event_fd(queue); /* never read it */
    waiting.events = POLLIN;
    poll(&waiting, 1, -1);
    while ((code = pickd_queue_poll(queue, result, &which)) == 1) {
      pickd_report_info report = PICKD_REPORT_INIT;

      ++answered;
      if (pickd_result_status(result) != 0) continue;
      printf("request %llu goes to %s\n", (unsigned long long)which,
             pickd_result_address(result, 0));
      report.ticket = pickd_result_ticket(result);
      report.kind = PICKD_REPORT_FIRST_TOKEN;
      pickd_queue_report(queue, &report);
    }
  }
  pickd_queue_close(queue);
  pickd_result_free(result);
  return code;
}

int scale_up(pickd_client* client) {
  pickd_endpoint endpoint = PICKD_ENDPOINT_INIT;
  const char* models[] = {"llama-3.1-70b"};
  int code;

  endpoint.name = "vllm-3";
  endpoint.address = "10.0.0.3:8000";
  endpoint.models = models;
  endpoint.model_count = 1;
  endpoint.capacity_tokens = 480000;
  code = pickd_endpoint_add(client, &endpoint);
  if (code != 0) return code;
  endpoint.waiting = 2; /* as scraped; all that is known is told each time */
  code = pickd_endpoint_update(client, &endpoint);
  if (code == 0) code = pickd_endpoint_reset(client, "vllm-3");    /* its engine was restarted */
  if (code == 0) code = pickd_endpoint_drain(client, "vllm-3", 1); /* no new picks go there */
  if (code == 0) code = pickd_endpoint_remove(client, "vllm-3");
  return code;
}
