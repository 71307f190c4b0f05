#include "daemon/state/instance_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include "abi/state_layout.hpp"

namespace pickd::state {

namespace {

// Of the open file description, not the process: a descriptor that is opened and closed elsewhere
// in it lets nothing go. Whole file.
struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

// By a write lock, which takes a descriptor that may write.
bool is_used_by_another(int file) {
  struct flock lock = whole_file(F_RDLCK);
  return ::fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
}

base::Error in_use(int file, const std::string& path) {
  std::uint32_t pid = 0;
  const bool known = ::pread(file, &pid, sizeof pid, offsetof(abi::StateHeader, daemon_pid)) ==
                     static_cast<ssize_t>(sizeof pid);
  return base::Error{-EBUSY, "state.path " + path + ": in use by another pickd, pid " +
                                 (known ? std::to_string(pid) : "unknown") +
                                 ", under another name of the same file (a hard link?) or without "
                                 "its lock file; give each daemon a state.path of its own"};
}

}  // namespace

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

base::Result<void> check_state_is_free(const std::string& path) {
  const base::Fd file(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  // What else is wrong there is for who opens it to say.
  if (!file.valid() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  if (is_used_by_another(file.get())) return in_use(file.get(), path);
  return {};
}

base::Result<void> lock_state(int file, const std::string& path) {
  struct flock lock = whole_file(F_WRLCK);
  if (::fcntl(file, F_OFD_SETLK, &lock) == 0 || !is_used_by_another(file)) return {};
  return in_use(file, path);
}

}  // namespace pickd::state
