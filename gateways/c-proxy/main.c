// c-proxy: a reverse proxy for LLM engines that asks pickd where each request goes. This file:
// options, the listener, start and stop.
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proxy.h"

enum { START_TRIES = 100 };  // ten seconds

static const char usage[] =
    "usage: c-proxy [OPTION...]\n"
    "  --listen HOST:PORT        where callers come; port 0: any  (127.0.0.1:8080)\n"
    "  --socket PATH             the daemon's                     ($PICKD_SOCKET, else "
    "libpickd's)\n"
    "  --body-max-bytes N        longer bodies get 413            (33554432)\n"
    "  --pick-timeout-ms N       then libpickd picks by itself    (100)\n"
    "  --connect-timeout-ms N    to an engine                     (2000)\n"
    "  --retries N               fallbacks that are tried         (3)\n"
    "  --drain-s N               for requests under way at SIGTERM (30)\n"
    "  --reuse-port              several processes may listen there\n";

static _Noreturn void stop_with(const char* what, const char* why) {
  fprintf(stderr, "c-proxy: %s: %s\n", what, why);
  exit(1);
}

static long number(const char* option, const char* text, long max) {
  char* end;
  const long value = strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value < 0 || value > max) {
    fprintf(stderr, "c-proxy: %s %s: a number from 0 to %ld\n", option, text, max);
    exit(2);
  }
  return value;
}

static proxy_options read_options(int argc, char** argv) {
  static const struct option known[] = {
      {"listen", required_argument, NULL, 'l'},
      {"socket", required_argument, NULL, 's'},
      {"body-max-bytes", required_argument, NULL, 'b'},
      {"pick-timeout-ms", required_argument, NULL, 'p'},
      {"connect-timeout-ms", required_argument, NULL, 'c'},
      {"retries", required_argument, NULL, 'r'},
      {"drain-s", required_argument, NULL, 'd'},
      {"reuse-port", no_argument, NULL, 'u'},
      {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0},
  };
  proxy_options o = {"127.0.0.1:8080", NULL, 32 << 20, 100000, 2000, 3, 30, 0};
  int found;
  while ((found = getopt_long(argc, argv, "h", known, NULL)) != -1) {
    switch (found) {
      case 'l': o.listen = optarg; break;
      case 's': o.socket = optarg; break;
      case 'b': o.body_bytes_max = (size_t)number("--body-max-bytes", optarg, 1L << 30); break;
      case 'p': o.pick_timeout_us = 1000 * number("--pick-timeout-ms", optarg, 600000); break;
      case 'c': o.connect_timeout_ms = number("--connect-timeout-ms", optarg, 600000); break;
      case 'r': o.retries = (int)number("--retries", optarg, ENDPOINTS_MAX); break;
      case 'd': o.drain_s = (int)number("--drain-s", optarg, 86400); break;
      case 'u': o.reuse_port = 1; break;
      case 'h': fputs(usage, stdout); exit(0);
      default: fputs(usage, stderr); exit(2);
    }
  }
  if (optind < argc) {
    fputs(usage, stderr);
    exit(2);
  }
  return o;
}

// Reads HOST:PORT. libevent's reader refuses port 0, which is any free one.
static int read_address(const char* text, struct sockaddr_storage* to, int* bytes) {
  char copy[128];
  const size_t size = strlen(text);
  const int any = size > 2 && strcmp(text + size - 2, ":0") == 0;
  if (size >= sizeof copy) return -1;
  memcpy(copy, text, size + 1);
  if (any) copy[size - 1] = '1';
  if (evutil_parse_sockaddr_port(copy, (struct sockaddr*)to, bytes) != 0) return -1;
  if (any && to->ss_family == AF_INET6)
    ((struct sockaddr_in6*)to)->sin6_port = 0;
  else if (any)
    ((struct sockaddr_in*)to)->sin_port = 0;
  return 0;
}

