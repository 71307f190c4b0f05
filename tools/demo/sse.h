/* Server-sent events of a streamed completion: bytes in, tokens and usage out. Knows nothing of
 * sockets and of picks. */
#ifndef PICKD_DEMO_SSE_H
#define PICKD_DEMO_SSE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that grow. All zero = empty. */
struct buffer {
  char* data;
  size_t size;
  size_t capacity;
};

/* Appends; ends the program when there is no memory: a load driver that lost bytes measures
 * nothing. */
void buffer_append(struct buffer* buffer, const void* data, size_t size);
void buffer_text(struct buffer* buffer, const char* text);
/* Appends `text` with what JSON strings need escaped. */
void buffer_json(struct buffer* buffer, const char* text, size_t size);
void buffer_free(struct buffer* buffer);

struct sse_event {
  const char*
      text; /* of the token, or NULL; lives until the next call of sse_next() or sse_feed() */
  size_t text_size;
  int has_usage;
  uint32_t prompt_tokens;
  uint32_t cached_tokens;
  uint32_t output_tokens;
  int done; /* the stream said that it is complete */
};

struct sse {
  struct buffer bytes;
  size_t consumed;
};

void sse_feed(struct sse* sse, const char* data, size_t size);
/* 1: `event` holds the next one. 0: feed more bytes. */
int sse_next(struct sse* sse, struct sse_event* event);
void sse_reset(struct sse* sse);

#endif
