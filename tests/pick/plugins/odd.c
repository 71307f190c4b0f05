/* A plugin library whose calls do what its `config` says, for the tests. */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <pickd/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum mode { NAN_SCORE, INFINITE, OUT_OF_RANGE, FAILS, SLOW, SOMETIMES, DROPS_ALL, MODES };
static const char* const kModes[MODES] = {"nan",  "infinite",  "out-of-range", "fails",
                                          "slow", "sometimes", "drops-all"};

typedef struct odd {
  enum mode mode;
  unsigned calls;
} odd;

static void* create(const char* config, char* error, size_t error_size) {
  int mode;
  for (mode = 0; mode < MODES; ++mode) {
    if (strcmp(config, kModes[mode]) == 0) {
      odd* made = calloc(1, sizeof *made);
      if (made != NULL) made->mode = (enum mode)mode;
      return made;
    }
  }
  if (strcmp(config, "colours") == 0) {
    snprintf(error, error_size, "\x1b[31mred\nforged\x7f");
    return NULL;
  }
  snprintf(error, error_size, "there is no mode \"%s\"", config);
  return NULL;
}

/* Three milliseconds of work. */
static void dawdle(void) {
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < 3000000L);
}

static int score(void* self, const pickd_plugin_pick* pick, float* scores) {
  odd* own = self;
  size_t i;
  ++own->calls;
  for (i = 0; i < pick->count; ++i) scores[i] = i == 0 ? 1.0F : 0.0F;
  switch (own->mode) {
    case NAN_SCORE: scores[pick->count - 1] = NAN; break;
    case INFINITE: scores[0] = INFINITY; break;
    case OUT_OF_RANGE:
      for (i = 0; i < pick->count; ++i) scores[i] = i == 0 ? 7.0F : -7.0F;
      break;
    case FAILS: return 1;
    case SLOW: dawdle(); break;
    case SOMETIMES: return own->calls % 300 == 0;
    default: break;
  }
  return 0;
}

static int filter(void* self, const pickd_plugin_pick* pick, uint8_t* keep) {
  odd* own = self;
  memset(keep, 0, pick->count);
  if (own->mode == SLOW) dawdle();
  return own->mode == FAILS;
}

int pickd_plugin_describe(uint32_t abi, pickd_plugin* plugin) {
  (void)abi;
  plugin->create = create;
  plugin->destroy = free;
  plugin->score = score;
  plugin->filter = filter;
  return 0;
}
