// The C functions on bodies: arguments are checked here.
#include <errno.h>

#include <cstddef>

#include "libbody/body.hpp"
#include "libbody/memory.hpp"
#include "libbody/sized_struct.hpp"

using pickd::body::BodyOptions;
using pickd::body::Headers;
using pickd::body::is_slice;
using pickd::body::view;

int pickd_body_new(const pickd_body_options* options, pickd_body** body) {
  if (body == nullptr) return -EINVAL;
  *body = nullptr;
  pickd_body_options given = PICKD_BODY_OPTIONS_INIT;
  if (options != nullptr) {
    if (const int code = pickd::body::read_sized(options, &given); code != 0) return code;
  }
  if (given.flags != 0 || given.media_tokens > pickd::body::kMediaTokensMax ||
      given.body_bytes_max > pickd::body::kBodyBytesMax) {
    return -EINVAL;
  }
  BodyOptions made;
  if (given.body_bytes_max != 0) made.body_bytes_max = given.body_bytes_max;
  if (given.keep_bytes_max != 0) made.keep_bytes_max = given.keep_bytes_max;
  if (given.media_tokens != 0) made.media_tokens = given.media_tokens;
  made.counters = given.counters;
  auto* fresh = pickd::body::make_object<pickd_body>();
  if (fresh == nullptr) return -ENOMEM;
  const char* header = given.session_header == nullptr ? "" : given.session_header;
  if (!fresh->init(made, header)) {
    delete fresh;
    return -ENOMEM;
  }
  *body = fresh;
  return 0;
}

void pickd_body_free(pickd_body* body) { delete body; }

int pickd_body_begin(pickd_body* body, const pickd_body_head* head) {
  if (body == nullptr || head == nullptr) return -EINVAL;
  pickd_body_head given;
  if (const int code = pickd::body::read_sized(head, &given); code != 0) return code;
  Headers headers;
  if (!is_slice(given.path) || !is_slice(given.tenant)) return -EINVAL;
  if (const int code = headers.set(given.headers, given.header_count, given.header_stride);
      code != 0) {
    return code;
  }
  return body->begin(view(given.path), headers, view(given.tenant), given.body_bytes);
}

int pickd_body_add(pickd_body* body, const void* data, size_t size) {
  if (body == nullptr || (data == nullptr && size != 0)) return -EINVAL;
  return body->add(data, size);
}

int pickd_body_end(pickd_body* body) { return body == nullptr ? -EINVAL : body->end(); }

int pickd_body_request(const pickd_body* body, size_t index, pickd_request* request) {
  // The first version of pickd_request: a shorter one has never been.
  constexpr std::size_t kFirstBytes =
      offsetof(pickd_request, queue_timeout_us) + sizeof(request->queue_timeout_us);
  if (body == nullptr || request == nullptr || !body->has_ended() ||
      request->struct_size < kFirstBytes) {
    return -EINVAL;
  }
  return body->request(index, *request);
}

int pickd_body_read_info(const pickd_body* body, pickd_body_info* info) {
  if (body == nullptr || info == nullptr || !body->has_ended()) return -EINVAL;
  pickd_body_info made = PICKD_BODY_INFO_INIT;
  body->info(made);
  return pickd::body::write_sized(made, info);
}

const char* pickd_body_strerror(int error) {
  switch (error < 0 ? -error : error) {
    case 0: return "no error";
    case ENODATA: return "there is no body, or nothing to append";
    case EBADMSG: return "not JSON in UTF-8, or cut short, or nested too deeply";
    case E2BIG: return "over its limit";
    case EOPNOTSUPP: return "compressed: the content-encoding is not identity";
    case ENOENT: return "the path names no API that is known here";
    case EINVAL:
      return "the prompt is missing or has a form that the API does not have, or an argument is "
             "bad";
    case EEXIST: return "an answer was appended before";
    case ENOMEM: return "out of memory";
    default: return "unknown error";
  }
}
