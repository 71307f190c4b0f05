// LastError: see last_error.hpp.
#include "libclient/last_error.hpp"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pickd/pickd.h"

namespace pickd::client {

int LastError::set(int code, const char* format, ...) {
  const Lock lock(mutex_);
  va_list arguments;
  va_start(arguments, format);
  ::vsnprintf(text_, sizeof text_, format, arguments);
  va_end(arguments);
  count_.fetch_add(1, std::memory_order_relaxed);
  return code;
}

std::size_t LastError::copy(char* buffer, std::size_t size) {
  const Lock lock(mutex_);
  const std::size_t length = ::strlen(text_);
  if (buffer != nullptr && size > 0) {
    const std::size_t copied = length < size ? length : size - 1;
    ::memcpy(buffer, text_, copied);
    buffer[copied] = '\0';
  }
  return length;
}

void Call::explain(int code) { error_.set(code, "%s", pickd_strerror(code)); }

}  // namespace pickd::client
