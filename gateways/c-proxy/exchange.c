// A request from its body to its last report: read, picked, sent, tried elsewhere, answered. Every
// exchange that has a reservation reports its end once: by conclude(), whatever became of it.
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proxy.h"

enum { IDLE_MAX = 64, HEADERS_MAX = 256, PROGRESS_EVERY_S = 5 };

// ---- Making and ending -------------------------------------------------------------------------

static exchange* make(proxy* p) {
  pickd_body_options body = PICKD_BODY_OPTIONS_INIT;
  exchange* it = p->idle;
  if (it != NULL) {
    p->idle = it->next;
    --p->idle_count;
    return it;
  }
  it = calloc(1, sizeof *it);
  if (it == NULL) return NULL;
  body.body_bytes_max = p->options.body_bytes_max;
  if (pickd_body_new(&body, &it->body) == 0 && pickd_answer_new(NULL, &it->answer) == 0) return it;
  pickd_body_free(it->body);
  free(it);
  return NULL;
}

static void stop_watching(exchange* it) {
  if (it->gone == NULL) return;
  event_free(it->gone);
  close(it->gone_fd);
  it->gone = NULL;
}

// The exchange is over, and its readers are kept for the next one.
static void let_go(exchange* it) {
  proxy* p = it->proxy;
  pickd_body* body = it->body;
  pickd_answer* answer = it->answer;
  stop_watching(it);
  upstream_forget(&p->upstream, it);
  evhttp_clear_headers(&it->answer_headers);
  if (--p->exchange_count == 0 && p->stopping) proxy_drained(p);
  if (p->idle_count == IDLE_MAX) {
    pickd_body_free(body);
    pickd_answer_free(answer);
    free(it);
    return;
  }
  memset(it, 0, sizeof *it);
  it->body = body;
  it->answer = answer;
  it->next = p->idle;
  p->idle = it;
  ++p->idle_count;
}

void exchange_free_idle(proxy* p) {
  while (p->idle != NULL) {
    exchange* it = p->idle;
    p->idle = it->next;
    pickd_body_free(it->body);
    pickd_answer_free(it->answer);
    free(it);
  }
}

static time_t now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec;
}

static void report(exchange* it, pickd_report_kind kind) {
  pickd_report_info told = PICKD_REPORT_INIT;
  if (kind == PICKD_REPORT_PROGRESS) pickd_answer_report(it->answer, &told);
  told.ticket = it->ticket;
  told.kind = kind;
  it->told_s = now_s();
  if (kind == PICKD_REPORT_FALLBACK) told.endpoint = pickd_string(it->endpoints[it->at].name);
  picks_report(&it->proxy->picks, &told);
}

// The last report. `kind` 0: as the answer says.
static void conclude(exchange* it, pickd_report_kind kind) {
  pickd_report_info told = PICKD_REPORT_INIT;
  if (!it->reserved) return;
  it->reserved = 0;
  told.kind = PICKD_REPORT_CANCELLED;
  if (it->answer_begun) pickd_answer_report(it->answer, &told);
  if (kind != 0) told.kind = kind;
  told.ticket = it->ticket;
  picks_report(&it->proxy->picks, &told);
}

// After this nothing of the caller's connection comes here any more.
static void leave_connection(exchange* it) {
  evhttp_connection_set_closecb(it->connection, NULL, NULL);
  stop_watching(it);
}

// Nothing has gone to the caller, and nothing will of an engine.
static void fail(exchange* it, pickd_report_kind kind, int status, const char* why) {
  leave_connection(it);
  conclude(it, kind);
  refuse(it->request, status, NULL, why);
  let_go(it);
}

// The caller closed its connection, or broke it, or sends the next request already.
static void caller_stirred(evutil_socket_t fd, short what, void* of) {
  exchange* it = of;
  struct evhttp_connection* connection = it->connection;
  char byte;
  const ssize_t size = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (!(what & EV_CLOSED) && (size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR))))
    return;
  picks_forget(&it->proxy->picks, it);
  conclude(it, PICKD_REPORT_CANCELLED);
  // libevent tells of the end of a connection, too: not of this one any more.
  evhttp_connection_set_closecb(connection, NULL, NULL);
  let_go(it);
  evhttp_connection_free(connection);  // and with it the request
}

