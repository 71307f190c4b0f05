/* plugin.h: scorers and filters of your own, in a shared library that pickd loads.
 *
 * This header is the manual. A library exports one function, pickd_plugin_describe(), and is
 * named in the scheduling configuration:
 *
 *   plugins:
 *   - type: external-scorer
 *     name: mine
 *     parameters: {path: /usr/lib/pickd/plugins/mine.so, config: "any text", budget_us: 100}
 *   schedulingProfiles:
 *   - name: default
 *     plugins: [{pluginRef: mine, weight: 2}, {pluginRef: prefix-cache-scorer}]
 *
 * Loading. The file must belong to root or to the daemon's user, and nobody else may write it.
 * pickd copies it into memory and tries the copy out in a child process first: describe, create,
 * one call, destroy. What crashes or hangs there is refused with the configuration that names it.
 * It is loaded when the configuration is, and again with each new one; a running one is never
 * replaced under the feet of a pick. Since the copy is what is loaded, $ORIGIN in its run path
 * does not work: what it needs must stand where the system looks.
 *
 * Calls. score() and filter() are called by pickd's worker threads in the middle of a pick, by
 * several at once on the same instance, and by its control thread for a dry run: they must not
 * wait, take locks that others hold long, allocate, throw, or call the kernel. Everything in a
 * pickd_plugin_pick is valid until the call returns; nothing in it may be written.
 *
 * Trust. A library is a part of the daemon: it can read and break everything in it. A call cannot
 * be taken back: one that never returns stops its worker. One that takes longer than `budget_us`,
 * or fails, or gives a score that is no number, is counted; after `failures_max` of them within
 * 1,024 calls the instance is switched off until the configuration is loaded anew, and the log
 * says so once. A scorer that is off scores nobody, a filter keeps everybody.
 *
 * Plain C11; C++ and anything that can export a C function will do. */
#ifndef PICKD_PLUGIN_H
#define PICKD_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PICKD_PLUGIN_EXPORT __attribute__((visibility("default")))
#else
#define PICKD_PLUGIN_EXPORT
#endif

/* Raised when something below changes its meaning. What is only added, is added at the ends of the
 * structures, and struct_size says whether it is there. */
#define PICKD_PLUGIN_ABI 1u

/* A text of so many bytes, without a zero behind it. */
typedef struct pickd_plugin_text {
  const char *data;
  size_t size;
} pickd_plugin_text;

/* What is known of a candidate, one number each. NaN: unknown, which is neither 0 nor full. */
typedef enum pickd_plugin_column {
  PICKD_COLUMN_MATCH_BLOCKS = 0,      /* leading blocks of the prompt it is thought to hold */
  PICKD_COLUMN_UNCACHED_TOKENS = 1,   /* prompt tokens it would have to compute */
  PICKD_COLUMN_INFLIGHT_REQUESTS = 2, /* requests there: our own, and others as told */
  PICKD_COLUMN_INFLIGHT_TOKENS = 3,   /* uncached tokens of our requests without a token */
  PICKD_COLUMN_INFLIGHT_PROMPTS = 4,  /* prompt tokens of our own requests, cached ones too */
  PICKD_COLUMN_WAITING = 5,           /* requests in the engine's queue, as told */
  PICKD_COLUMN_RUNNING = 6,           /* requests that the engine runs, as told */
  PICKD_COLUMN_KV_USE = 7,            /* share of its KV cache in use, 0 to 1, as told */
  PICKD_COLUMN_ADAPTER = 8,           /* 1 loaded, 0.8 room for it, 0.6 loading, 0 no room */
  PICKD_COLUMN_SESSION = 9,           /* 1: served the session last, as that plugin says */
  PICKD_COLUMN_PREDICTED_TTFT = 10,   /* seconds until the first token */
  PICKD_COLUMN_PREDICTED_ITL = 11,    /* seconds between tokens */
  PICKD_COLUMN_COST = 12              /* seconds that the request costs there in all */
} pickd_plugin_column;
#define PICKD_COLUMN_BIT(column) ((uint64_t)1 << (column))

/* One pick, as a plugin sees it. */
typedef struct pickd_plugin_pick {
  size_t struct_size;
  size_t count; /* of candidates, 1 to 4095 */
  /* columns[PICKD_COLUMN_X][i] is of candidate i; NULL for columns that were not declared. */
  const float *const *columns;
  size_t column_count;
  const uint16_t *ids; /* of the candidates; the same for as long as an endpoint is there */

  pickd_plugin_text model; /* empty where the request does not say, likewise below */
  pickd_plugin_text adapter;
  pickd_plugin_text session;
  pickd_plugin_text fairness;
  uint32_t prompt_tokens;
  uint32_t prompt_blocks;
  uint32_t expected_output_tokens; /* 0: unknown */
  int32_t priority;
  float slo_ttft_ms; /* 0: none */
  float slo_itl_ms;

  /* Accessors. Of a candidate: name, address, and the value of a label (data NULL: it has none).
   * Of the request: the value of an attribute, whatever the case of its name (data NULL: none). */
  pickd_plugin_text (*endpoint_name)(const struct pickd_plugin_pick *pick, size_t candidate);
  pickd_plugin_text (*endpoint_address)(const struct pickd_plugin_pick *pick, size_t candidate);
  pickd_plugin_text (*endpoint_label)(const struct pickd_plugin_pick *pick, size_t candidate,
                                      const char *key);
  pickd_plugin_text (*attribute)(const struct pickd_plugin_pick *pick, const char *name);
  const void *host; /* pickd's own */
} pickd_plugin_pick;

/* What a library is. pickd sets struct_size and zeroes the rest; pickd_plugin_describe() fills
 * it. */
typedef struct pickd_plugin {
  size_t struct_size;
  uint64_t columns; /* PICKD_COLUMN_BIT() of those it reads; only these are filled */

  /* Makes an instance for one entry under `plugins`, with its `config` text (zero-terminated,
   * empty where there is none). NULL: the text is wrong; `error`, of `error_size` bytes, then
   * holds why in words. May be NULL itself: there is nothing to make, and `self` is NULL in the
   * calls. Not called by workers. */
  void *(*create)(const char *config, char *error, size_t error_size);
  /* Ends an instance when no pick uses it any more. May be NULL. */
  void (*destroy)(void *self);

  /* Scores the candidates: scores[i] from 0, worst, to 1, best. What lies outside counts as the
   * nearer of the two; minus infinity, which stands there at the call, leaves a candidate's sum
   * as it is. One NaN and the whole scorer is left out of the pick. Returns 0; anything else: it
   * failed, and is left out. Needed for type external-scorer. */
  int (*score)(void *self, const pickd_plugin_pick *pick, float *scores);
  /* Clears keep[i], 1 at the call, of candidates that may not be picked. Returns 0; anything
   * else: it failed, and all are kept. Needed for type external-filter. */
  int (*filter)(void *self, const pickd_plugin_pick *pick, uint8_t *keep);
} pickd_plugin;

/* The one function that a library exports. Returns 0, or anything else when it does not know
 * `abi`. */
PICKD_PLUGIN_EXPORT int pickd_plugin_describe(uint32_t abi, pickd_plugin *plugin);

#ifdef __cplusplus
}
#endif

#endif
