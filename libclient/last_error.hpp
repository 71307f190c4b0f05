// LastError: the last failure of a client in words. Written on failures only, read by any thread.
#pragma once

#include <cstddef>

#include "libclient/mutex.hpp"

namespace pickd::client {

class LastError {
 public:
  // Keeps the words and returns `code`, so that a failure is one statement.
  int set(int code, const char* format, ...) __attribute__((format(printf, 3, 4)));
  // Copies the text, cut at `size`, always terminated if `size` > 0; returns the length without
  // cut.
  std::size_t copy(char* buffer, std::size_t size);

 private:
  Mutex mutex_;
  char text_[512] = {};
};

}  // namespace pickd::client
