// Child: a program that is started, watched and never outlives its parent; and a directory for its
// files.
//
// Children get a process group of their own (Ctrl-C reaches the parent alone, which then ends them
// in order) and die with the parent thread that started them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/base/fd.hpp"
#include "daemon/base/result.hpp"

namespace pickd::tools {

class Child {
 public:
  struct Options {
    bool read_output = true;  // its stdout comes to output(); otherwise it goes where ours goes
    std::string error_file;   // its stderr is appended to this file; empty: goes where ours goes
  };

  Child() = default;
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { stop(std::chrono::milliseconds(0)); }

  // Starts `arguments[0]` (a path). Fails with words when it cannot be executed.
  static base::Result<Child> start(const std::vector<std::string>& arguments,
                                   const Options& options);

  pid_t pid() const { return pid_; }
  int output() const { return output_.get(); }  // non-blocking; -1 when not read
  const std::string& name() const { return name_; }

  // True while it runs. When it has ended, `status` of waitpid(2) is in exit_status().
  bool running();
  int exit_status() const { return status_; }
  std::string exit_words() const;  // "exited with 2", "killed by signal 11"

  // Waits for a line of its stdout that begins with `prefix`; gives the rest of that line. Fails
  // when the program ends or the time is over.
  base::Result<std::string> wait_for_line(std::string_view prefix,
                                          std::chrono::milliseconds timeout);

  // Output that wait_for_line() read beyond its line; empty afterwards.
  std::string take_pending() { return std::exchange(pending_, {}); }

  // Sends SIGTERM to its group, after `grace` SIGKILL, and reaps it. Nothing when it does not run.
  void stop(std::chrono::milliseconds grace);
  void signal(int number) const;

 private:
  pid_t pid_ = -1;
  int status_ = 0;
  base::Fd output_;
  std::string pending_;  // output that came after the line that was waited for
  std::string name_;
};

// Waits until `file` holds a line that contains `text`, while `child` runs.
base::Result<void> wait_for_text(Child& child, const std::string& file, std::string_view text,
                                 std::chrono::milliseconds timeout);

// A fresh directory (mode 0700) below $TMPDIR or /tmp, removed with everything in it at the end.
class TempDir {
 public:
  static base::Result<TempDir> make(std::string_view name);
  TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TempDir& operator=(TempDir&& other) noexcept;
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() { remove(); }

  const std::string& path() const { return path_; }
  void remove();

 private:
  explicit TempDir(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// The directory that the running program lies in: its siblings are found there.
std::string program_directory();

}  // namespace pickd::tools
