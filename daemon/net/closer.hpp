// Closer: closes descriptors that somebody else had a hand in, on threads of its own.
//
// close() of the last descriptor of a file can take as long as its maker likes: a socket lingers,
// an epoll instance has a hundred thousand watches, a file system in user space is asked. Nobody
// else waits for that here. Threads that hang stay where they are; they are few, and the process
// ends without them.
#pragma once

#include <memory>

#include "daemon/base/fd.hpp"

namespace pickd::net {

class Closer {
 public:
  Closer();
  ~Closer();  // waits for nothing; what is not closed yet is closed soon, or when the process ends
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;

  // Any thread.
  void close(base::Fd fd);

 private:
  struct Shared;
  static void run(const std::shared_ptr<Shared>& shared);
  std::shared_ptr<Shared> shared_;
};

}  // namespace pickd::net
