/* Options of pickd-demo-load from the command line; knows what each means, not what it does. */
#include "load_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static void usage(FILE* out) {
  fputs(
      "Usage: pickd-demo-load --workload FILE [--socket PATH] [--model NAME] [--seconds S]\n"
      "                       [--probe-seconds S] [--retry] [--stall-seconds S] [--log]\n"
      "  --workload       conversations to play; tools/demo/workload.h has the format\n"
      "  --socket         pickd's control socket; otherwise $PICKD_SOCKET or "
      "/run/pickd/pickd.sock\n"
      "  --model          model to ask for; default demo\n"
      "  --seconds        starts no turn later than this; default: all turns\n"
      "  --probe-seconds  measures picks per second this long at the end; default 0\n"
      "  --retry          tries a failed turn elsewhere though a part of it was answered\n"
      "  --stall-seconds  without a byte for so long an attempt has failed; default: no limit\n"
      "  --log            a line for each attempt; tools/demo/attempts.h has the format\n",
      out);
}

int load_options_parse(int argc, char** argv, struct load_options* options) {
  static const struct option kOptions[] = {{"workload", required_argument, NULL, 'w'},
                                           {"socket", required_argument, NULL, 's'},
                                           {"model", required_argument, NULL, 'm'},
                                           {"seconds", required_argument, NULL, 't'},
                                           {"probe-seconds", required_argument, NULL, 'p'},
                                           {"retry", no_argument, NULL, 'r'},
                                           {"stall-seconds", required_argument, NULL, 'x'},
                                           {"log", no_argument, NULL, 'l'},
                                           {"help", no_argument, NULL, 'h'},
                                           {NULL, 0, NULL, 0}};
  *options = (struct load_options){.model = "demo", .seconds = 1e9};
  int option;
  while ((option = getopt_long(argc, argv, "", kOptions, NULL)) != -1) {
    switch (option) {
      case 'w': options->workload = optarg; break;
      case 's': options->socket = optarg; break;
      case 'm': options->model = optarg; break;
      case 't': options->seconds = atof(optarg); break;
      case 'p': options->probe_seconds = atof(optarg); break;
      case 'r': options->retry = 1; break;
      case 'x': options->stall_s = atol(optarg); break;
      case 'l': options->log = 1; break;
      case 'h': usage(stdout); return 0;
      default: usage(stderr); return 2;
    }
  }
  if (options->workload != NULL && optind == argc && options->seconds > 0 &&
      options->probe_seconds >= 0 && options->stall_s >= 0) {
    return -1;
  }
  usage(stderr);
  return 2;
}
