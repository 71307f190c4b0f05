/* SPDX-License-Identifier: Apache-2.0
 *
 * libpickd: ask the pickd daemon which endpoint should serve an LLM request.
 *
 *   pickd_client *client;
 *   pickd_result *result = pickd_result_new();
 *   pickd_request request = PICKD_REQUEST_INIT;
 *   pickd_slice prompt = {text, text_size};
 *   pickd_open(NULL, &client);
 *   request.model = pickd_string("llama-3.1-70b");
 *   request.text = &prompt;
 *   request.text_count = 1;
 *   if (pickd_pick(client, &request, PICKD_NO_DEADLINE, result) == 0)
 *     connect_to(pickd_result_address(result, 0));
 *
 * What holds for every function here
 *
 *   Errors     A function that can fail returns 0 or a negative errno value; pickd_strerror() puts it
 *              into words. Nothing is printed, no signal handler is set, no thread is started.
 *   Memory     Handles are opaque. What is passed in is copied or read before the function returns and
 *              never kept. What a result hands out lives until the result is used again or freed.
 *   Threads    A pickd_client may be used by any number of threads at once. A pickd_queue and a
 *              pickd_result belong to one thread at a time.
 *   Fork       In a child of fork() every call on a handle of the parent fails with -EOWNERDEAD;
 *              pickd_close() and the _free functions there release the child's memory only.
 *   Structs    Every options struct begins with its size. Use the _INIT macros. Zero means "default"
 *              unless a field says otherwise; a non-zero field this library does not know is refused
 *              with -E2BIG, so an option is never silently lost.
 *   Strings    pickd_slice: bytes with a length, may hold NUL bytes, need not be UTF-8.
 *
 * Error values and what a gateway makes of them
 *
 *   -EHOSTUNREACH  no ready endpoint, or none that the subset hint allows          HTTP 503
 *   -EBUSY         the filters left nobody, or the priority is negative and the
 *                  pool is saturated                                              HTTP 429
 *   -ENOENT        no endpoint serves this model; or no endpoint of this name      HTTP 404
 *   -EINVAL        an argument is malformed; see each function                     HTTP 400
 *   -E2BIG         a string, list or option struct is over its limit               HTTP 400
 *   -EEXIST        an endpoint of this name exists already
 *   -EACCES        the owner, group and mode of the daemon's socket do not let this user connect
 *   -EPERM         the daemon's configuration does not let this user do that
 *   -ESTALE        the ticket is unknown, or its request has ended already
 *   -EOWNERDEAD    a handle was used in a forked child
 *   -ETIMEDOUT     the deadline passed; nothing stays reserved. Of a pick: and no endpoint is known to
 *                  pick without the daemon
 *   -EAGAIN        the queue or ring is full: poll, then try again; as the status of a pick: this
 *                  user is over a limit of the daemon (listen.messages_per_s, listen.blocks_per_s,
 *                  reservations.per_uid_max): wait a little                        HTTP 429
 *   -ENOTCONN      the daemon is not there (any more); of a pick: nor is an endpoint known to pick
 *                  without it
 *   -EPROTO        the daemon answered something this library does not understand
 *   -EPROTONOSUPPORT  the daemon speaks another layout: install the same release of both
 *   -EMFILE        the daemon has all the clients, channels or channel memory that it may have; or it,
 *                  or this process, all the descriptors (RLIMIT_NOFILE)
 *   -ENOMEM        out of memory
 */
#ifndef PICKD_PICKD_H
#define PICKD_PICKD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PICKD_API __attribute__((visibility("default")))
#else
#define PICKD_API
#endif

/* Version of this header. pickd_version() tells that of the library that was linked. */
#define PICKD_VERSION_MAJOR 0
#define PICKD_VERSION_MINOR 1
#define PICKD_VERSION_PATCH 0

/* ---- Small types ------------------------------------------------------------------------------- */

/* Bytes that somebody else owns. `data` may be NULL when `size` is 0. */
typedef struct pickd_slice {
  const void *data;
  size_t size;
} pickd_slice;

/* A slice of a zero-terminated string; NULL gives an empty slice. Any thread. */
PICKD_API pickd_slice pickd_string(const char *text);

/* Names one picked request. Keep it to report on the request. 16 bytes, copy as you like; it stays
 * good across reconnects and daemon restarts and may be reported from any connection of the same user. */
