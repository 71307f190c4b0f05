/* SPDX-License-Identifier: Apache-2.0
 *
 * libpickd-body: read request bodies into requests for libpickd, and answers into reports.
 *
 *   pickd_body_head head = PICKD_BODY_HEAD_INIT;
 *   pickd_request request = PICKD_REQUEST_INIT;
 *   head.path = pickd_string("/v1/chat/completions");
 *   pickd_body_begin(body, &head);
 *   while ((size = read_more(buffer)) > 0)
 *     pickd_body_add(body, buffer, size);
 *   pickd_body_end(body);
 *   pickd_body_request(body, PICKD_BODY_LONGEST, &request);
 *   pickd_pick(client, &request, timeout_us, result);
 *
 * What holds for every function here
 *
 *   Errors     A function that can fail returns 0 or a negative errno value; pickd_body_strerror()
 *              puts it into words. Nothing is printed, no signal handler is set, no thread is
 *              started.
 *   Memory     Handles are opaque. Make one, use it for any number of bodies, free it. What is
 *              passed in is copied or read before the function returns and never kept. What a body
 *              hands out lives until its next pickd_body_begin() or pickd_body_free().
 *   Threads    A pickd_body and a pickd_answer belong to one thread at a time; different ones are
 *              independent. pickd_body_counters may be used by any number of threads at once.
 *   Globals    There are none, and no file, socket or environment is looked at.
 *   Structs    Every struct begins with its size. Use the _INIT macros. Zero means "default" unless
 *              a field says otherwise; a non-zero field this library does not know is refused with
 *              -E2BIG.
 *   Input      Bodies, headers and answers are taken to be hostile: sizes, nesting and counts have
 *              limits, and what cannot be read gives a request without a prompt, never a crash.
 *
 * Error values and what they say of a body
 *
 *   -ENODATA       there is no body, or it is empty
 *   -EBADMSG       it is not JSON in UTF-8, is cut short, is nested too deeply or is no object;
 *                  numbers of any size, NaN and halves of surrogate pairs are taken, as by Python
 *   -E2BIG         it is over body_bytes_max; or a struct has a field that this library lacks
 *   -EOPNOTSUPP    it is compressed: the content-encoding is not "identity"
 *   -ENOENT        the path names no API known here; model and stream flag are read all the same
 *   -EINVAL        the prompt is missing or of a form the API does not have; or an argument is bad
 *   -ENOMEM        out of memory
 *
 * None of them keeps a request from being routed: pickd_body_request() then gives a request without
 * a prompt, which is picked by load, and the engine answers as it always did. Each is counted.
 *
 * The prompt
 *
 * No gateway can run the model's chat template. What is hashed instead is a stream of bytes that
 * stays the same where the engine's prompt stays the same: fields that change the template, then
 * tools, then system or developer text, then the messages in order: role, parts in order, tool
 * calls. Text is what the JSON says, without its escapes and without normalisation. Sampling
 * fields, the order of keys and spacing are not in it. Each part is framed by bytes that UTF-8 does
 * not have, so no text can pose as another message. Images, audio, video and files stand in it by a
 * digest of 128 bits of what names them (address, uuid or data), in as many bytes as `media_tokens`
 * tokens have. Identifiers that differ from one request to the next although the prompt does not
 * (of tool calls, of items) are left out, and so are cache_control marks and billing lines in
 * system text.
 */
#ifndef PICKD_BODY_H
#define PICKD_BODY_H

#include <stddef.h>
#include <stdint.h>

#include "pickd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Counters -------------------------------------------------------------------------------- */

/* Counts for all bodies and answers that were made with it: bodies, and those without a prefix by
 * reason. Their number is fixed, whatever clients send. */
typedef struct pickd_body_counters pickd_body_counters;

/* Makes counters, all 0. NULL when memory is out. Give them to handles by their options; they must
 * outlive these handles. Any thread. */
PICKD_API pickd_body_counters *pickd_body_counters_new(void);

/* Frees counters. No handle may use them any more. NULL is allowed. Any thread. */
PICKD_API void pickd_body_counters_free(pickd_body_counters *counters);

/* The name of a counter for a metrics page ("bodies_malformed_total"), in a constant string; NULL
 * from the first index on that there is not. `help` may be NULL, else it gets one line of words.
 * Any thread. */
PICKD_API const char *pickd_body_counter_name(size_t index, const char **help);

/* The value of a counter since pickd_body_counters_new(). 0 for an index that there is not. Any
 * thread, while others count. */
PICKD_API uint64_t pickd_body_counter_value(const pickd_body_counters *counters, size_t index);

/* ---- Bodies ---------------------------------------------------------------------------------- */

typedef struct pickd_body pickd_body;

