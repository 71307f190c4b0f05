/* A plugin library that goes wrong in a way that MISBEHAVES names, for the tests. */
#include <pickd/plugin.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#define CRASHES_AT_LOAD 1
#define HANGS_AT_LOAD 2
#define EXPORTS_NOTHING 3
#define KNOWS_NO_ABI 4
#define CRASHES_IN_CREATE 5
#define CRASHES_IN_CALL 6
#define HAS_NO_SCORE 7
#define READS_UNKNOWN_COLUMNS 8
#define EXITS_IN_CALL 9

#if MISBEHAVES == CRASHES_AT_LOAD || MISBEHAVES == HANGS_AT_LOAD
__attribute__((constructor)) static void at_load(void) {
#if MISBEHAVES == CRASHES_AT_LOAD
  raise(SIGSEGV);
#else
  for (;;) pause();
#endif
}
#endif

static void* create(const char* config, char* error, size_t error_size) {
  static int self;
  (void)config;
  (void)error;
  (void)error_size;
#if MISBEHAVES == CRASHES_IN_CREATE
  raise(SIGABRT);
#endif
  return &self;
}

static int call(void) {
#if MISBEHAVES == CRASHES_IN_CALL
  raise(SIGSEGV);
#elif MISBEHAVES == EXITS_IN_CALL
  _exit(0);
#endif
  return 0;
}

static int score(void* self, const pickd_plugin_pick* pick, float* scores) {
  (void)self;
  (void)pick;
  (void)scores;
  return call();
}

static int filter(void* self, const pickd_plugin_pick* pick, uint8_t* keep) {
  (void)self;
  (void)pick;
  (void)keep;
  return call();
}

#if MISBEHAVES == EXPORTS_NOTHING
PICKD_PLUGIN_EXPORT int pickd_plugin_something_else(pickd_plugin* plugin);
int pickd_plugin_something_else(pickd_plugin* plugin) {
#else
int pickd_plugin_describe(uint32_t abi, pickd_plugin* plugin) {
  (void)abi;
#endif
#if MISBEHAVES == READS_UNKNOWN_COLUMNS
  plugin->columns = PICKD_COLUMN_BIT(63);
#endif
  plugin->create = create;
  plugin->score = MISBEHAVES == HAS_NO_SCORE ? NULL : score;
  plugin->filter = filter;
  return MISBEHAVES == KNOWS_NO_ABI ? -1 : 0;
}
