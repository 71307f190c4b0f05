#include "daemon/net/socket_file.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <utility>

#include "daemon/base/fd.hpp"

namespace pickd::net {

namespace {

constexpr int kBacklog = 128;
constexpr std::size_t kPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;

// By name, or by number as it stands.
base::Result<gid_t> find_group(const std::string& group) {
  if (const struct group* entry = ::getgrnam(group.c_str()); entry != nullptr) return entry->gr_gid;
  gid_t number = 0;
  const auto [end, error] = std::from_chars(group.data(), group.data() + group.size(), number);
  if (error == std::errc() && end == group.data() + group.size()) return number;
  return base::Error{-ENOENT, "listen.group: there is no group \"" + group + "\" on this machine"};
}

// The name that a socket has before it is in place.
struct Beside {
  std::string path;
  base::Fd directory;  // when the path leads by way of it
};

base::Result<Beside> beside(const SocketFile& file) {
  if (std::string path = file.path + ".new"; path.size() <= kPathBytesMax) {
    return Beside{std::move(path), base::Fd()};
  }
  // A path that uses up what an address may have: the same directory by a shorter way.
  const std::size_t slash = file.path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : file.path.substr(0, slash + 1);
  base::Fd opened(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return base::errno_error(file.name + " " + file.path);
  std::string path = "/proc/self/fd/" + std::to_string(opened.get()) + "/.pickd-" +
                     std::to_string(std::hash<std::string>{}(file.path)) + ".new";
  return Beside{std::move(path), std::move(opened)};
}

// Whether a socket may be put there.
base::Result<void> check_place(const SocketFile& file, const std::string& path) {
  struct stat there {};
  if (::lstat(path.c_str(), &there) != 0 || S_ISSOCK(there.st_mode)) return {};
  return base::Error{-EEXIST, file.name + " " + path + ": there is something that is no socket"};
}

base::Result<void> bind_at(int socket, const SocketFile& file, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ::unlink(path.c_str());
  // Nobody may connect before the mode is right.
  const mode_t mask = ::umask(0777);
  const int bound = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::umask(mask);
  if (bound != 0) return base::errno_error(file.name + " " + file.path);
  return {};
}

base::Result<void> give_to_group(const SocketFile& file, const std::string& path) {
  if (file.group.empty()) return {};
  auto gid = find_group(file.group);
  if (!gid) return gid.error();
  if (::chown(path.c_str(), static_cast<uid_t>(-1), *gid) != 0) {
    return base::errno_error("listen.group: cannot give " + file.path + " to group " + file.group);
  }
  return {};
}

// What is to happen between bind and the moment when others see the file.
base::Result<void> open_up(int socket, const SocketFile& file, const std::string& path) {
  const std::string what = file.name + " " + file.path;
  if (auto given = give_to_group(file, path); !given) return given;
  if (::chmod(path.c_str(), file.mode) != 0) return base::errno_error("mode of " + what);
  if (::listen(socket, kBacklog) != 0) return base::errno_error(what);
  if (std::rename(path.c_str(), file.path.c_str()) != 0) return base::errno_error(what);
  return {};
}

}  // namespace

base::Result<void> check_group(const std::string& group) {
  if (group.empty()) return {};
  auto gid = find_group(group);
  return gid ? base::Result<void>() : base::Result<void>(gid.error());
}

base::Result<void> listen_at(int socket, const SocketFile& file) {
  if (file.path.size() > kPathBytesMax) {
    return base::Error{-ENAMETOOLONG, file.name + " " + file.path + ": at most " +
                                          std::to_string(kPathBytesMax) + " bytes"};
  }
  if (auto free = check_place(file, file.path); !free) return free;
  const auto first = beside(file);
  if (!first) return first.error();
  const std::string& path = first.value().path;
  if (auto free = check_place(file, path); !free) return free;
  if (auto bound = bind_at(socket, file, path); !bound) return bound;
  auto opened = open_up(socket, file, path);
  if (!opened) ::unlink(path.c_str());
  return opened;
}

}  // namespace pickd::net
