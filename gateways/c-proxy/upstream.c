// libcurl's multi handle in the event loop: requests to engines, over connections that are kept.
// What comes back goes to exchange.c.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proxy.h"

enum { CONNECTIONS_KEPT = 256, URL_BYTES = 4096 };

static void finish(upstream* u) {
  CURLMsg* message;
  int left;
  while ((message = curl_multi_info_read(u->multi, &left)) != NULL) {
    exchange* it = NULL;
    const CURLcode how = message->data.result;
    if (message->msg != CURLMSG_DONE) continue;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char**)&it);
    upstream_forget(u, it);
    exchange_ended(it, how);
  }
}

static void on_socket(evutil_socket_t fd, short what, void* of) {
  upstream* u = of;
  int running;
  const int mask =
      (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
  curl_multi_socket_action(u->multi, fd, mask, &running);
  finish(u);
}

static void on_timer(evutil_socket_t fd, short what, void* of) {
  upstream* u = of;
  int running;
  (void)fd;
  (void)what;
  curl_multi_socket_action(u->multi, CURL_SOCKET_TIMEOUT, 0, &running);
  finish(u);
}

// libcurl says which sockets it waits for; `event` is what an earlier call put there.
static int watch(CURL* easy, curl_socket_t fd, int what, void* of, void* socket_of) {
  upstream* u = of;
  struct event* event = socket_of;
  const short wanted =
      (short)((what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0));
  (void)easy;
  if (event != NULL) event_free(event);
  event = NULL;
  if (what != CURL_POLL_REMOVE) {
    event = event_new(u->base, fd, (short)(wanted | EV_PERSIST), on_socket, u);
    if (event != NULL) event_add(event, NULL);
  }
  curl_multi_assign(u->multi, fd, event);
  return 0;
}

static int set_timer(CURLM* multi, long timeout_ms, void* of) {
  upstream* u = of;
  (void)multi;
  if (timeout_ms < 0) {
    evtimer_del(u->timer);
  } else {
    const struct timeval after = {timeout_ms / 1000, (timeout_ms % 1000) * 1000};
    evtimer_add(u->timer, &after);
  }
  return 0;
}

int upstream_open(upstream* u, struct event_base* base) {
  u->base = base;
  u->multi = curl_multi_init();
  u->timer = evtimer_new(base, on_timer, u);
  if (u->multi == NULL || u->timer == NULL) return -ENOMEM;
  curl_multi_setopt(u->multi, CURLMOPT_SOCKETFUNCTION, watch);
  curl_multi_setopt(u->multi, CURLMOPT_SOCKETDATA, u);
  curl_multi_setopt(u->multi, CURLMOPT_TIMERFUNCTION, set_timer);
  curl_multi_setopt(u->multi, CURLMOPT_TIMERDATA, u);
  curl_multi_setopt(u->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT);
  return 0;
}

void upstream_close(upstream* u) {
  if (u->multi != NULL) curl_multi_cleanup(u->multi);
  if (u->timer != NULL) event_free(u->timer);
}

// ---- A request ---------------------------------------------------------------------------------

// The reason of a status line, which the caller gets as well.
static void keep_phrase(exchange* it, const char* line, size_t size) {
  const char* end = line + size;
  const char* at = memchr(line, ' ', size);
  if (at != NULL) at = memchr(at + 1, ' ', (size_t)(end - at - 1));
  it->phrase[0] = '\0';
  if (at == NULL) return;
  while (end > at && strchr(" \t\r\n", end[-1]) != NULL) --end;
  if (end > at + 1) snprintf(it->phrase, sizeof it->phrase, "%.*s", (int)(end - at - 1), at + 1);
}

static void keep_header(exchange* it, const char* line, const char* colon, const char* end) {
  const char* value = colon + 1;
  char *name, *text;
  while (value < end && (*value == ' ' || *value == '\t')) ++value;
  while (end > value && strchr(" \t\r\n", end[-1]) != NULL) --end;
  name = strndup(line, (size_t)(colon - line));
  text = strndup(value, (size_t)(end - value));
  // As it may go on to the caller, else not at all.
  if (name == NULL || text == NULL || evhttp_add_header(&it->answer_headers, name, text) != 0)
    it->unfit = "the engine's answer has a header that cannot be passed on";
  free(name);
  free(text);
}

// A length and chunks: the chunks hold (RFC 9112, 6.3), and libcurl has gone by them.
static void settle_length(exchange* it) {
  if (evhttp_find_header(&it->answer_headers, "transfer-encoding") == NULL) return;
  while (evhttp_remove_header(&it->answer_headers, "content-length") == 0) {
  }
}

// A line of the answer's head. An empty one ends it; a 1xx head comes before the real one. What is
// not taken ends the request.
static size_t on_header(char* line, size_t one, size_t size, void* of) {
  exchange* it = of;
  const char* colon = memchr(line, ':', size);
  long status = 0;
  (void)one;
  if (size >= 5 && strncasecmp(line, "HTTP/", 5) == 0) {
    evhttp_clear_headers(&it->answer_headers);
    curl_easy_getinfo(it->easy, CURLINFO_RESPONSE_CODE, &status);
    it->status = (int)status;
    keep_phrase(it, line, size);
    if (status == 101) it->unfit = "the engine switched to a protocol that nobody asked for";
  } else if (line[0] == ' ' || line[0] == '\t') {
    it->unfit = "the engine's answer has a folded header";
  } else if (colon != NULL) {
    keep_header(it, line, colon, line + size);
  } else if (size <= 2 && it->status >= 200 && !it->answer_begun) {  // not the end of trailers
    settle_length(it);
    it->unfit = wrong_with_headers(&it->answer_headers);
    if (it->unfit == NULL) exchange_headers_came(it);
  }
  return it->unfit == NULL ? size : 0;
}

static size_t on_data(char* data, size_t one, size_t size, void* of) {
  exchange* it = of;
  (void)one;
  if (unsent(it) > UNSENT_BYTES_MAX) {
    it->paused = 1;
    return CURL_WRITEFUNC_PAUSE;
  }
  exchange_came(it, data, size);
  return size;
}

// Where the engine is: its address, which may be a URL, and the path that the caller asked for.
static int make_url(const exchange* it, char* url, size_t url_bytes) {
  const char* address = it->endpoints[it->at].address;
  const char* path = path_of(evhttp_request_get_uri(it->request));
  const char* scheme = strstr(address, "://") == NULL ? "http://" : "";
  size_t size = strlen(address);
  while (size > 0 && address[size - 1] == '/') --size;
  return snprintf(url, url_bytes, "%s%.*s%s", scheme, (int)size, address, path) < (int)url_bytes;
}

static const char* method_of(struct evhttp_request* request) {
  switch (evhttp_request_get_command(request)) {
    case EVHTTP_REQ_POST: return "POST";
    case EVHTTP_REQ_HEAD: return "HEAD";
    case EVHTTP_REQ_PUT: return "PUT";
    case EVHTTP_REQ_DELETE: return "DELETE";
    case EVHTTP_REQ_OPTIONS: return "OPTIONS";
    case EVHTTP_REQ_PATCH: return "PATCH";
    default: return "GET";
  }
}

static void set_up(exchange* it, const char* url) {
  CURL* easy = it->easy;
  const char* method = method_of(it->request);
  curl_easy_setopt(easy, CURLOPT_URL, url);
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  curl_easy_setopt(easy, CURLOPT_NOPROXY,
                   "*");  // engines are asked directly, whatever http_proxy says
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, it->proxy->options.connect_timeout_ms);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, it);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, it);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, it);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, it->sent_headers);
  if (it->body_size > 0 || strcmp(method, "POST") == 0) {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)it->body_size);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, it->body_size > 0 ? it->body_bytes : "");
  }
  if (strcmp(method, "HEAD") == 0)
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  else
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
}

int upstream_send(upstream* u, exchange* it) {
  char url[URL_BYTES];
  int failed;
  if (!make_url(it, url, sizeof url)) return -E2BIG;
  it->easy = curl_easy_init();
  it->sent_headers = headers_to_engine(it, &failed);
  it->status = 0;
  it->unfit = NULL;
  it->paused = 0;
  if (it->easy != NULL && !failed) {
    set_up(it, url);
    if (curl_multi_add_handle(u->multi, it->easy) == CURLM_OK) return 0;
  }
  upstream_forget(u, it);
  return -ENOMEM;
}

void upstream_forget(upstream* u, exchange* it) {
  if (it->easy != NULL) {
    curl_multi_remove_handle(u->multi, it->easy);
    curl_easy_cleanup(it->easy);
  }
  curl_slist_free_all(it->sent_headers);
  it->easy = NULL;
  it->sent_headers = NULL;
}
