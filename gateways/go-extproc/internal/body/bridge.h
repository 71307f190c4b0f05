/* What Go calls in place of libpickd-body's functions: one flat piece of memory for what goes in,
 * and one handle whose fields Go reads. One thread at a time. */
#ifndef BODYGO_BRIDGE_H
#define BODYGO_BRIDGE_H

#include <pickd/body.h>

enum { BODYGO_HEADERS_MAX = 16 };

typedef struct bodygo_reader {
  pickd_body* body;
  pickd_answer* answer;
  pickd_report_info report; /* filled by bodygo_report() */
  pickd_request request;    /* filled by bodygo_request() */
  uint32_t media_count;     /* the same: images, sounds, videos and files of the prompt */
} bodygo_reader;

/* body_bytes_max as in pickd_body_options. */
int bodygo_new(size_t body_bytes_max, pickd_body_counters* counters, bodygo_reader** reader);
void bodygo_free(bodygo_reader* reader);

/* `headers`: for each its name's and its value's length (two bytes each, low one first), then
 * both. */
int bodygo_begin(bodygo_reader* reader, const char* path, size_t path_size,
                 const unsigned char* headers, size_t headers_size);
int bodygo_add(bodygo_reader* reader, const void* data, size_t size);
int bodygo_end(bodygo_reader* reader);
int bodygo_request(bodygo_reader* reader);

/* The answer to the body that was read last; headers as above. */
int bodygo_begin_answer(bodygo_reader* reader, int status, const unsigned char* headers,
                        size_t headers_size);
int bodygo_add_answer(bodygo_reader* reader, const void* data, size_t size);
int bodygo_end_answer(bodygo_reader* reader);
int bodygo_report(bodygo_reader* reader);

#endif /* BODYGO_BRIDGE_H */