static void listen_at(proxy* p, struct sockaddr_storage address, int bytes) {
  struct evconnlistener* listener;
  ev_socklen_t size = sizeof address;
  unsigned flags = LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC;
  if (p->options.reuse_port) flags |= LEV_OPT_REUSEABLE_PORT;
  listener =
      evconnlistener_new_bind(p->base, NULL, NULL, flags, -1, (struct sockaddr*)&address, bytes);
  if (listener == NULL || evhttp_bind_listener(p->http, listener) == NULL) {
    stop_with(p->options.listen, strerror(errno));
  }
  getsockname(evconnlistener_get_fd(listener), (struct sockaddr*)&address, &size);
  printf("listening on %d\n",
         ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6*)&address)->sin6_port
                                             : ((struct sockaddr_in*)&address)->sin_port));
  fflush(stdout);
}

// The first signal lets requests under way end, the second does not.
static void on_signal(evutil_socket_t number_of_it, short what, void* of) {
  proxy* p = of;
  const struct timeval patience = {p->options.drain_s, 0};
  (void)number_of_it;
  (void)what;
  if (p->stopping) event_base_loopbreak(p->base);
  p->stopping = 1;
  if (p->exchange_count == 0) proxy_drained(p);
  evtimer_add(p->drain, &patience);
}

// With a moment for refusals that are on their way out.
void proxy_drained(proxy* p) {
  const struct timeval moment = {0, 100000};
  event_base_loopexit(p->base, &moment);
}

static void out_of_patience(evutil_socket_t fd, short what, void* of) {
  (void)fd;
  (void)what;
  event_base_loopbreak(((proxy*)of)->base);
}

// The daemon may be started after the proxy.
static void connect_to_pickd(proxy* p) {
  const struct timespec pause = {0, 100000000};
  int tries, code;
  for (tries = 0; (code = picks_open(&p->picks, &p->options, p->base)) == -ENOTCONN; ++tries) {
    if (tries == START_TRIES) break;
    if (tries == 0) fprintf(stderr, "c-proxy: waiting for the daemon\n");
    nanosleep(&pause, NULL);
  }
  if (code != 0) stop_with("pickd", pickd_strerror(code));
}

int main(int argc, char** argv) {
  static proxy p;
  struct event *terminate, *interrupt;
  struct sockaddr_storage address;
  int address_bytes = sizeof address;
  p.options = read_options(argc, argv);
  if (read_address(p.options.listen, &address, &address_bytes) != 0) {
    stop_with(p.options.listen, "--listen wants an address and a port, as 127.0.0.1:8080");
  }
  signal(SIGPIPE, SIG_IGN);
  curl_global_init(CURL_GLOBAL_DEFAULT);
  p.base = event_base_new();
  p.http = p.base == NULL ? NULL : evhttp_new(p.base);
  if (p.http == NULL || upstream_open(&p.upstream, p.base) != 0)
    stop_with("start", "out of memory");
  evhttp_set_max_body_size(p.http, (ev_ssize_t)p.options.body_bytes_max);
  evhttp_set_max_headers_size(p.http, 64 << 10);
  evhttp_set_default_content_type(p.http, NULL);
  evhttp_set_allowed_methods(p.http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD |
                                         EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS |
                                         EVHTTP_REQ_PATCH);
  evhttp_set_gencb(p.http, exchange_begin, &p);
  terminate = evsignal_new(p.base, SIGTERM, on_signal, &p);
  interrupt = evsignal_new(p.base, SIGINT, on_signal, &p);
  p.drain = evtimer_new(p.base, out_of_patience, &p);
  if (terminate == NULL || interrupt == NULL || p.drain == NULL)
    stop_with("start", "out of memory");
  event_add(terminate, NULL);
  event_add(interrupt, NULL);
  connect_to_pickd(&p);
  listen_at(&p, address, address_bytes);
  event_base_dispatch(p.base);

  // What is still under way breaks, and each reports that, so this comes before the queue closes.
  evhttp_free(p.http);
  upstream_close(&p.upstream);
  picks_close(&p.picks);
  exchange_free_idle(&p);
  event_free(terminate);
  event_free(interrupt);
  event_free(p.drain);
  event_base_free(p.base);
  curl_global_cleanup();
  return 0;
}
