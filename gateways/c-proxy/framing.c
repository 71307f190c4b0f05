// Whether a message means the same to all who read it: what two readers could cut in two ways, or
// what no header may hold, is refused and never passed on (RFC 9112). Knows no state of a request.
#include <string.h>
#include <strings.h>

#include "proxy.h"

// RFC 9110, 5.6.2.
static int is_token(const char* text) {
  static const char others[] = "!#$%&'*+-.^_`|~";
  if (*text == '\0') return 0;
  for (; *text != '\0'; ++text) {
    const int letter = (*text | 0x20) >= 'a' && (*text | 0x20) <= 'z';
    if (!letter && !(*text >= '0' && *text <= '9') && strchr(others, *text) == NULL) return 0;
  }
  return 1;
}

static int is_field_text(const char* text) {
  for (; *text != '\0'; ++text) {
    const unsigned char byte = (unsigned char)*text;
    if ((byte < 0x20 && byte != '\t') || byte == 0x7f) return 0;
  }
  return 1;
}

// The path of a target; NULL when it is none that could be asked for at an engine.
const char* path_of(const char* target) {
  const char* at;
  for (at = target; *at != '\0'; ++at) {
    if (*at <= 0x20 || *at >= 0x7f) return NULL;  // 0x80 and above too, where char is signed or not
  }
  if (*target == '/') return target;
  if (strncasecmp(target, "http://", 7) != 0 && strncasecmp(target, "https://", 8) != 0)
    return NULL;
  at = strchr(strstr(target, "://") + 3, '/');
  return at == NULL ? "/" : at;
}

// NULL, or why nobody should rely on where the message with these headers ends.
const char* wrong_with_headers(const struct evkeyvalq* headers) {
  const struct evkeyval* header;
  const char* length = NULL;
  int chunked = 0;
  TAILQ_FOREACH(header, headers, next) {
    if (!is_token(header->key)) return "a header's name is no token";
    if (!is_field_text(header->value)) return "a header's value holds a control character";
    if (strcasecmp(header->key, "content-length") == 0) {
      if (*header->value == '\0' || header->value[strspn(header->value, "0123456789")] != '\0')
        return "Content-Length is no number";
      if (length != NULL && strcmp(length, header->value) != 0) return "two Content-Lengths";
      length = header->value;
    }
    if (strcasecmp(header->key, "transfer-encoding") == 0) {
      if (chunked || strcasecmp(header->value, "chunked") != 0)
        return "a Transfer-Encoding other than chunked";
      chunked = 1;
    }
  }
  return length != NULL && chunked ? "Content-Length and Transfer-Encoding" : NULL;
}

const char* wrong_with_request(struct evhttp_request* request) {
  if (path_of(evhttp_request_get_uri(request)) == NULL)
    return "the target is no path of an engine, in the characters of URLs";
  return wrong_with_headers(evhttp_request_get_input_headers(request));
}