typedef struct pickd_ticket {
  uint64_t client;
  uint64_t sequence;
} pickd_ticket;

/* "Not told", where 0 is a real value. */
#define PICKD_UNKNOWN UINT32_MAX

/* Timeouts are in microseconds. 0 = do not wait at all. From 73 years on they are none. */
#define PICKD_NO_DEADLINE INT64_MAX

typedef enum pickd_role {
  PICKD_ROLE_BOTH = 0, /* prefill and decode */
  PICKD_ROLE_DECODE = 1,
  PICKD_ROLE_PREFILL = 2,
  PICKD_ROLE_ENCODE = 3
} pickd_role;

/* ---- Client ------------------------------------------------------------------------------------ */

typedef struct pickd_client pickd_client;

typedef struct pickd_options {
  size_t struct_size;       /* sizeof(pickd_options) */
  const char *socket_path;  /* NULL: $PICKD_SOCKET, else /run/pickd/pickd.sock */
  const char *name;         /* shown to operators; NULL: the name of the program */
  uint32_t keys_max;        /* longest prompt in prefix blocks, 16..16384; 0: 2048 (131,072 tokens of
                               64 a block). The daemon may grant less. Longer prompts are cut, and the
                               result says so. */
  uint32_t channels_max;    /* picks that may wait at once in this client, 1..1024; 0: 64 */
  uint32_t spin_us;         /* how long a waiting call spins at most before it sleeps, in microseconds;
                               it spins less, down to not at all, while that fails or costs it its
                               core. 0: 50, about one wake of a sleeper. PICKD_NO_SPIN: sleep at once */
  uint32_t connect_timeout_ms; /* 0: 2,000 */
  uint32_t flags;           /* PICKD_OPEN_* */
  char *error;              /* where pickd_open() puts the words of its failure, as pickd_last_error()
                               does for a client that is open; NULL: nowhere. It is not kept. */
  size_t error_size;        /* bytes there; the words are cut to fit and terminated */
} pickd_options;

#define PICKD_OPTIONS_INIT {sizeof(pickd_options), NULL, NULL, 0, 0, 0, 0, 0, NULL, 0}

/* For pickd_options.spin_us. */
#define PICKD_NO_SPIN UINT32_MAX

/* Waiting calls never sleep, until the deadline: lowest latency for a core given away, and to be
 * used where there is one to give. The daemon has workers.busy_poll. */
#define PICKD_OPEN_BUSY_POLL 1u

/* Connects to the daemon. `options` may be NULL. On success *client must be closed with pickd_close().
 * Errors: -ENOTCONN (nobody listens at the path), -EACCES (no permission for the socket), -EPERM,
 * -EMFILE, -ETIMEDOUT, -EPROTONOSUPPORT, -EINVAL, -E2BIG, -ENOMEM. There is no client to ask for words
 * then: give `error` in the options room for them; what the daemon refuses names the setting. Any thread. */
PICKD_API int pickd_open(const pickd_options *options, pickd_client **client);

/* Closes a client and every channel of it. Reservations that were not reported on are released by the
 * daemon. No other thread may be inside a call on it, and its queues must be closed before. NULL is
 * allowed. */
PICKD_API void pickd_close(pickd_client *client);

/* What the daemon granted at open: the block size in tokens, the longest prompt in blocks, and its
 * version ("0.1.0"). Pointers may be NULL; the string lives as long as the client. Errors: -EINVAL (no
 * client), -EOWNERDEAD. Any thread. */
PICKD_API int pickd_daemon_info(pickd_client *client, uint32_t *block_tokens, uint32_t *keys_max,
                                const char **version);

/* The newest failure of a call on this client or on a queue of it in words, with what would be right
 * where that is known; of a refusal by the daemon its words, which name the setting. A result whose status
 * is an error counts as a failure. Where the newest pick succeeded without the daemon: why it did not have
 * it. Calls that were given no client or queue, or a parent's (-EOWNERDEAD), leave no words. Copied into
 * `buffer`, cut at `size`, always terminated. Returns the length without cut. Any thread; of two threads
 * that fail at the same time the later one's words stay. */
PICKD_API size_t pickd_last_error(pickd_client *client, char *buffer, size_t size);

/* ---- Request ----------------------------------------------------------------------------------- */

