// Where a Unix socket listens: the file comes into place only when whoever sees it can connect.
// Knows no kind of socket, and not what is said over it.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/base/result.hpp"

namespace pickd::net {

// What a socket file is to be. `name` is the setting that says so, for errors.
struct SocketFile {
  std::string name;  // such as "listen.socket"
  std::string path;  // at most 107 bytes
  std::uint32_t mode = 0600;
  std::string group;  // by name or number; empty: as the process has it
};

// Binds `socket` and listens, and puts it in place as `file.path`, where it takes the place of a
// socket that is there, in one step: the path never stands for a socket that refuses. Until then it
// is "<path>.new" beside it, and what was left there of a start that was cut short is removed. That
// is also the name by which `ss -x` lists the socket.
// -EEXIST: something stands there that is no socket; -ENAMETOOLONG; -ENOENT: no such group.
// The caller sees to it that nobody else does the same at this path (the instance lock).
base::Result<void> listen_at(int socket, const SocketFile& file);

// Whether `group` is a group of this machine; empty is.
base::Result<void> check_group(const std::string& group);

}  // namespace pickd::net