typedef struct pickd_body_options {
  size_t struct_size;    /* sizeof(pickd_body_options) */
  size_t body_bytes_max; /* longer bodies are not read; 0: 32 MiB; at most 1 GiB */
  size_t keep_bytes_max; /* memory for longer bodies is given back after them; 0: 4 MiB */
  uint32_t media_tokens; /* prompt tokens that an image, a sound or a video is taken for, 1..65536;
                            0: 576 */
  uint32_t flags;        /* 0 */
  const char *session_header;      /* the header that names the session; NULL: x-session-id, then
                                      x-claude-code-session-id, then x-session-affinity */
  pickd_body_counters *counters;   /* NULL: not counted */
} pickd_body_options;

#define PICKD_BODY_OPTIONS_INIT {sizeof(pickd_body_options), 0, 0, 0, 0, NULL, NULL}

/* Makes a reader of bodies. `options` may be NULL. On success *body must be freed with
 * pickd_body_free(). It reads one body at a time: keep one for each request that a gateway handles
 * at once.
 * Errors: -EINVAL (body NULL, an unknown flag, media_tokens or body_bytes_max out of range),
 * -E2BIG, -ENOMEM. Any thread. */
PICKD_API int pickd_body_new(const pickd_body_options *options, pickd_body **body);

/* Frees a reader and all that it handed out. NULL is allowed. No other thread may be inside a call
 * on it. */
PICKD_API void pickd_body_free(pickd_body *body);

/* What comes before a body. Nothing of it is kept but the headers that are named here. */
typedef struct pickd_body_head {
  size_t struct_size; /* sizeof(pickd_body_head) */
  pickd_slice path;   /* with or without query: "/v1/chat/completions?x=1" */
  const pickd_attribute *headers; /* names in any case; only the first 256 are looked at */
  size_t header_count;
  size_t header_stride; /* 0: sizeof(pickd_attribute); else the bytes from one to the next */
  pickd_slice tenant;   /* told by the gateway, not by the client: requests of different tenants
                           share no prefix; empty: none */
  size_t body_bytes;    /* content-length, for memory at once; 0: unknown */
} pickd_body_head;

#define PICKD_BODY_HEAD_INIT {sizeof(pickd_body_head), {NULL, 0}, NULL, 0, 0, {NULL, 0}, 0}

/* Begins a body; what was read before is gone. Of the headers it takes the session (see
 * pickd_body_options), x-request-id, x-llm-d-inference-fairness-id or
 * x-gateway-inference-fairness-id, and content-encoding. Of two headers of one name the first
 * counts.
 * Errors: -EINVAL (a NULL where there is a size, a bad stride), -E2BIG, -ENOMEM. One thread at a
 * time. */
PICKD_API int pickd_body_begin(pickd_body *body, const pickd_body_head *head);

/* Adds the next piece of the body, of any size: how a body is cut does not matter. `data` may be
 * NULL when `size` is 0.
 * Errors: -EINVAL (no pickd_body_begin() before, or pickd_body_end() already), -E2BIG (the body is
 * over body_bytes_max; what has come is dropped and the rest need not be added), -ENOMEM. One
 * thread at a time. */
PICKD_API int pickd_body_add(pickd_body *body, const void *data, size_t size);

/* Says that the body is complete and reads it. On every error but -EINVAL for want of a
 * pickd_body_begin() the body can be asked on: it has no prompt then.
 * Errors: -ENODATA, -EBADMSG, -E2BIG, -EOPNOTSUPP, -ENOENT, -EINVAL, -ENOMEM; what they say of a
 * body stands at the top. One thread at a time. Allocates nothing once bodies of this size have
 * been read. */
PICKD_API int pickd_body_end(pickd_body *body);

/* Stands for an index: the longest prompt of the body. */
#define PICKD_BODY_LONGEST SIZE_MAX

/* Fills the fields of a request for pickd_pick() that the body tells: model, adapter, salt, the
 * prompt as text or token ids with extras, prompt_tokens, session_id, fairness_id, request_id, the
 * flags for streams and media, and expected_output_tokens where the body bounds it so tightly (64)
 * that the bound says something. Others stay as they are; request->struct_size must be set, as
 * PICKD_REQUEST_INIT does.
 *
 * A body with several prompts is one request to one engine, and its prompts are independent:
 * `index` chooses the one whose blocks are matched, and they are never joined. PICKD_BODY_LONGEST
 * takes the longest, and the tokens of all of them as prompt_tokens. Embeddings keep no prefix for
 * others, so by this index they have no prompt. Where nothing could be read, or nothing but blanks
 * stands in the messages, there is no prompt either: the request is picked by load.
 *
 * What the request points to lives until the next pickd_body_begin() or pickd_body_free().
 * Errors: -EINVAL (before pickd_body_end(); no such index; struct_size too small). One thread at a
 * time. */
