// What the conformance suite of the reactor shares: every implementation must pass every test of
// it. A test file derives its fixture from ReactorSuite and ends with PICKD_EACH_REACTOR.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>

#include "daemon/base/fd.hpp"
#include "daemon/net/reactor.hpp"

namespace pickd::net {

struct Maker {
  const char* label;
  const char* name;  // what the reactor calls itself
  base::Result<std::unique_ptr<Reactor>> (*make)();
};
inline void PrintTo(const Maker& maker, std::ostream* out) { *out << maker.label; }

inline const Maker kMakers[] = {
    {"epoll", "epoll", [] { return make_epoll_reactor(); }},
    {"io_uring", "io_uring", [] { return make_io_uring_reactor(); }},
    // Any test then meets a full submission queue and more completions than their queue holds.
    {"io_uring_short_queue", "io_uring", [] { return make_io_uring_reactor(2); }},
};

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    out = base::Fd(ends[0]);
    in = base::Fd(ends[1]);
  }
  void write() const { ASSERT_EQ(::write(in.get(), "x", 1), 1); }
  bool read() const {
    char byte;
    return ::read(out.get(), &byte, 1) == 1;
  }
  base::Fd out;
  base::Fd in;
};

class ReactorSuite : public ::testing::TestWithParam<Maker> {
 protected:
  void SetUp() override {
    auto made = GetParam().make();
    if (!made && GetParam().name == std::string("io_uring"))
      GTEST_SKIP() << "no io_uring here: " << made.error().text;
    ASSERT_TRUE(made.ok()) << made.error().text;
    reactor_ = std::move(*made);
  }
  void watch(int fd, std::uint32_t interest, Reactor::Handler handler) {
    const auto watched = reactor_->watch(fd, interest, std::move(handler));
    ASSERT_TRUE(watched.ok()) << watched.error().text;
  }
  // Runs until nothing is ready any more: a timer of no delay stops it a few turns later.
  void run_for_turns(int turns) {
    if (turns == 0) {
      reactor_->stop();
      return;
    }
    reactor_->after(0, [this, turns] { run_for_turns(turns - 1); });
  }
  void run_a_while() {
    run_for_turns(10);
    reactor_->run();
  }
  std::unique_ptr<Reactor> reactor_;
};

#define PICKD_EACH_REACTOR(fixture)                                     \
  INSTANTIATE_TEST_SUITE_P(Each, fixture, ::testing::ValuesIn(kMakers), \
                           [](const auto& param) { return std::string(param.param.label); })

}  // namespace pickd::net
