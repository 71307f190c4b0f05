// BearerToken: a token in a file that somebody else replaces now and then, as Kubernetes does.
// Reactor thread only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "daemon/base/result.hpp"

namespace pickd::net::http {

class BearerToken {
 public:
  explicit BearerToken(std::string path) : path_(std::move(path)) {}

  // The token; empty while the file has none. Looks at most once a second whether the file is
  // another one. Says in the log what is wrong with it, once a change.
  const std::string& value(std::uint64_t now_ns);
  // After an answer of 401: reads the file now. Whether the token is another one.
  bool refresh(std::uint64_t now_ns);

  const std::string& path() const { return path_; }

 private:
  base::Result<std::string> read_file();
  void read_if_changed(bool always);

  struct Mark {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = -1;
    std::int64_t changed_ns = 0;
    bool operator==(const Mark&) const = default;
  };

  std::string path_;
  std::string token_;
  std::string complaint_;
  Mark mark_;
  std::uint64_t looked_ns_ = 0;
};

}  // namespace pickd::net::http
