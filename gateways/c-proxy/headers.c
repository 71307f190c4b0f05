// Which headers go through, and which of them pickd hears of. Knows no state of a request.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proxy.h"

static int header_is(const char* name, size_t size, const char* wanted) {
  return strlen(wanted) == size && strncasecmp(name, wanted, size) == 0;
}

// Whether a `connection` header of these names it: then it is of one connection only.
static int named_by_connection(const struct evkeyvalq* headers, const char* name) {
  const struct evkeyval* header;
  TAILQ_FOREACH(header, headers, next) {
    const char* at = header->value;
    if (strcasecmp(header->key, "connection") != 0) continue;
    while (*at != '\0') {
      size_t size;
      at += strspn(at, ", \t");
      size = strcspn(at, ", \t");
      if (header_is(at, size, name)) return 1;
      at += size;
    }
  }
  return 0;
}

// Not of one connection only (RFC 9110, 7.6.1), nor made anew by libcurl and libevent.
int header_goes_on(const struct evkeyvalq* headers, const char* name) {
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
    if (strcasecmp(name, hop_by_hop[at]) == 0) return 0;
  }
  return !named_by_connection(headers, name);
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

// The address of a stage of a request that is split, as the engine's connector takes it: without
// scheme and path.
static struct curl_slist* append_stage(struct curl_slist* list, const char* name,
                                       const char* address, int* failed) {
  const char* scheme = strstr(address, "://");
  const char* begin = scheme == NULL ? address : scheme + 3;
  char host_port[ENDPOINT_BYTES];
  if (*begin == '\0') return list;
  snprintf(host_port, sizeof host_port, "%.*s", (int)strcspn(begin, "/"), begin);
  return append_header(list, name, host_port, failed);
}

static const char prefiller[] = "x-prefiller-host-port";  // who computes the prompt first
static const char encoder[] = "x-encoder-hosts-ports";    // who encodes images: a list, of one here

// Headers that make an engine connect where they say: they are a picker's to set, never a caller's.
static int is_pickers(const char* name) {
  return strcasecmp(name, prefiller) == 0 || strcasecmp(name, encoder) == 0 ||
         strcasecmp(name, "x-kv-cache-source-host-port") == 0 ||
         strcasecmp(name, "x-data-parallel-host-port") == 0;
}

struct curl_slist* headers_to_engine(const exchange* it, int* failed) {
  const struct evkeyvalq* headers = evhttp_request_get_input_headers(it->request);
  const struct evkeyval* header;
  struct curl_slist* list = NULL;
  *failed = 0;
  TAILQ_FOREACH(header, headers, next) {
    if (header_goes_on(headers, header->key) && !is_pickers(header->key))
      list = append_header(list, header->key, header->value, failed);
  }
  list = append_stage(list, prefiller, it->prefill, failed);
  list = append_stage(list, encoder, it->encode, failed);
  list = append(list, "Expect:", failed);  // no waiting for a word of the engine's
  if (it->body_size > 0 && evhttp_find_header(headers, "content-type") == NULL) {
    list = append(list, "Content-Type:", failed);  // libcurl would invent one
  }
  return list;
}

size_t attributes_of(struct evhttp_request* request, pickd_attribute* to, size_t to_max) {
  static const char* const wanted[] = {
      "EPP-Profile",         "x-session-token",    "x-pickd-affinity-ttl",
      "x-llm-d-slo-ttft-ms", "x-llm-d-slo-itl-ms", "x-llm-d-slo-tpot-ms",
      "x-slo-ttft-ms",       "x-slo-itl-ms",       "x-slo-tpot-ms"};
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
