// What goes back to the caller: the engine's answer as it comes, or a refusal of the proxy's own.
// Knows nothing of picks.
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "proxy.h"

void answer_start(exchange* it) {
  struct evkeyvalq* headers = evhttp_request_get_output_headers(it->request);
  const struct evkeyval* header;
  TAILQ_FOREACH(header, &it->answer_headers, next) {
    if (header_goes_on(&it->answer_headers, header->key) ||
        strcasecmp(header->key, "content-length") == 0) {
      evhttp_add_header(headers, header->key, header->value);
    }
  }
  evhttp_send_reply_start(it->request, it->status, it->phrase[0] == '\0' ? NULL : it->phrase);
}

static void went(struct evhttp_connection* connection, void* of) {
  exchange* it = of;
  (void)connection;
  if (it->paused && it->easy != NULL) {
    it->paused = 0;
    curl_easy_pause(it->easy, CURLPAUSE_CONT);
  }
}

void answer_piece(exchange* it, const void* data, size_t size) {
  struct evbuffer* piece = evbuffer_new();
  if (piece == NULL || evbuffer_add(piece, data, size) != 0) {
    if (piece != NULL) evbuffer_free(piece);
    return;
  }
  evhttp_send_reply_chunk_with_cb(it->request, piece, went, it);
  evbuffer_free(piece);
}

void answer_end(exchange* it) { evhttp_send_reply_end(it->request); }

void answer_break(exchange* it) { evhttp_connection_free(it->connection); }

size_t unsent(const exchange* it) {
  struct bufferevent* connection = evhttp_connection_get_bufferevent(it->connection);
  return evbuffer_get_length(bufferevent_get_output(connection));
}

// ---- Refusals ----------------------------------------------------------------------------------

static const char* type_of(int status) {
  switch (status) {
    case 404: return "NotFoundError";
    case 429: return "TooManyRequests";
    case 502: return "BadGateway";
    case 503: return "ServiceUnavailable";
    default: return "BadRequestError";
  }
}

static const char* phrase_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 429: return "Too Many Requests";
    case 502: return "Bad Gateway";
    default: return "Service Unavailable";
  }
}

// An error body as the engines' APIs have it. `why` holds nothing that JSON would have to escape.
void refuse(struct evhttp_request* request, int status, const char* reason, const char* why) {
  struct evkeyvalq* headers = evhttp_request_get_output_headers(request);
  struct evbuffer* body = evbuffer_new();
  if (body != NULL) {
    evbuffer_add_printf(body, "{\"error\":{\"message\":\"%s\",\"type\":\"%s\",\"code\":%d}}\n", why,
                        type_of(status), status);
  }
  evhttp_add_header(headers, "content-type", "application/json");
  if (reason != NULL) evhttp_add_header(headers, "x-llm-d-request-dropped-reason", reason);
  evhttp_send_reply(request, status, phrase_of(status), body);
  if (body != NULL) evbuffer_free(body);
}

void refuse_pick(struct evhttp_request* request, int code) {
  const char* why = pickd_strerror(code);
  switch (code) {
    case -EBUSY:
    case -EAGAIN: refuse(request, 429, "rejected-saturated", why); break;
    case -ENOENT: refuse(request, 404, NULL, why); break;
    case -EINVAL:
    case -E2BIG: refuse(request, 400, NULL, why); break;
    case -EHOSTUNREACH:
    case -ENOTCONN: refuse(request, 503, "rejected-no-endpoints", why); break;
    case -ETIMEDOUT: refuse(request, 503, "rejected-ttl-expired", why); break;
    default: refuse(request, 503, NULL, why);
  }
}
