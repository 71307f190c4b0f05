#include "daemon/state/instance_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>

namespace pickd::state {

base::Result<base::Fd> take_instance_lock(const std::string& path, const std::string& what) {
  const std::string lock_path = path + ".lock";
  base::Fd fd(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return base::errno_error(what + " " + path + ": lock file " + lock_path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    char holder[32] = {};
    const ssize_t got = ::pread(fd.get(), holder, sizeof holder - 1, 0);
    const std::string pid = got > 0 ? std::to_string(std::strtol(holder, nullptr, 10)) : "unknown";
    return base::Error{-EBUSY, what + " " + path + ": in use by another pickd, pid " + pid};
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return base::errno_error(what + " " + path + ": lock file " + lock_path + " cannot be written");
  }
  return fd;
}

}  // namespace pickd::state
