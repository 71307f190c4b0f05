// Queue: an asynchronous queue of the library, and waiting on it as an event loop does.
#pragma once

#include <poll.h>

#include "tests/system/support.hpp"

namespace pickd::systests {

class Queue {
 public:
  Queue(const Client& client, std::uint32_t depth) {
    EXPECT_EQ(pickd_queue_open(client.get(), depth, &queue_), 0) << client.last_error();
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() { close(); }
  void close() {
    if (queue_ != nullptr) pickd_queue_close(queue_);
    queue_ = nullptr;
  }

  int submit(const Request& request, std::uint64_t data, pickd_ticket* ticket = nullptr) const {
    return pickd_queue_submit(queue_, &request.raw, data, ticket);
  }
  int poll(const Result& result, std::uint64_t* data) const {
    return pickd_queue_poll(queue_, result.get(), data);
  }
  int report(const pickd_report_info& info) const { return pickd_queue_report(queue_, &info); }
  bool readable(std::chrono::milliseconds timeout) const {
    pollfd waiting{pickd_queue_event_fd(queue_), POLLIN, 0};
    return ::poll(&waiting, 1, static_cast<int>(timeout.count())) == 1;
  }
  // The next answer, waiting on the descriptor as an event loop does.
  bool next(const Result& result, std::uint64_t* data) const {
    for (;;) {
      const int taken = poll(result, data);
      if (taken != 0) return taken == 1;
      if (!readable(std::chrono::milliseconds(kGenerous))) return false;
    }
  }
  pickd_queue* get() const { return queue_; }

 private:
  pickd_queue* queue_ = nullptr;
};

}  // namespace pickd::systests
