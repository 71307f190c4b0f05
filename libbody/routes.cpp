#include "libbody/routes.hpp"

#include "libbody/limits.hpp"

namespace pickd::body {

namespace {

struct Route {
  std::string_view words[3];  // the first that is empty ends them
  pickd_body_api api;
};
// Longer ones first: "chat/completions" is not "completions".
constexpr Route kRoutes[] = {
    {{"inference", "v1", "generate"}, PICKD_BODY_VLLM},
    {{"chat", "completions"}, PICKD_BODY_CHAT},
    {{"completions"}, PICKD_BODY_COMPLETIONS},
    {{"responses"}, PICKD_BODY_RESPONSES},
    {{"embeddings"}, PICKD_BODY_EMBEDDINGS},
    {{"messages"}, PICKD_BODY_MESSAGES},
    {{"generate"}, PICKD_BODY_SGLANG},
};

// Takes the next word of a path; empty at its end.
std::string_view next_word(std::string_view& path) {
  while (!path.empty() && path.front() == '/') path.remove_prefix(1);
  const std::string_view word = path.substr(0, path.find('/'));
  path.remove_prefix(word.size());
  return word;
}

bool starts_with(std::string_view path, const Route& route, std::string_view& rest) {
  for (const std::string_view word : route.words) {
    if (word.empty()) break;
    if (next_word(path) != word) return false;
  }
  rest = path;
  return true;
}

}  // namespace

pickd_body_api api_of(std::string_view path) {
  path = path.substr(0, kPathBytesMax);
  path = path.substr(0, path.find_first_of("?#"));
  pickd_body_api api = PICKD_BODY_UNKNOWN;
  while (!path.empty()) {
    std::string_view rest = path;
    next_word(rest);
    for (const Route& route : kRoutes) {
      if (!starts_with(path, route, rest)) continue;
      api = route.api;
      break;
    }
    path = rest;
  }
  return api;
}

}  // namespace pickd::body
