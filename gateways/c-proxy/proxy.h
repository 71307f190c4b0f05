/* What the parts of c-proxy know of each other. One thread, one event loop; a part never waits.
 *
 *   main.c       options, the listener, start and stop
 *   exchange.c   a request from its body to its last report
 *   answers.c    what goes back to the caller, a piece at a time, and the proxy's own refusals
 *   picks.c      pickd's asynchronous queue in the event loop
 *   upstream.c   libcurl's multi handle in the event loop
 *   headers.c    which headers go through
 *   framing.c    messages whose end two readers could see in two places
 */
#ifndef C_PROXY_H
#define C_PROXY_H

#include <curl/curl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <pickd/body.h>
#include <pickd/pickd.h>
#include <stdint.h>
#include <sys/queue.h>
#include <time.h>

enum {
  ENDPOINTS_MAX = 8,
  ENDPOINT_BYTES = 128,       /* of a name or an address, with its end */
  ATTRIBUTES_MAX = 9,         /* headers that pickd hears of */
  PHRASE_BYTES = 64,          /* of an engine's status line */
  UNSENT_BYTES_MAX = 1 << 20, /* for a caller that reads slowly; the engine waits above that */
};

typedef struct proxy_options {
  const char* listen;      /* HOST:PORT */
  const char* socket;      /* the daemon's; NULL: libpickd's default */
  size_t body_bytes_max;   /* longer bodies get 413 */
  int64_t pick_timeout_us; /* after it libpickd picks by itself */
  long connect_timeout_ms; /* to an engine */
  int retries;             /* how many fallbacks are tried */
  int drain_s;             /* how long requests under way may take after SIGTERM */
  int reuse_port;          /* several processes may listen there */
} proxy_options;

struct exchange;

/* One that found the ring full, with the name that it points to. */
typedef struct kept_report {
  pickd_report_info info;
  char endpoint[ENDPOINT_BYTES];
} kept_report;

/* Picks that wait for their turn, for room, or for an answer. */
typedef struct picks {
  pickd_client* client;
  pickd_queue* queue;
  pickd_result* result;
  struct event* event;    /* the queue's descriptor */
  struct event* timer;    /* looks for room when nothing else tells of it */
  struct exchange* first; /* in line, for want of room */
  struct exchange* last;
  size_t outstanding;
  kept_report* reports; /* in order */
  size_t report_count, report_room;
} picks;

typedef struct upstream {
  CURLM* multi;
  struct event_base* base;
  struct event* timer;
} upstream;

typedef struct proxy {
  proxy_options options;
  struct event_base* base;
  struct evhttp* http;
  picks picks;
  upstream upstream;
  size_t exchange_count;
  struct exchange* idle; /* kept with their readers */
  size_t idle_count;
  struct event* drain;
  int stopping;
} proxy;

typedef enum phase {
  PHASE_IN_LINE,   /* no room in the queue yet */
  PHASE_PICKING,   /* submitted */
  PHASE_SENDING,   /* sent to an engine; nothing has gone to the caller */
  PHASE_ANSWERING, /* the answer's first byte has gone to the caller */
  PHASE_FLUSHING,  /* all of it has come, and is on its way to the caller */
} phase;

typedef struct endpoint {
  char name[ENDPOINT_BYTES];
  char address[ENDPOINT_BYTES];
} endpoint;

/* One request of a caller, and its answer. */
typedef struct exchange {
  proxy* proxy;
  struct exchange* next; /* in line, or idle */
  phase phase;

  struct evhttp_request* request; /* libevent's; it keeps the body that is sent on */
  struct evhttp_connection* connection;
  struct event* gone; /* tells that the caller has closed the connection */
  int gone_fd;
  const void* body_bytes;
  size_t body_size;

  pickd_body* body; /* what the picks point to */
  pickd_body_info info;
  pickd_request wanted;
  pickd_attribute attributes[ATTRIBUTES_MAX];
  pickd_ticket ticket;
  endpoint endpoints[ENDPOINTS_MAX];
  size_t endpoint_count, at;    /* `at`: who has it now */
  char prefill[ENDPOINT_BYTES]; /* addresses of the stages that others do; empty: none */
  char encode[ENDPOINT_BYTES];
  int reserved;  /* the ticket has to be reported on */
  time_t told_s; /* when it was reported on last */

  CURL* easy;
  struct curl_slist* sent_headers;
  struct evkeyvalq answer_headers;
  int status; /* of the engine's answer; 0: none has come */
  char phrase[PHRASE_BYTES];
  const char* unfit; /* why that answer cannot be passed on; NULL: it can */
  int paused;        /* the engine waits for the caller */
  pickd_answer* answer;
  int answer_begun;
} exchange;

/* main.c */
void proxy_drained(proxy* p); /* nothing is under way any more */

/* exchange.c */
void exchange_begin(struct evhttp_request* request, void* proxy_of_it); /* libevent's callback */
void exchange_picked(exchange* it, const pickd_result* result);
void exchange_refused(exchange* it, int code); /* a pick that libpickd did not take */
void exchange_headers_came(exchange* it);
void exchange_came(exchange* it, const void* data, size_t size);
void exchange_ended(exchange* it, CURLcode how);
void exchange_free_idle(proxy* p);

/* answers.c */
void answer_start(exchange* it);
void answer_piece(exchange* it, const void* data, size_t size);
void answer_end(exchange* it);
void answer_break(exchange* it); /* so that the caller sees that it is not whole */
void refuse(struct evhttp_request* request, int status, const char* reason, const char* why);
void refuse_pick(struct evhttp_request* request, int code);
size_t unsent(const exchange* it);

/* picks.c */
int picks_open(picks* p, const proxy_options* options, struct event_base* base);
void picks_close(picks* p);
void picks_ask(picks* p, exchange* it);
void picks_forget(picks* p, exchange* it);
void picks_report(picks* p, const pickd_report_info* report);

/* upstream.c */
int upstream_open(upstream* u, struct event_base* base);
void upstream_close(upstream* u);
int upstream_send(upstream* u, exchange* it); /* to it->endpoints[it->at]; 0 or -ENOMEM */
void upstream_forget(upstream* u, exchange* it);

/* headers.c */
int header_goes_on(const struct evkeyvalq* headers, const char* name); /* it is one of them */
struct curl_slist* headers_to_engine(const exchange* it, int* failed);
size_t attributes_of(struct evhttp_request* request, pickd_attribute* to, size_t to_max);

/* framing.c */
const char* path_of(const char* target);
const char* wrong_with_headers(const struct evkeyvalq* headers);
const char* wrong_with_request(struct evhttp_request* request);

#endif /* C_PROXY_H */