PICKD_API int pickd_body_request(const pickd_body *body, size_t index, pickd_request *request);

/* The API of a body, by its path. */
typedef enum pickd_body_api {
  PICKD_BODY_UNKNOWN = 0,
  PICKD_BODY_COMPLETIONS = 1, /* OpenAI /v1/completions */
  PICKD_BODY_CHAT = 2,        /* OpenAI /v1/chat/completions */
  PICKD_BODY_RESPONSES = 3,   /* OpenAI /v1/responses */
  PICKD_BODY_EMBEDDINGS = 4,  /* OpenAI /v1/embeddings */
  PICKD_BODY_MESSAGES = 5,    /* Anthropic /v1/messages */
  PICKD_BODY_SGLANG = 6,      /* SGLang /generate */
  PICKD_BODY_VLLM = 7         /* vLLM /inference/v1/generate: token ids */
} pickd_body_api;

#define PICKD_BODY_STREAM 1u   /* the answer is to be streamed */
#define PICKD_BODY_USAGE 2u    /* the stream is to tell usage in its last event */
#define PICKD_BODY_OPEN_END 4u /* the answer goes on with the last message's text */

typedef struct pickd_body_info {
  size_t struct_size; /* sizeof(pickd_body_info) */
  pickd_body_api api;
  int32_t status;        /* what pickd_body_end() returned */
  uint32_t flags;        /* PICKD_BODY_STREAM, ... */
  uint32_t n;            /* answers asked for of each prompt; 1 when the body does not say */
  uint32_t max_tokens;   /* of one answer, or PICKD_UNKNOWN */
  uint32_t prompt_count; /* prompts that can be asked for by index */
  uint32_t media_count;  /* images, sounds, videos and files */
  uint32_t reserved;
  pickd_slice model;
  pickd_slice adapter;
  pickd_slice salt; /* cache_salt as it is, or framed with tenant and extra_key */
  pickd_slice session_id; /* above 255 bytes: a digest of it */
  pickd_slice request_id; /* likewise */
  pickd_slice fairness_id;
  pickd_slice bytes; /* the whole body as it came, to pass on; empty over body_bytes_max */
} pickd_body_info;

#define PICKD_BODY_INFO_INIT \
  { sizeof(pickd_body_info), PICKD_BODY_UNKNOWN, 0, 0, 0, 0, 0, 0, 0, {NULL, 0}, {NULL, 0}, \
    {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0} }

/* Tells what was read: sizes without a unit in their name are counts. Only the fields within
 * info->struct_size are filled. Slices live until the next pickd_body_begin() or pickd_body_free().
 * Errors: -EINVAL (before pickd_body_end(); struct_size too small). One thread at a time. */
PICKD_API int pickd_body_read_info(const pickd_body *body, pickd_body_info *info);

/* ---- Answers --------------------------------------------------------------------------------- */

typedef struct pickd_answer pickd_answer;

typedef struct pickd_answer_options {
  size_t struct_size;      /* sizeof(pickd_answer_options) */
  size_t answer_bytes_max; /* of an answer that is not streamed, and of one event; 0: 8 MiB; at most
                              1 GiB. What is longer is passed over and counted. */
  size_t text_bytes_max;   /* of text that is kept for pickd_body_append(); 0: 1 MiB */
  size_t keep_bytes_max;   /* memory for longer answers is given back after them; 0: 256 KiB */
  pickd_body_counters *counters; /* NULL: not counted */
} pickd_answer_options;

#define PICKD_ANSWER_OPTIONS_INIT {sizeof(pickd_answer_options), 0, 0, 0, NULL}

/* Makes a reader of answers. `options` may be NULL. On success *answer must be freed with
 * pickd_answer_free(). It reads one answer at a time.
 * Errors: -EINVAL (answer NULL, answer_bytes_max out of range), -E2BIG, -ENOMEM. Any thread. */
PICKD_API int pickd_answer_new(const pickd_answer_options *options, pickd_answer **answer);

/* Frees a reader. NULL is allowed. No other thread may be inside a call on it. */
PICKD_API void pickd_answer_free(pickd_answer *answer);

#define PICKD_ANSWER_KEEP_TEXT 1u /* keep the text, for pickd_body_append() */

typedef struct pickd_answer_head {
  size_t struct_size; /* sizeof(pickd_answer_head) */
  pickd_body_api api; /* of the request: pickd_body_info.api */
  int32_t status;     /* of HTTP, 100..599 */
  const pickd_attribute *headers; /* content-type tells a stream of events, content-encoding whether
                                     it can be read; only the first 256 are looked at */
  size_t header_count;
  size_t header_stride; /* 0: sizeof(pickd_attribute) */
  uint32_t flags;       /* PICKD_ANSWER_KEEP_TEXT */
} pickd_answer_head;

