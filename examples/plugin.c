/* An external plugin for pickd: engines with room, close to the caller.
 *
 * As a scorer it prefers endpoints whose KV cache is emptiest, and those that carry the label
 * `zone` with the value of the request's attribute `x-zone`. As a filter it drops endpoints whose
 * KV cache is fuller than the share in `config` (such as "0.9"); when all are, it keeps all.
 *
 *   plugins:
 *   - type: external-filter
 *     name: room
 *     parameters: {path: /usr/lib/pickd/plugins/example_plugin.so, config: "0.9"}
 *   - type: external-scorer
 *     name: near-and-empty
 *     parameters: {path: /usr/lib/pickd/plugins/example_plugin.so}
 *
 * See pickd/plugin.h for what a plugin may do. */
#include <math.h>
#include <pickd/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct room {
  float kv_use_max;
} room;

static void* create(const char* config, char* error, size_t error_size) {
  char* end = NULL;
  float kv_use_max = *config == '\0' ? 1.0F : strtof(config, &end);
  room* made;
  if ((end != NULL && *end != '\0') || !(kv_use_max > 0 && kv_use_max <= 1)) {
    snprintf(error, error_size, "\"%s\" is no share of a KV cache: above 0, at most 1", config);
    return NULL;
  }
  made = malloc(sizeof *made);
  if (made == NULL) {
    snprintf(error, error_size, "out of memory");
    return NULL;
  }
  made->kv_use_max = kv_use_max;
  return made;
}

static void destroy(void* self) { free(self); }

static int same(pickd_plugin_text a, pickd_plugin_text b) {
  return a.data != NULL && b.data != NULL && a.size == b.size &&
         memcmp(a.data, b.data, a.size) == 0;
}

static int score(void* self, const pickd_plugin_pick* pick, float* scores) {
  const float* kv_use = pick->columns[PICKD_COLUMN_KV_USE];
  const pickd_plugin_text zone = pick->attribute(pick, "x-zone");
  size_t i;
  (void)self;
  for (i = 0; i < pick->count; ++i) {
    if (isnan(kv_use[i])) continue; /* unknown: it keeps the sum it has */
    scores[i] = 0.5F * (1.0F - kv_use[i]);
    if (same(pick->endpoint_label(pick, i, "zone"), zone)) scores[i] += 0.5F;
  }
  return 0;
}

static int filter(void* self, const pickd_plugin_pick* pick, uint8_t* keep) {
  const room* own = self;
  const float* kv_use = pick->columns[PICKD_COLUMN_KV_USE];
  size_t kept = 0;
  size_t i;
  for (i = 0; i < pick->count; ++i) {
    keep[i] = !(kv_use[i] > own->kv_use_max); /* unknown is not above */
    kept += keep[i];
  }
  if (kept == 0) memset(keep, 1, pick->count);
  return 0;
}

int pickd_plugin_describe(uint32_t abi, pickd_plugin* plugin) {
  if (abi != PICKD_PLUGIN_ABI || plugin->struct_size < sizeof *plugin) return -1;
  plugin->columns = PICKD_COLUMN_BIT(PICKD_COLUMN_KV_USE);
  plugin->create = create;
  plugin->destroy = destroy;
  plugin->score = score;
  plugin->filter = filter;
  return 0;
}
