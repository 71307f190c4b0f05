#include "tools/common/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

namespace pickd::tools {

namespace {

std::string words_of(int error) {
  const std::string text = "standard output could not be written";
  return error == 0 ? text : text + ": " + std::strerror(error);
}

}  // namespace

OutputLost::OutputLost(int error) : text_(words_of(error)) {}

void keep_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() takes the lowest number that is free: `stream`, as those below are taken. What can be
    // read only fails to be written, as the closed stream did.
    if (::fcntl(stream, F_GETFD) == -1 && errno == EBADF)
      (void)!::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void flush_output() {
  errno = 0;
  std::cout.flush();  // goes through stdout
  const bool before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) != 0 || before || !std::cout) throw OutputLost(errno);
}

bool output_is_screen() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) != 0 && kind != nullptr && *kind != '\0' &&
         std::strcmp(kind, "dumb") != 0;
}

int exit_code(const char* program, int code) {
  try {
    flush_output();
  } catch (const OutputLost& lost) {
    std::fprintf(stderr, "%s: %s\n", program, lost.what());
    return code == 0 ? 1 : code;
  }
  return code;
}

}  // namespace pickd::tools
