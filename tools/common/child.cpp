// Starting and ending programs. See child.hpp.
#include "tools/common/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace pickd::tools {

namespace {

using Clock = std::chrono::steady_clock;

// How often a condition without a descriptor is looked at again.
constexpr std::chrono::milliseconds kLookAgain{5};

// Runs between fork and exec: async-signal-safe calls only. Returns only on failure, with errno
// set.
void become(char* const* arguments, pid_t parent, int output, int errors) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // the parent died before the line above took effect
  if (output >= 0 && ::dup2(output, STDOUT_FILENO) < 0) return;
  if (errors >= 0 && ::dup2(errors, STDERR_FILENO) < 0) return;
  ::execv(arguments[0], arguments);
}

}  // namespace

Child::Child(Child&& other) noexcept { *this = std::move(other); }

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    stop(std::chrono::milliseconds(0));
    pid_ = std::exchange(other.pid_, -1);
    status_ = other.status_;
    output_ = std::move(other.output_);
    pending_ = std::move(other.pending_);
    name_ = std::move(other.name_);
  }
  return *this;
}

base::Result<Child> Child::start(const std::vector<std::string>& arguments,
                                 const Options& options) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  int output[2] = {-1, -1};
  if (options.read_output && ::pipe2(output, O_CLOEXEC) < 0) return base::errno_error("pipe");
  base::Fd read_end(output[0]);
  base::Fd write_end(output[1]);
  base::Fd errors;
  if (!options.error_file.empty()) {
    errors = base::Fd(
        ::open(options.error_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!errors.valid()) return base::errno_error("open " + options.error_file);
  }
  // Closed by a successful exec; holds errno of a failed one.
  int failure[2];
  if (::pipe2(failure, O_CLOEXEC) < 0) return base::errno_error("pipe");
  base::Fd failure_read(failure[0]);
  base::Fd failure_write(failure[1]);

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return base::errno_error("fork");
  if (pid == 0) {
    become(argv.data(), parent, write_end.get(), errors.get());
    const int error = errno;
    [[maybe_unused]] const ssize_t told = ::write(failure_write.get(), &error, sizeof error);
    ::_exit(127);
  }
  failure_write.reset();
  int error = 0;
  ssize_t got;
  do {
    got = ::read(failure_read.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got > 0) {
    ::waitpid(pid, nullptr, 0);
    return base::Error{-error, "cannot run " + arguments[0] + ": " + std::strerror(error)};
  }
  if (read_end.valid()) ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  Child child;
  child.pid_ = pid;
  child.output_ = std::move(read_end);
  child.name_ = std::filesystem::path(arguments[0]).filename();
  return child;
}

bool Child::running() {
  if (pid_ < 0) return false;
  if (::waitpid(pid_, &status_, WNOHANG) == 0) return true;
  pid_ = -1;
  return false;
}

std::string Child::exit_words() const {
  if (WIFSIGNALED(status_)) return "killed by signal " + std::to_string(WTERMSIG(status_));
  return "exited with " + std::to_string(WEXITSTATUS(status_));
}

base::Result<std::string> Child::wait_for_line(std::string_view prefix,
                                               std::chrono::milliseconds timeout) {
  const auto end = Clock::now() + timeout;
  for (;;) {
    for (std::size_t line_end; (line_end = pending_.find('\n')) != std::string::npos;) {
      const std::string line = pending_.substr(0, line_end);
      pending_.erase(0, line_end + 1);
      if (line.starts_with(prefix)) return line.substr(prefix.size());
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) {
      return base::Error{-ETIMEDOUT, name_ + " did not print \"" + std::string(prefix) +
                                         "\" within " + std::to_string(timeout.count()) + " ms"};
    }
    pollfd wait{output_.get(), POLLIN, 0};
    ::poll(&wait, 1, static_cast<int>(left.count()));
    char bytes[4096];
    const ssize_t got = ::read(output_.get(), bytes, sizeof bytes);
    if (got > 0) pending_.append(bytes, static_cast<std::size_t>(got));
    if (got == 0) {
      while (running()) std::this_thread::sleep_for(kLookAgain);
      return base::Error{-ECHILD, name_ + " " + exit_words() + " before it printed \"" +
                                      std::string(prefix) + '"'};
    }
  }
}

void Child::signal(int number) const {
  if (pid_ > 0 && ::kill(-pid_, number) < 0) ::kill(pid_, number);
}

void Child::stop(std::chrono::milliseconds grace) {
  if (pid_ < 0) return;
  if (grace.count() > 0) {
    signal(SIGTERM);
    for (const auto end = Clock::now() + grace; running() && Clock::now() < end;) {
      std::this_thread::sleep_for(kLookAgain);
    }
  }
  if (pid_ < 0) return;
  signal(SIGKILL);
  while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

base::Result<void> wait_for_text(Child& child, const std::string& file, std::string_view text,
                                 std::chrono::milliseconds timeout) {
  const auto end = Clock::now() + timeout;
  for (;;) {
    const bool running = child.running();  // before reading: its last words must be seen
    std::ostringstream seen;
    seen << std::ifstream(file).rdbuf();
    if (seen.str().find(text) != std::string::npos) return {};
    if (!running) {
      return base::Error{-ECHILD, child.name() + " " + child.exit_words() + ":\n" + seen.str()};
    }
    if (Clock::now() >= end) {
      return base::Error{-ETIMEDOUT, child.name() + " did not say \"" + std::string(text) +
                                         "\" within " + std::to_string(timeout.count()) + " ms:\n" +
                                         seen.str()};
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

base::Result<TempDir> TempDir::make(std::string_view name) {
  const char* parent = std::getenv("TMPDIR");
  std::string path = parent != nullptr && *parent != '\0' ? parent : "/tmp";
  path += '/';
  path += name;
  path += "-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return base::errno_error("mkdtemp " + path);
  return TempDir(std::move(path));
}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  if (this != &other) {
    remove();
    path_ = std::exchange(other.path_, {});
  }
  return *this;
}

void TempDir::remove() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  path_.clear();
}

std::string program_directory() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

}  // namespace pickd::tools
