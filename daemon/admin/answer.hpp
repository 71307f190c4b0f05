// Answer: what is said to one HTTP request, and its head as bytes.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace pickd::admin {

struct Answer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> fields = {};  // further ones
};

// A line of words.
Answer words(int status, std::string text);

// With the length of the body. Every answer says that it is not to be kept, guessed at, or read by
// pages of elsewhere.
std::string head_of(const Answer& answer, bool keep_alive);

}  // namespace pickd::admin
