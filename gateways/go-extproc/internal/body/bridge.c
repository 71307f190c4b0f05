// See bridge.h.
#include "bridge.h"

#include <errno.h>
#include <stdlib.h>

int bodygo_new(size_t body_bytes_max, pickd_body_counters* counters, bodygo_reader** reader) {
  pickd_body_options options = PICKD_BODY_OPTIONS_INIT;
  pickd_answer_options answer_options = PICKD_ANSWER_OPTIONS_INIT;
  bodygo_reader* made = calloc(1, sizeof *made);
  int code;
  if (made == NULL) return -ENOMEM;
  options.body_bytes_max = body_bytes_max;
  options.counters = counters;
  answer_options.counters = counters;
  code = pickd_body_new(&options, &made->body);
  if (code == 0) code = pickd_answer_new(&answer_options, &made->answer);
  if (code != 0) {
    bodygo_free(made);
    return code;
  }
  *reader = made;
  return 0;
}

void bodygo_free(bodygo_reader* reader) {
  pickd_answer_free(reader->answer);
  pickd_body_free(reader->body);
  free(reader);
}

// Takes headers out of their flat form; how many there were.
static size_t unpack(const unsigned char* from, size_t size, pickd_attribute* to) {
  size_t count = 0;
  while (size >= 4 && count < BODYGO_HEADERS_MAX) {
    const size_t name = from[0] | (size_t)from[1] << 8;
    const size_t value = from[2] | (size_t)from[3] << 8;
    from += 4;
    size -= 4;
    if (size < name + value) break;
    to[count].key.data = from;
    to[count].key.size = name;
    to[count].value.data = from + name;
    to[count].value.size = value;
    ++count;
    from += name + value;
    size -= name + value;
  }
  return count;
}

int bodygo_begin(bodygo_reader* reader, const char* path, size_t path_size,
                 const unsigned char* headers, size_t headers_size) {
  pickd_attribute unpacked[BODYGO_HEADERS_MAX];
  pickd_body_head head = PICKD_BODY_HEAD_INIT;
  head.path.data = path;
  head.path.size = path_size;
  head.headers = unpacked;
  head.header_count = unpack(headers, headers_size, unpacked);
  return pickd_body_begin(reader->body, &head);
}

int bodygo_add(bodygo_reader* reader, const void* data, size_t size) {
  return pickd_body_add(reader->body, data, size);
}

int bodygo_end(bodygo_reader* reader) { return pickd_body_end(reader->body); }

int bodygo_request(bodygo_reader* reader) {
  const pickd_request empty = PICKD_REQUEST_INIT;
  pickd_body_info info = PICKD_BODY_INFO_INIT;
  reader->request = empty;
  reader->media_count = pickd_body_read_info(reader->body, &info) == 0 ? info.media_count : 0;
  return pickd_body_request(reader->body, PICKD_BODY_LONGEST, &reader->request);
}

int bodygo_begin_answer(bodygo_reader* reader, int status, const unsigned char* headers,
                        size_t headers_size) {
  pickd_attribute unpacked[BODYGO_HEADERS_MAX];
  pickd_answer_head head = PICKD_ANSWER_HEAD_INIT;
  pickd_body_info info = PICKD_BODY_INFO_INIT;
  if (pickd_body_read_info(reader->body, &info) == 0) head.api = info.api;
  head.status = status;
  head.headers = unpacked;
  head.header_count = unpack(headers, headers_size, unpacked);
  return pickd_answer_begin(reader->answer, &head);
}

int bodygo_add_answer(bodygo_reader* reader, const void* data, size_t size) {
  return pickd_answer_add(reader->answer, data, size);
}

int bodygo_end_answer(bodygo_reader* reader) { return pickd_answer_end(reader->answer); }

int bodygo_report(bodygo_reader* reader) {
  const pickd_report_info empty = PICKD_REPORT_INIT;
  reader->report = empty;
  return pickd_answer_report(reader->answer, &reader->report);
}
