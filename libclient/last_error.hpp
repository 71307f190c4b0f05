// LastError: the newest failure of a client in words. Written on failures only, read by any thread.
//
// Every public call that may fail begins a Call on it and ends through that: a failure for which
// nothing of the call found words of its own gets those of its error value, so that no older
// failure's are taken for them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "libclient/mutex.hpp"

namespace pickd::client {

class LastError {
 public:
  // Keeps the words and returns `code`, so that a failure is one statement.
  int set(int code, const char* format, ...) __attribute__((format(printf, 3, 4)));
  // How many were set. Relaxed: who compares two of them set the words in between itself.
  std::uint32_t count() const { return count_.load(std::memory_order_relaxed); }
  // Copies the text, cut at `size`, always terminated if `size` > 0; returns the length without
  // cut.
  std::size_t copy(char* buffer, std::size_t size);

 private:
  Mutex mutex_;
  std::atomic<std::uint32_t> count_{0};
  char text_[512] = {};
};

class Call {
 public:
  explicit Call(LastError& error) : error_(error), before_(error.count()) {}
  // Returns `code`.
  int end(int code) {
    if (code < 0 && error_.count() == before_) explain(code);
    return code;
  }

 private:
  void explain(int code);

  LastError& error_;
  const std::uint32_t before_;
};

}  // namespace pickd::client