/* Content that stands in the prompt but is not text: an image, audio, video. `digest` names it (16 to
 * 64 bytes of any good hash), `offset` is where it stands: bytes for text, ids for token ids. Equal
 * digests at equal places share prefix blocks, different ones never do. */
typedef struct pickd_extra {
  size_t offset;
  pickd_slice digest;
} pickd_extra;

typedef struct pickd_attribute {
  pickd_slice key;
  pickd_slice value;
} pickd_attribute;

typedef struct pickd_request {
  size_t struct_size; /* sizeof(pickd_request) */

  pickd_slice model;   /* at most 255 bytes; empty: any */
  pickd_slice adapter; /* LoRA adapter, at most 255 bytes; empty: none. Its prefixes are its own. */
  pickd_slice salt;    /* any length: requests of different salts share no prefix (tenants) */

  /* The prompt, as text segments (joined without a separator; how it is cut into segments does not
   * matter) or as token ids, not both. Neither: no prefix, picked by load. */
  const pickd_slice *text;
  size_t text_count;
  const uint32_t *token_ids;
  size_t token_count;
  uint32_t prompt_tokens; /* 0: token_count, or a quarter of the bytes of text */

  /* Extras must be in order of `offset`. The stride is the size of one element of your array. */
  const pickd_extra *extras;
  size_t extra_count;
  size_t extra_stride; /* 0: sizeof(pickd_extra) */

  pickd_slice session_id;  /* at most 255 bytes; empty: none */
  pickd_slice fairness_id; /* at most 255 bytes */
  pickd_slice request_id;  /* at most 255 bytes; shown in explanations */

  /* Names or addresses the pick may go to. Heeded when PICKD_REQUEST_SUBSET is set: an empty hint then
   * means "nobody" and gives -EHOSTUNREACH. At most 512 entries. */
  const pickd_slice *subset;
  size_t subset_count;

  /* Headers and labels for plugins that ask for them. At most 32, each key and value 255 bytes.
   * x-pickd-affinity-ttl ("90s", "5m", "1h", a number of seconds): who served this prefix or session longer
   * ago than that draws the request no more. It shortens what the daemon is configured to, never lengthens. */
  const pickd_attribute *attributes;
  size_t attribute_count;
  size_t attribute_stride; /* 0: sizeof(pickd_attribute) */

  double slo_ttft_ms; /* 0: none. Negative, NaN, infinite or above one day: none, and counted. */
  double slo_itl_ms;  /* likewise. Where one is 0, the attributes x-llm-d-slo-ttft-ms and -itl-ms (or -tpot-ms,
                       * or without "llm-d-") may say it. */
  int32_t priority;   /* -32768..32767; 0 is the ordinary one, negative may be shed */
  uint32_t expected_output_tokens; /* 0: unknown */
  uint32_t endpoints_max;          /* how many endpoints the result lists, 1..8; 0: 8 */
  uint32_t flags;                  /* PICKD_REQUEST_* */

  /* Of pickd_queue_submit() only, in microseconds: what the daemon has not answered by then is
   * answered without it. 0 and PICKD_NO_DEADLINE: no deadline. Negative: -EINVAL. */
  int64_t queue_timeout_us;
} pickd_request;

