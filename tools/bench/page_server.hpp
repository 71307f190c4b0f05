// A process that is many engines at once: a thousand loopback addresses that answer every request
// with the same metrics page.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pickd::bench {

class PageServer {
 public:
  // Call it before any thread runs: it forks. Throws std::runtime_error when the addresses cannot
  // be had.
  PageServer(std::uint32_t addresses, std::size_t page_bytes);
  ~PageServer();  // ends the process
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  const std::vector<std::string>& addresses() const { return addresses_; }  // "127.1.0.1:port"
  std::size_t page_bytes() const { return page_.size(); }
  pid_t pid() const { return pid_; }

 private:
  std::string page_;
  std::vector<std::string> addresses_;
  pid_t pid_ = -1;
};

}  // namespace pickd::bench
