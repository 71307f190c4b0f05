// Standard output of a program whose answer somebody saves: what could not be written is a failure.
#pragma once

#include <exception>
#include <string>

namespace pickd::tools {

// No std::runtime_error: who goes on when a daemon is away must not go on when nobody reads.
class OutputLost : public std::exception {
 public:
  explicit OutputLost(int error);
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// First thing in main(): a standard stream that is closed would be the number of the next file or
// socket that is opened, and what is printed would go there.
void keep_standard_streams();

// Throws OutputLost when something of what was printed, now or before, could not be written.
void flush_output();

// Whether it is a terminal that understands escape sequences.
bool output_is_screen();

// At the end of main(): `code`, or 1 instead of 0 when output is lost, which is said.
int exit_code(const char* program, int code);

}  // namespace pickd::tools
