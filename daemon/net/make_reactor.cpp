#include "daemon/net/make_reactor.hpp"

namespace pickd::net {

std::optional<ReactorChoice> reactor_choice(std::string_view word) {
  if (word == "auto") return ReactorChoice::kAuto;
  if (word == "io_uring") return ReactorChoice::kIoUring;
  if (word == "epoll") return ReactorChoice::kEpoll;
  return std::nullopt;
}

base::Result<MadeReactor> make_reactor(ReactorChoice choice) {
  std::string why;
  if (choice != ReactorChoice::kEpoll) {
    auto made = make_io_uring_reactor();
    if (made) return MadeReactor{std::move(*made), ""};
    why = made.error().text;
  }
  auto made = make_epoll_reactor();
  if (!made) return made.error();
  return MadeReactor{std::move(*made), why};
}

}  // namespace pickd::net
