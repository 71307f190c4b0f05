/* Server-sent events of a streamed completion. See sse.h. */
#include "sse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buffer_append(struct buffer* buffer, const void* data, size_t size) {
  if (size == 0) return;
  if (buffer->size + size > buffer->capacity) {
    size_t capacity = buffer->capacity * 2;
    if (capacity < buffer->size + size) capacity = buffer->size + size + 256;
    buffer->data = realloc(buffer->data, capacity);
    if (buffer->data == NULL) {
      fputs("pickd-demo-load: out of memory\n", stderr);
      exit(1);
    }
    buffer->capacity = capacity;
  }
  memcpy(buffer->data + buffer->size, data, size);
  buffer->size += size;
}

void buffer_text(struct buffer* buffer, const char* text) {
  buffer_append(buffer, text, strlen(text));
}

void buffer_json(struct buffer* buffer, const char* text, size_t size) {
  size_t plain = 0; /* start of the run that needs no escape */
  for (size_t i = 0; i < size; i++) {
    const unsigned char c = (unsigned char)text[i];
    if (c != '"' && c != '\\' && c >= 0x20) continue;
    char escape[8];
    snprintf(escape, sizeof escape, "\\u%04x", c);
    buffer_append(buffer, text + plain, i - plain);
    buffer_text(buffer, escape);
    plain = i + 1;
  }
  buffer_append(buffer, text + plain, size - plain);
}

void buffer_free(struct buffer* buffer) {
  free(buffer->data);
  memset(buffer, 0, sizeof *buffer);
}

/* Where the value of `"key":` begins in `json`, or NULL. A quote within a JSON string is escaped,
 * so the text of a token cannot pass for a key. */
static char* value_of(char* json, const char* key) {
  char pattern[64];
  snprintf(pattern, sizeof pattern, "\"%s\":", key);
  char* found = strstr(json, pattern);
  if (found == NULL) return NULL;
  found += strlen(pattern);
  while (*found == ' ') found++;
  return found;
}

static uint32_t number_of(char* json, const char* key) {
  const char* value = value_of(json, key);
  return value == NULL ? 0 : (uint32_t)strtoul(value, NULL, 10);
}

static size_t put_utf8(char* out, unsigned code) {
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  if (code < 0x800) {
    out[0] = (char)(0xC0 | code >> 6);
    out[1] = (char)(0x80 | (code & 0x3F));
    return 2;
  }
  out[0] = (char)(0xE0 | code >> 12);
  out[1] = (char)(0x80 | (code >> 6 & 0x3F));
  out[2] = (char)(0x80 | (code & 0x3F));
  return 3;
}

/* Unescapes the JSON string that begins after its quote, in place: it never gets longer. */
static size_t unescape(char* text) {
  const char* in = text;
  char* out = text;
  while (*in != '"' && *in != '\0') {
    if (*in != '\\' || in[1] == '\0') {
      *out++ = *in++;
      continue;
    }
    const char kind = in[1];
    in += 2;
    if (kind == 'u' && strnlen(in, 4) == 4) {
      char digits[5] = {in[0], in[1], in[2], in[3], '\0'};
      out += put_utf8(out, (unsigned)strtoul(digits, NULL, 16));
      in += 4;
    } else {
      static const char kFrom[] = "nrtbf";
      static const char kTo[] = "\n\r\t\b\f";
      const char* at = strchr(kFrom, kind);
      *out++ = at == NULL ? kind : kTo[at - kFrom];
    }
  }
  return (size_t)(out - text);
}

void sse_feed(struct sse* sse, const char* data, size_t size) {
  struct buffer* bytes = &sse->bytes;
  if (sse->consumed > 0) {
    memmove(bytes->data, bytes->data + sse->consumed, bytes->size - sse->consumed);
    bytes->size -= sse->consumed;
    sse->consumed = 0;
  }
  buffer_append(bytes, data, size);
}

int sse_next(struct sse* sse, struct sse_event* event) {
  for (;;) {
    if (sse->consumed == sse->bytes.size) return 0;
    char* line = sse->bytes.data + sse->consumed;
    char* end = memchr(line, '\n', sse->bytes.size - sse->consumed);
    if (end == NULL) return 0;
    sse->consumed += (size_t)(end - line) + 1;
    *end = '\0';
    if (strncmp(line, "data:", 5) != 0) continue;
    line += line[5] == ' ' ? 6 : 5;

    memset(event, 0, sizeof *event);
    event->done = strncmp(line, "[DONE]", 6) == 0;
    char* usage = value_of(line, "usage");
    if (usage != NULL && *usage == '{') {
      event->has_usage = 1;
      event->prompt_tokens = number_of(usage, "prompt_tokens");
      event->cached_tokens = number_of(usage, "cached_tokens");
      event->output_tokens = number_of(usage, "completion_tokens");
    }
    char* text = value_of(line, "text");
    if (text != NULL && *text == '"') {
      event->text = text + 1;
      event->text_size = unescape(text + 1);
    }
    return 1;
  }
}

void sse_reset(struct sse* sse) {
  sse->bytes.size = 0;
  sse->consumed = 0;
}
