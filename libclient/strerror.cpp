// Words for error values and reasons, and the version: constant tables, nothing else.
#include <errno.h>

#include <cstring>

#include "libclient/sized_struct.hpp"
#include "pickd/pickd.h"

#define PICKD_TEXT2(x) #x
#define PICKD_TEXT(x) PICKD_TEXT2(x)

namespace {

struct ErrorWords {
  int error;
  const char* words;
};

constexpr ErrorWords kErrorWords[] = {
    {0, "success"},
    {EHOSTUNREACH, "no ready endpoint, or none that the subset hint allows"},
    {EBUSY, "the filters left no endpoint: the pool is saturated"},
    {ENOENT, "no endpoint serves this model, or no endpoint has this name"},
    {EINVAL, "an argument is malformed"},
    {E2BIG, "a string, a list or an option struct is over its limit"},
    {EEXIST, "an endpoint of this name exists already"},
    {EPERM, "the daemon's configuration does not let this user do that"},
    {EACCES, "no permission to connect to the daemon's socket"},
    {ESTALE, "the ticket is unknown, or its request has ended already"},
    {EOWNERDEAD, "the handle belongs to the parent of this forked process"},
    {ETIMEDOUT, "the deadline passed"},
    {EAGAIN, "the queue or ring is full, or this user is over a limit of the daemon: try again"},
    {ENOTCONN, "the daemon is not there"},
    {EPROTO, "the daemon answered something this library does not understand"},
    {EPROTONOSUPPORT, "the daemon speaks another layout"},
    {EMFILE,
     "the daemon has all the clients, channels or channel memory that it may have, or this process "
     "all its descriptors"},
    {ENOMEM, "out of memory"},
};

constexpr const char* kReasonNames[] = {"none", "score",  "tie",      "prefix",   "session",
                                        "only", "policy", "fallback", "degraded", "unpredicted"};

}  // namespace

extern "C" {

pickd_slice pickd_string(const char* text) {
  return text == nullptr ? pickd_slice{nullptr, 0} : pickd_slice{text, std::strlen(text)};
}

const char* pickd_strerror(int error) {
  for (const ErrorWords& entry : kErrorWords) {
    if (error == entry.error || error == -entry.error) return entry.words;
  }
  return "unknown error value";
}

const char* pickd_reason_name(pickd_reason reason) {
  const auto index = static_cast<unsigned>(pickd::client::enum_number(reason));
  return index < sizeof kReasonNames / sizeof kReasonNames[0] ? kReasonNames[index] : "unknown";
}

const char* pickd_version(void) {
  return PICKD_TEXT(PICKD_VERSION_MAJOR) "." PICKD_TEXT(PICKD_VERSION_MINOR) "." PICKD_TEXT(
      PICKD_VERSION_PATCH);
}

}  // extern "C"
