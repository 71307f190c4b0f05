// Which headers go through, and which of them pickd hears of. Knows no state of a request.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proxy.h"

int header_is(const char* name, size_t size, const char* wanted) {
  return strlen(wanted) == size && strncasecmp(name, wanted, size) == 0;
}

// Of one connection only (RFC 9110, 7.6.1), or made anew by libcurl and libevent.
int header_is_end_to_end(const char* name, size_t size) {
  static const char* const hop_by_hop[] = {"connection",
                                           "keep-alive",
                                           "proxy-connection",
                                           "te",
                                           "trailer",
                                           "proxy-authenticate",
                                           "expect",
                                           "upgrade",
                                           "transfer-encoding",
                                           "content-length",
                                           "proxy-authorization",
                                           "host"};
  size_t at;
  for (at = 0; at < sizeof hop_by_hop / sizeof hop_by_hop[0]; ++at) {
    if (header_is(name, size, hop_by_hop[at])) return 0;
  }
  return 1;
}

static struct curl_slist* append(struct curl_slist* list, const char* line, int* failed) {
  struct curl_slist* longer = *failed ? NULL : curl_slist_append(list, line);
  if (longer == NULL) *failed = 1;
  return longer == NULL ? list : longer;
}

static struct curl_slist* append_header(struct curl_slist* list, const char* name,
                                        const char* value, int* failed) {
  const size_t size = strlen(name) + strlen(value) + 3;
  char* line = malloc(size);
  if (line == NULL) {
    *failed = 1;
    return list;
  }
  // An empty value is told to libcurl by a semicolon.
  if (*value == '\0')
    snprintf(line, size, "%s;", name);
  else
    snprintf(line, size, "%s: %s", name, value);
  list = append(list, line, failed);
  free(line);
  return list;
}

struct curl_slist* headers_to_engine(const exchange* it, int* failed) {
  static const char prefiller[] = "x-prefiller-host-port";  // who computes the prompt first
  const struct evkeyvalq* headers = evhttp_request_get_input_headers(it->request);
  const struct evkeyval* header;
  struct curl_slist* list = NULL;
  *failed = 0;
  TAILQ_FOREACH(header, headers, next) {
    // What a client sends under the proxy's own name must not survive.
    if (header_is_end_to_end(header->key, strlen(header->key)) &&
        strcasecmp(header->key, prefiller) != 0) {
      list = append_header(list, header->key, header->value, failed);
    }
  }
  if (it->prefill[0] != '\0') list = append_header(list, prefiller, it->prefill, failed);
  list = append(list, "Expect:", failed);  // no waiting for a word of the engine's
  if (it->body_size > 0 && evhttp_find_header(headers, "content-type") == NULL) {
    list = append(list, "Content-Type:", failed);  // libcurl would invent one
  }
  return list;
}

size_t attributes_of(struct evhttp_request* request, pickd_attribute* to, size_t to_max) {
  static const char* const wanted[] = {
      "EPP-Profile",         "x-session-token", "x-llm-d-slo-ttft-ms", "x-llm-d-slo-itl-ms",
      "x-llm-d-slo-tpot-ms", "x-slo-ttft-ms",   "x-slo-itl-ms",        "x-slo-tpot-ms"};
  const struct evkeyvalq* headers = evhttp_request_get_input_headers(request);
  size_t count = 0, at;
  for (at = 0; at < sizeof wanted / sizeof wanted[0] && count < to_max; ++at) {
    const char* value = evhttp_find_header(headers, wanted[at]);
    if (value == NULL || strlen(value) > 255) continue;
    to[count].key = pickd_string(wanted[at]);
    to[count++].value = pickd_string(value);
  }
  return count;
}