// While a request is answered libevent does not read, so it would not see that the caller goes. A
// descriptor of its own may be edge-triggered beside libevent's: it does not tell of the same bytes
// again and again.
static void watch_caller(exchange* it) {
  struct bufferevent* connection = evhttp_connection_get_bufferevent(it->connection);
  it->gone_fd = fcntl(bufferevent_getfd(connection), F_DUPFD_CLOEXEC, 0);
  if (it->gone_fd < 0) return;  // a caller that goes is noticed when it is written to
  it->gone = event_new(it->proxy->base, it->gone_fd, EV_READ | EV_CLOSED | EV_ET | EV_PERSIST,
                       caller_stirred, it);
  if (it->gone != NULL)
    event_add(it->gone, NULL);
  else
    close(it->gone_fd);
}

// libevent found the connection broken while it wrote. It frees connection and request itself.
static void connection_broke(struct evhttp_connection* connection, void* of) {
  exchange* it = of;
  (void)connection;
  picks_forget(&it->proxy->picks, it);
  conclude(it, PICKD_REPORT_CANCELLED);
  // A request that was being answered is taken off its connection before this, and is ours then.
  if (evhttp_request_get_connection(it->request) == NULL) evhttp_request_free(it->request);
  let_go(it);
}

// ---- The request -------------------------------------------------------------------------------

// Reads the body into it->wanted. What cannot be read is picked by load.
static void read_body(exchange* it) {
  const struct evkeyvalq* input = evhttp_request_get_input_headers(it->request);
  pickd_attribute headers[HEADERS_MAX];
  pickd_body_head head = PICKD_BODY_HEAD_INIT;
  const struct evkeyval* header;
  struct evbuffer* bytes = evhttp_request_get_input_buffer(it->request);
  TAILQ_FOREACH(header, input, next) {
    if (head.header_count == HEADERS_MAX) break;
    headers[head.header_count].key = pickd_string(header->key);
    headers[head.header_count++].value = pickd_string(header->value);
  }
  it->body_size = evbuffer_get_length(bytes);
  it->body_bytes = it->body_size > 0 ? evbuffer_pullup(bytes, -1) : NULL;
  if (it->body_bytes == NULL) it->body_size = 0;
  head.path = pickd_string(evhttp_request_get_uri(it->request));
  head.headers = headers;
  head.body_bytes = it->body_size;
  it->wanted = (pickd_request)PICKD_REQUEST_INIT;
  it->info = (pickd_body_info)PICKD_BODY_INFO_INIT;
  if (pickd_body_begin(it->body, &head) == 0) {
    pickd_body_add(it->body, it->body_bytes, it->body_size);
    pickd_body_end(it->body);
    pickd_body_read_info(it->body, &it->info);
    pickd_body_request(it->body, PICKD_BODY_LONGEST, &it->wanted);
  }
  it->wanted.attribute_count = attributes_of(it->request, it->attributes, ATTRIBUTES_MAX);
  it->wanted.attributes = it->attributes;
  it->wanted.queue_timeout_us = it->proxy->options.pick_timeout_us;
}

void exchange_begin(struct evhttp_request* request, void* proxy_of_it) {
  proxy* p = proxy_of_it;
  exchange* it;
  const char* wrong = wrong_with_request(request);
  if (wrong != NULL) {
    // Where it ends is not sure, so nothing that follows on this connection is a request.
    evhttp_add_header(evhttp_request_get_output_headers(request), "connection", "close");
    refuse(request, 400, NULL, wrong);
    return;
  }
  if (strcmp(evhttp_request_get_uri(request), "/healthz") == 0) {
    evhttp_send_reply(request, p->stopping ? 503 : 200, NULL, NULL);
    return;
  }
  if (p->stopping) {
    refuse(request, 503, "rejected-shutting-down", "the proxy is shutting down");
    return;
  }
  it = make(p);
  if (it == NULL) {
    refuse(request, 503, NULL, "out of memory");
    return;
  }
  it->proxy = p;
  it->request = request;
  it->connection = evhttp_request_get_connection(request);
  TAILQ_INIT(&it->answer_headers);
  ++p->exchange_count;
  watch_caller(it);
  evhttp_connection_set_closecb(it->connection, connection_broke, it);
  read_body(it);
  picks_ask(&p->picks, it);
}

void exchange_refused(exchange* it, int code) {
  leave_connection(it);
  refuse_pick(it->request, code);
  let_go(it);
}

// Sends to it->endpoints[it->at]; to the next ones while that cannot even begin.
static void send_on(exchange* it) {
  const int code = upstream_send(&it->proxy->upstream, it);
  if (code == 0) return;
  // no fault of the engine's
  fail(it, PICKD_REPORT_CANCELLED, code == -E2BIG ? 400 : 503, pickd_strerror(code));
}

