/* Options of pickd-demo-load. */
#ifndef PICKD_DEMO_LOAD_OPTIONS_H
#define PICKD_DEMO_LOAD_OPTIONS_H

struct load_options {
  const char* workload; /* file; never NULL after a good parse */
  const char* socket;   /* NULL: pickd's default */
  const char* model;
  double seconds;       /* no turn starts later */
  double probe_seconds; /* picks per second are measured this long at the end */
  int retry;            /* a failed turn is tried elsewhere though a part of it was answered */
  long stall_s;         /* without a byte for so long an attempt has failed; 0: no limit */
  int log;              /* a line for each attempt */
};

/* -1: go on. Otherwise the exit code, after the usage was printed. */
int load_options_parse(int argc, char** argv, struct load_options* options);

#endif
