#include "daemon/main/descriptors.hpp"

#include <sys/resource.h>

namespace pickd::service {

namespace {

constexpr std::uint64_t kOfAClient = 2;   // its socket, and its process
constexpr std::uint64_t kOfAChannel = 2;  // its bell and its pipe
// Listeners, workers, the state, files; connections to engines and to whoever looks at the daemon.
constexpr std::uint64_t kBesides = 256;

}  // namespace

std::uint64_t descriptors_wanted(const config::ListenConfig& listen) {
  return kOfAClient * listen.clients_max + kOfAChannel * listen.channels_max + kBesides;
}

std::optional<std::string> why_too_few_descriptors(const config::ListenConfig& listen,
                                                   std::uint64_t limit) {
  const std::uint64_t wanted = descriptors_wanted(listen);
  if (limit >= wanted) return std::nullopt;
  return "RLIMIT_NOFILE allows " + std::to_string(limit) + " descriptors, and listen.clients_max " +
         std::to_string(listen.clients_max) + " with listen.channels_max " +
         std::to_string(listen.channels_max) + " may take " + std::to_string(wanted) +
         ": one user can take the last and so keep all others out; raise it to " +
         std::to_string(wanted) + " (LimitNOFILE=, ulimit -n) or lower these settings";
}

std::uint64_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return limit.rlim_cur;
}

}  // namespace pickd::service