void exchange_picked(exchange* it, const pickd_result* result) {
  const int code = pickd_result_status(result);
  const char* prefill = pickd_result_prefill_address(result);
  const char* encode = pickd_result_encode_address(result);
  size_t at;
  if (code != 0) {
    exchange_refused(it, code);
    return;
  }
  it->ticket = pickd_result_ticket(result);
  it->reserved = 1;
  it->phase = PHASE_SENDING;
  it->endpoint_count = pickd_result_endpoint_count(result);
  for (at = 0; at < it->endpoint_count && at < ENDPOINTS_MAX; ++at) {
    snprintf(it->endpoints[at].name, ENDPOINT_BYTES, "%s", pickd_result_name(result, at));
    snprintf(it->endpoints[at].address, ENDPOINT_BYTES, "%s", pickd_result_address(result, at));
  }
  it->endpoint_count = at;
  snprintf(it->prefill, ENDPOINT_BYTES, "%s", prefill == NULL ? "" : prefill);
  snprintf(it->encode, ENDPOINT_BYTES, "%s", encode == NULL ? "" : encode);
  send_on(it);
}

// ---- The answer --------------------------------------------------------------------------------

void exchange_headers_came(exchange* it) {
  pickd_answer_head head = PICKD_ANSWER_HEAD_INIT;
  pickd_attribute headers[HEADERS_MAX];
  const struct evkeyval* header;
  TAILQ_FOREACH(header, &it->answer_headers, next) {
    if (head.header_count == HEADERS_MAX) break;
    headers[head.header_count].key = pickd_string(header->key);
    headers[head.header_count++].value = pickd_string(header->value);
  }
  head.api = it->info.api;
  head.status = it->status;
  head.headers = headers;
  it->answer_begun = pickd_answer_begin(it->answer, &head) == 0;
}

void exchange_came(exchange* it, const void* data, size_t size) {
  if (it->phase == PHASE_SENDING) {
    it->phase = PHASE_ANSWERING;
    answer_start(it);
  }
  answer_piece(it, data, size);  // the caller gets its tokens before they are counted
  if (it->answer_begun) {
    const int came = pickd_answer_add(it->answer, data, size);
    if (came <= 0) return;
    if (came & PICKD_ANSWER_FIRST_TOKEN)
      report(it, PICKD_REPORT_FIRST_TOKEN);
    else if ((came & PICKD_ANSWER_TOKENS) && now_s() - it->told_s >= PROGRESS_EVERY_S)
      report(it, PICKD_REPORT_PROGRESS);  // which renews the lease of what it reserved
  }
}

// Nothing has gone to the caller, so another engine may serve the request from the start.
static void try_another(exchange* it) {
  const size_t tries = (size_t)it->proxy->options.retries;
  if (it->at + 1 >= it->endpoint_count || it->at >= tries) {
    if (it->unfit != NULL)
      fail(it, PICKD_REPORT_FAILED, 502, it->unfit);
    else
      fail(it, PICKD_REPORT_FAILED, 503, "no engine could be reached");
    return;
  }
  ++it->at;
  it->answer_begun = 0;
  report(it, PICKD_REPORT_FALLBACK);
  send_on(it);
}

// The last byte has left for the caller. libevent frees the request.
static void flushed(struct evhttp_request* request, void* of) {
  exchange* it = of;
  (void)request;
  leave_connection(it);
  let_go(it);
}

// What libcurl cannot do for want of memory or room says nothing of an engine; all else that ends a
// request to one does: the target was looked at before.
static int is_engines_fault(CURLcode how) {
#if LIBCURL_VERSION_NUM >= 0x080600
  if (how == CURLE_TOO_LARGE) return 0;  // CURLE_OUT_OF_MEMORY in earlier ones
#endif
  return how != CURLE_OUT_OF_MEMORY && how != CURLE_FAILED_INIT;
}

void exchange_ended(exchange* it, CURLcode how) {
  if (it->phase == PHASE_SENDING && how != CURLE_OK) {
    if (is_engines_fault(how))
      try_another(it);
    else
      fail(it, PICKD_REPORT_CANCELLED, 502,
           "the answer or the request is more than the proxy takes");
    return;
  }
  if (it->answer_begun) pickd_answer_end(it->answer);
  conclude(it, how == CURLE_OK ? (pickd_report_kind)0 : PICKD_REPORT_FAILED);
  if (how != CURLE_OK) {
    leave_connection(it);
    answer_break(it);
    let_go(it);
    return;
  }
  if (it->phase == PHASE_SENDING) answer_start(it);  // an answer without a body
  it->phase = PHASE_FLUSHING;
  stop_watching(it);
  evhttp_request_set_on_complete_cb(it->request, flushed, it);
  answer_end(it);
}