#define PICKD_ANSWER_HEAD_INIT \
  { sizeof(pickd_answer_head), PICKD_BODY_UNKNOWN, 200, NULL, 0, 0, 0 }

/* Begins an answer; what was read before is gone. Call it when the head of the answer has come.
 * Errors: -EINVAL (a NULL where there is a size, a bad stride, status out of range, an unknown flag
 * or API), -E2BIG, -ENOMEM. One thread at a time. */
PICKD_API int pickd_answer_begin(pickd_answer *answer, const pickd_answer_head *head);

/* What pickd_answer_add() returns, added up. */
#define PICKD_ANSWER_FIRST_TOKEN 1 /* the first token came with it; once an answer, streams only */
#define PICKD_ANSWER_TOKENS 2      /* tokens came with this piece */
#define PICKD_ANSWER_USAGE 4       /* it told usage */
#define PICKD_ANSWER_ENDED 8       /* the stream said that it is complete; once an answer */

/* Adds the next piece of the answer's body, cut anywhere, also inside a character or a line end.
 * Pass it on before or after, as you like. Returns what came with it: PICKD_ANSWER_FIRST_TOKEN and
 * so on, 0 when nothing of interest did, or a negative errno value. Events that cannot be read are
 * passed over and counted. A first event with a role and no text is no token.
 * Errors: -EINVAL (no pickd_answer_begin() before, or pickd_answer_end() already), -ENOMEM. One
 * thread at a time. */
PICKD_API int pickd_answer_add(pickd_answer *answer, const void *data, size_t size);

/* Says that the answer's body is complete, whether it ended well or not.
 * Errors: -EBADMSG (it is not JSON, or a stream that broke off before it said that it is complete),
 * -E2BIG (it is over answer_bytes_max), -EOPNOTSUPP (it is compressed), -EINVAL (no
 * pickd_answer_begin() before). pickd_answer_report() can be asked after each of them. One thread
 * at a time. */
PICKD_API int pickd_answer_end(pickd_answer *answer);

/* Fills kind, prompt_tokens, cached_tokens and output_tokens of a report for pickd_report(), from
 * what has come so far; the rest stays as it is. report->struct_size must be set, as
 * PICKD_REPORT_INIT does.
 *
 * While the answer goes on: PICKD_REPORT_FIRST_TOKEN after the first piece with tokens,
 * PICKD_REPORT_PROGRESS after later ones. After pickd_answer_end(): PICKD_REPORT_DONE for a status
 * below 400 and an answer that is whole; PICKD_REPORT_FAILED for a status of 500 or more but 503,
 * for a stream that broke off or told an error of the server; PICKD_REPORT_CANCELLED for the rest,
 * which says nothing of the endpoint. A gateway whose caller went away knows better than the
 * answer: it sets PICKD_REPORT_CANCELLED itself.
 *
 * Usage is put together over all events, each figure by itself: a later event that lacks one does
 * not take it away. What is not told is PICKD_UNKNOWN, but output_tokens of a stream without usage,
 * which are the events with tokens. Anthropic's prompt tokens are input_tokens with those read from
 * and written to the cache.
 * Errors: -EINVAL (no pickd_answer_begin() before; nothing to report yet; struct_size too small).
 * One thread at a time. */
PICKD_API int pickd_answer_report(const pickd_answer *answer, pickd_report_info *report);

/* Appends the answer to the prompts of its body, as the message that the caller will send with the
 * next turn: the assistant's reasoning, text and tool calls. pickd_body_request() then gives
 * prompts of which the next turn's prompt is a continuation. The answer must have been begun with
 * PICKD_ANSWER_KEEP_TEXT, and be read to its end. Only a body with one prompt of text and n = 1 has
 * a next turn. Ask pickd_body_request() again afterwards: what the body handed out before is not
 * good any more. The answer may be used again at once.
 * To tell pickd that the engine holds the answer, too, pick with this request and a subset of the
 * one endpoint that served, and report PICKD_REPORT_CANCELLED on that ticket at once; the prompt's
 * blocks stay known there.
 * Errors: -EINVAL (before pickd_body_end() or pickd_answer_end(); text not kept), -ENODATA (the
 * body has no such prompt, or the answer no text; nothing was appended), -EEXIST (an answer was
 * appended before), -E2BIG (the text is over text_bytes_max), -ENOMEM. One thread at a time. */
PICKD_API int pickd_body_append(pickd_body *body, const pickd_answer *answer);

/* ---- Words ----------------------------------------------------------------------------------- */

/* What an error value of this library means, in a constant string. Any thread. */
PICKD_API const char *pickd_body_strerror(int error);

#ifdef __cplusplus
}
#endif

#endif /* PICKD_BODY_H */