#define PICKD_REQUEST_INIT \
  { sizeof(pickd_request), {NULL, 0}, {NULL, 0}, {NULL, 0}, NULL, 0, NULL, 0, 0, NULL, 0, 0, \
    {NULL, 0}, {NULL, 0}, {NULL, 0}, NULL, 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

#define PICKD_REQUEST_STREAM 1u  /* the answer will be streamed */
#define PICKD_REQUEST_SUBSET 2u  /* heed `subset` */
#define PICKD_REQUEST_DRY_RUN 4u /* pick, but reserve and remember nothing */
#define PICKD_REQUEST_MEDIA 8u   /* images, sounds or the like stand in the prompt, though not as extras: some
                                  * schedules split off their encoding */

/* ---- Result ------------------------------------------------------------------------------------ */

typedef struct pickd_result pickd_result;

/* Why the first endpoint won. */
typedef enum pickd_reason {
  PICKD_REASON_NONE = 0,
  PICKD_REASON_SCORE = 1,    /* highest score, alone */
  PICKD_REASON_TIE = 2,      /* drawn at random among equals */
  PICKD_REASON_PREFIX = 3,   /* highest score, and the longest prefix match */
  PICKD_REASON_SESSION = 4,  /* the endpoint of the session */
  PICKD_REASON_ONLY = 5,     /* the only candidate */
  PICKD_REASON_POLICY = 6,   /* a policy without scores, such as round-robin */
  PICKD_REASON_FALLBACK = 7, /* nobody is healthy: the least bad */
  PICKD_REASON_DEGRADED = 8, /* picked by the library itself: the daemon is away */
  PICKD_REASON_UNPREDICTED = 9 /* by load and prefix: no model of latencies is ready for a profile that
                                * goes by them */
} pickd_reason;

#define PICKD_RESULT_CUT 1u      /* the prompt was longer than the key limit */
#define PICKD_RESULT_DEGRADED 2u /* see PICKD_REASON_DEGRADED */

/* A result to be filled again and again; NULL when out of memory. Free it with pickd_result_free(). */
PICKD_API pickd_result *pickd_result_new(void);
PICKD_API void pickd_result_free(pickd_result *result); /* frees it; NULL is allowed */

/* Accessors. `index` 0 is the winner, the others are fallbacks in order; out of range gives NULL, 0 or
 * NaN. Strings are zero-terminated and live until the result is filled again or freed. */
PICKD_API int pickd_result_status(const pickd_result *result); /* 0 or the negative errno of the pick */
PICKD_API pickd_ticket pickd_result_ticket(const pickd_result *result); /* names the pick in reports */
PICKD_API pickd_reason pickd_result_reason(const pickd_result *result); /* why the winner won */
PICKD_API uint32_t pickd_result_flags(const pickd_result *result); /* PICKD_RESULT_CUT, _DEGRADED or both */
PICKD_API size_t pickd_result_endpoint_count(const pickd_result *result); /* 0 when the pick failed */
PICKD_API const char *pickd_result_address(const pickd_result *result, size_t index); /* of an endpoint, as configured */
PICKD_API const char *pickd_result_name(const pickd_result *result, size_t index); /* of an endpoint */
PICKD_API pickd_role pickd_result_role(const pickd_result *result, size_t index); /* of an endpoint */
PICKD_API uint32_t pickd_result_match_tokens(const pickd_result *result, size_t index); /* prompt tokens thought cached there */
PICKD_API double pickd_result_score(const pickd_result *result, size_t index); /* what the profile gave an endpoint */
PICKD_API uint32_t pickd_result_prompt_tokens(const pickd_result *result); /* prompt tokens as used for the pick */
PICKD_API double pickd_result_ttft_ms(const pickd_result *result); /* predicted time to the first token; NaN = unknown */
PICKD_API double pickd_result_itl_ms(const pickd_result *result); /* predicted time between tokens; NaN = unknown */
/* Of a request that is split: who computes the prompt, before the winner decodes. NULL: the winner does it
 * itself. Both are reserved and reported by the one ticket; the first token frees the prefill endpoint. */
PICKD_API const char *pickd_result_prefill_address(const pickd_result *result);
PICKD_API const char *pickd_result_prefill_name(const pickd_result *result); /* of the prefill endpoint; NULL: none */
PICKD_API uint32_t pickd_result_prefill_match_tokens(const pickd_result *result); /* prompt tokens thought cached at the prefill endpoint */
/* Of a request with extras whose encoding is split off: who turns them into embeddings, before the prompt is
 * computed. NULL: who computes the prompt does it. Reserved and reported by the one ticket, until the first token. */
PICKD_API const char *pickd_result_encode_address(const pickd_result *result);
PICKD_API const char *pickd_result_encode_name(const pickd_result *result); /* of the encode endpoint; NULL: none */
/* Nanoseconds this pick took in hashing the prompt, for those who watch latency. */
PICKD_API uint64_t pickd_result_hash_ns(const pickd_result *result);

/* ---- Pick -------------------------------------------------------------------------------------- */

/* Picks an endpoint and reserves its load. Waits at most `timeout_us` for the daemon. On success the
 * result lists at least one endpoint; report on its ticket, or the reservation ends with its lease.
 * On failure the result holds the status and no endpoint.
 *
 * While the daemon is away the library picks by itself: at once when it has gone, or is back and no
 * channel can be opened for want of descriptors or memory here or there, shortly before the
 * deadline when it only does not answer (with a `timeout_us` of 0: whenever it has not answered yet).
 * It reads the state that the daemon left: endpoints that serve the model and are ready, within the
 * subset; of the one with the longest prefix match and one other, drawn at random, the one with less
 * to do: tokens that are not cached there, tokens in flight as last known, and this client's own
 * picks since. An endpoint that has had twice the mean of this client's recent degraded picks is left
 * out, so that many gateways do not herd to the home of a hot prefix: it is the first fallback then. Such a result has status 0, PICKD_RESULT_DEGRADED, PICKD_REASON_DEGRADED, a ticket,
 * scores that are minus these tokens, and no prediction. An adapter's requests go where its prefixes
 * are; which engines have it loaded is not heeded, nor are sessions (the turns of a conversation meet
 * by their common prefix), fairness, priorities, SLOs, attributes and the daemon's profile. Roles are
 * told, as by the daemon, and choosing by them is the caller's: use the subset. A failure of such a pick (-ENOENT, -EHOSTUNREACH) has the
 * flag too. The library connects again by itself; picks look every 100 ms, and none waits for it.
 *
 * Errors: -EHOSTUNREACH, -EBUSY, -EAGAIN (over a limit), -ENOENT, -EINVAL (both text and token ids; extras out of order; an
 * unknown flag; endpoints_max over 8; priority out of range; a scheduling profile that there is not), -E2BIG (a string or list over its limit),
 * -ETIMEDOUT, -ENOTCONN, -EMFILE, -ENFILE and -ENOMEM (only where no endpoint is known), -EOWNERDEAD. Any thread, any number at once; more than `channels_max` wait for
 * a free channel. Allocates nothing after the first picks. */
PICKD_API int pickd_pick(pickd_client *client, const pickd_request *request, int64_t timeout_us,
                         pickd_result *result);

/* ---- Reports ----------------------------------------------------------------------------------- */

typedef enum pickd_report_kind {
  PICKD_REPORT_FIRST_TOKEN = 1, /* the first token came: its prefill is over */
  PICKD_REPORT_PROGRESS = 2,    /* the stream lives; output_tokens so far */
  PICKD_REPORT_DONE = 3,        /* the request ended well; usage as far as known */
  PICKD_REPORT_FAILED = 4,      /* the endpoint failed, which makes it suspect; the request ended */
  PICKD_REPORT_FALLBACK = 5,    /* it failed too, and `endpoint` serves now: the reservation moves */
  PICKD_REPORT_CANCELLED = 6    /* the caller went away: says nothing of the endpoint; it ended */
} pickd_report_kind;

typedef struct pickd_report_info {
  size_t struct_size; /* sizeof(pickd_report_info) */
  pickd_ticket ticket;
  pickd_report_kind kind;
  uint32_t prompt_tokens; /* from the engine's usage, or PICKD_UNKNOWN */
  uint32_t cached_tokens; /* usage.prompt_tokens_details.cached_tokens, or PICKD_UNKNOWN */
  uint32_t output_tokens; /* or PICKD_UNKNOWN */
  pickd_slice endpoint;   /* PICKD_REPORT_FALLBACK: name or address out of the result */
} pickd_report_info;

#ifdef __cplusplus
#define PICKD_REPORT_KIND_NONE_ pickd_report_kind()
#else
#define PICKD_REPORT_KIND_NONE_ ((pickd_report_kind)0)
#endif
#define PICKD_REPORT_INIT \
  { sizeof(pickd_report_info), {0, 0}, PICKD_REPORT_KIND_NONE_, PICKD_UNKNOWN, PICKD_UNKNOWN, \
    PICKD_UNKNOWN, {NULL, 0} }

/* Reports on a ticket. DONE, FAILED and CANCELLED end the request and are applied once.
 *
 * timeout_us 0: hands the report over and returns; what the daemon makes of it is counted there
 * (pickd_reports_unknown_total), -EAGAIN when no channel can take it. It waits for nothing but, a
 * millisecond, for another channel or a new connection when it needs one (50 for the first channel). A daemon that is killed takes
 * with it what it was handed and has not applied, and one that is away is told nothing. Of a ticket of this client whose end was
 * told so (0 is returned for it) the reservation is released when this client is connected again, with its next calls, however
 * many there are; what such a report said of usage or of a failure is lost. One on a ticket of another client ends with its
 * lease, and gets -ENOTCONN while the daemon is away. Otherwise
 * waits for the daemon's word: 0, -ESTALE (unknown ticket, ended already, or its endpoint is gone),
 * -ENOENT (no such fallback endpoint), -EPERM (another user's ticket), -ETIMEDOUT (it may yet be
 * applied), -EINVAL, -ENOTCONN, -EOWNERDEAD.
 *
 * Report on tickets of degraded picks like on any other: the library itself then knows that the
 * prefill is over (FIRST_TOKEN), that another endpoint serves it (FALLBACK) or that it has ended, and
 * returns 0 while the daemon is away. Once it is back it does not know such a ticket:
 * counted there, -ESTALE for who waits; not a fault. Other tickets outlive the daemon and are good
 * again when it is back: -ENOTCONN while it is away for who waits, and for FIRST_TOKEN, PROGRESS and
 * FALLBACK. Any thread. */
PICKD_API int pickd_report(pickd_client *client, const pickd_report_info *report, int64_t timeout_us);

/* ---- Asynchronous queue ------------------------------------------------------------------------ */

typedef struct pickd_queue pickd_queue;

/* Opens a queue with a channel of its own, for event loops: submit, wait on the event fd, poll.
 * `depth`: picks that may be outstanding, 1..4096; 0: 256. So many of prompts of up to a thousand tokens may
 * be submitted in a row though the daemon takes none; of longer ones fewer, the rest as it takes them.
 * A client has at most 1,024 channels, and one of them is for pickd_pick(): 1,023 queues. Close it
 * before its client. Errors: as pickd_open(); -EMFILE also when this process has no descriptor left (a
 * queue takes six), or the daemon no memory for the channel (listen.channels_mib_per_uid_max). The
 * queue belongs to one thread at a time. */
PICKD_API int pickd_queue_open(pickd_client *client, uint32_t depth, pickd_queue **queue); /* opens a queue for an event loop */
PICKD_API void pickd_queue_close(pickd_queue *queue); /* closes it, without waiting for the daemon's word; what it awaited is released. NULL is allowed */

/* Submits a pick and returns at once. While another is outstanding the daemon is not rung again: submit
 * as many as there are, then go on to poll; that is a batch. `user_data` comes back from
 * pickd_queue_poll(). `ticket` may be NULL. While the daemon is away the answer is a degraded one, as of pickd_pick(); what was outstanding
 * when it went away is answered so as well, under the ticket of its submission; answers that it had given before come first. For a daemon that is
 * there and does not answer (stopped, or far behind) the request's queue_timeout_us holds: after it
 * pickd_queue_poll() gives a degraded answer, for which the event fd becomes readable, and the daemon
 * is told to drop the pick; -ETIMEDOUT in the result where no endpoint is known. Without one such a
 * pick is answered when the daemon goes on.
 * With many picks outstanding their answers may list fewer fallbacks than asked for, never none.
 * Errors: those of the arguments of pickd_pick(), -EAGAIN (poll first), -ENOTCONN (no endpoint is known),
 * -EOWNERDEAD. */
PICKD_API int pickd_queue_submit(pickd_queue *queue, const pickd_request *request, uint64_t user_data,
                                 pickd_ticket *ticket);

/* Takes the next answer. Returns 1 when `result` (its status may be an error) and `user_data` (may be
 * NULL) were filled, 0 when there is none yet. Never waits. While picks are outstanding, call it until
 * it returns 0 before doing something else: that arms the event descriptor, and rings the daemon for
 * what was submitted last. Errors: -EINVAL, -EOWNERDEAD. */
PICKD_API int pickd_queue_poll(pickd_queue *queue, pickd_result *result, uint64_t *user_data);

/* Forgets an outstanding pick: its answer is dropped and what it reserved is released. Errors: -ESTALE
 * (the ticket is not outstanding here: it was answered, or is another queue's), -EINVAL, -EOWNERDEAD. */
PICKD_API int pickd_queue_cancel(pickd_queue *queue, pickd_ticket ticket);

/* Hands a report over without waiting; as pickd_report() with a timeout of 0, on this queue's ring, so
 * that it stays in order with its submissions; like these it does not ring while a pick is outstanding.
 * Errors: -EAGAIN (the ring is full: poll, then try again), -ENOTCONN (the daemon is away; not for the
 * end of a request of this client, which it hears of when it is back), -EINVAL, -E2BIG, -EOWNERDEAD. */
PICKD_API int pickd_queue_report(pickd_queue *queue, const pickd_report_info *report);

/* A descriptor that becomes readable when answers wait: for epoll, poll, Go's netpoller, tokio. Poll
 * it, never read it; then call pickd_queue_poll() until it returns 0. It stays the same for the life of
 * the queue and belongs to the queue. It is readable, too, when a pick's queue_timeout_us has passed;
 * a look that finds nothing is normal. Errors: -EINVAL, -EOWNERDEAD. */
PICKD_API int pickd_queue_event_fd(pickd_queue *queue);

/* ---- Endpoints --------------------------------------------------------------------------------- */

typedef struct pickd_label {
  const char *key;
  const char *value;
} pickd_label;

/* An endpoint: one engine, or one data-parallel rank of it. Strings are zero-terminated. */
typedef struct pickd_endpoint {
  size_t struct_size;  /* sizeof(pickd_endpoint) */
  const char *name;    /* unique, 1..127 bytes */
  const char *address; /* "host:port" or a URL, 1..127 bytes; handed out as it is. -EINVAL for others */
  const char *pool;    /* NULL: "default" */
  pickd_role role;
  const char *const *models; /* NULL: serves any model. At most 64. */
  size_t model_count;
  const pickd_label *labels; /* at most 64 */
  size_t label_count;
  uint64_t capacity_tokens; /* KV cache of the engine in tokens; 0: the configured capacity */

  /* What is known of its load; PICKD_UNKNOWN where it is not. */
  uint32_t waiting;    /* requests queued in the engine */
  uint32_t running;    /* requests running in the engine */
  uint32_t kv_use_ppm; /* KV cache in use, parts per million */

  /* LoRA adapters in the engine. At most 16 of each. */
  uint32_t adapters_max; /* 0: not told */
  const char *const *adapters_active;
  size_t adapter_active_count;
  const char *const *adapters_waiting;
  size_t adapter_waiting_count;
} pickd_endpoint;

#define PICKD_ENDPOINT_INIT \
  { sizeof(pickd_endpoint), NULL, NULL, NULL, PICKD_ROLE_BOTH, NULL, 0, NULL, 0, 0, PICKD_UNKNOWN, \
    PICKD_UNKNOWN, PICKD_UNKNOWN, 0, NULL, 0, NULL, 0 }

/* Changes of endpoints; they wait for the daemon and return its word. All are for the users in
 * `listen.admin_uids`, who may change any endpoint, the configuration file's too: -EPERM otherwise. Endpoints of a connection stay when it closes.
 * Any thread.
 *
 *   add      -EEXIST when the name is taken, -E2BIG when the table is full
 *   update   replaces everything told about it; -ENOENT. A new address is a new engine: its prefixes
 *            and in-flight counts start from nothing
 *   remove   its prefixes are dead when this returns; -ENOENT
 *   drain    no new picks go there, until `on` 0 takes it back (an update does not); -ENOENT
 *   reset    the engine was restarted or its cache cleared: prefixes and counts start from nothing */
PICKD_API int pickd_endpoint_add(pickd_client *client, const pickd_endpoint *endpoint); /* adds an endpoint */
PICKD_API int pickd_endpoint_update(pickd_client *client, const pickd_endpoint *endpoint); /* replaces what is known of an endpoint */
PICKD_API int pickd_endpoint_remove(pickd_client *client, const char *name); /* removes an endpoint and its prefixes */
PICKD_API int pickd_endpoint_drain(pickd_client *client, const char *name, int on); /* stops new picks to an endpoint, or lets them in again */
PICKD_API int pickd_endpoint_reset(pickd_client *client, const char *name); /* forgets what an endpoint had cached and in flight */

/* ---- Words and versions ------------------------------------------------------------------------ */

/* What an error value of this library means, in a constant string. Any thread. */
PICKD_API const char *pickd_strerror(int error);

/* What a reason means: "score", "tie", "prefix", ... Any thread. */
PICKD_API const char *pickd_reason_name(pickd_reason reason);

/* "0.1.0": the version of the library that was linked. Any thread. */
PICKD_API const char *pickd_version(void);

#ifdef __cplusplus
}
#endif

#endif /* PICKD_PICKD_H */
