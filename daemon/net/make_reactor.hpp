// make_reactor: which reactor the control thread gets. io_uring where it works, epoll where not;
// that it does not is never a reason not to start.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/base/result.hpp"
#include "daemon/net/reactor.hpp"

namespace pickd::net {

enum class ReactorChoice : std::uint8_t {
  kAuto,     // io_uring if it works
  kIoUring,  // the same, but its failure is worth a warning
  kEpoll,
};

// "auto", "io_uring", "epoll"; nothing for any other word.
std::optional<ReactorChoice> reactor_choice(std::string_view word);

struct MadeReactor {
  std::unique_ptr<Reactor> reactor;
  std::string why_not_io_uring;  // empty where it is io_uring, and where nobody wanted that
};

// Fails only when epoll cannot be had either.
base::Result<MadeReactor> make_reactor(ReactorChoice choice);

}  // namespace pickd::net
