// WakePipe with real pipes, and with as many waiters at the other end as a process may have.
#include "daemon/workers/wake_pipe.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

namespace pickd::workers {
namespace {

class WakePipeTest : public ::testing::Test {
 protected:
  WakePipeTest() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    read_end_ = base::Fd(ends[0]);
    pipe_ = std::make_shared<WakePipe>(base::Fd(ends[1]));
  }
  std::size_t drain() {
    char bytes[256];
    const ssize_t got = ::read(read_end_.get(), bytes, sizeof bytes);
    return got < 0 ? 0 : static_cast<std::size_t>(got);
  }
  // Waits for a byte.
  void await() {
    pollfd waiting{read_end_.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, 60'000), 1);
  }

  base::Fd read_end_;
  std::shared_ptr<WakePipe> pipe_;
  WakeCosts costs_;
};

TEST_F(WakePipeTest, WritesAByteAWake) {
  pipe_->ring(nullptr, nullptr);
  pipe_->ring(&costs_, nullptr);
  EXPECT_EQ(drain(), 2U);
}

TEST_F(WakePipeTest, LeavesAUserOfQuickWakesToTheWorker) {
  Chores chores("test");
  for (int turn = 0; turn < 1000; ++turn) {
    pipe_->ring(&costs_, &chores);
    EXPECT_EQ(drain(), 1U) << "at once, whoever else had the core";
  }
  EXPECT_FALSE(costs_.apart.load());
}

TEST_F(WakePipeTest, DoesTheWakesOfAUserWithVeryManyWaitersOnAnotherThread) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit before = limit;
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  constexpr std::size_t kWaiters = 15'000;
  if (limit.rlim_max < kWaiters + 1000)
    GTEST_SKIP() << "RLIMIT_NOFILE allows " << limit.rlim_max << " descriptors";
  const base::Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  std::vector<base::Fd> copies;
  copies.reserve(kWaiters);
  while (copies.size() < kWaiters) {
    copies.emplace_back(::dup(read_end_.get()));
    epoll_event event{EPOLLIN | EPOLLET, {}};
    ASSERT_EQ(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, copies.back().get(), &event), 0);
  }
  Chores chores("test");
  for (int turn = 0; turn < 1000 && !costs_.apart.load(); ++turn) {
    pipe_->ring(&costs_, &chores);
    drain();
  }
  EXPECT_TRUE(costs_.apart.load());
  // It waits for its thread, and many wakes are one meanwhile.
  for (int turn = 0; turn < 50; ++turn) pipe_->ring(&costs_, &chores);
  EXPECT_EQ(drain(), 0U);
  chores.start();
  await();
  EXPECT_EQ(drain(), 1U);
  pipe_->ring(&costs_, &chores);
  await();
  copies.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(Chores, AreDoneInOrderAndAllOfThemBeforeTheirEnd) {
  std::vector<int> done;
  {
    Chores chores("test");
    chores.post([&done] { done.push_back(0); });
    chores.start();
    for (int at = 1; at < 100; ++at) chores.post([&done, at] { done.push_back(at); });
  }
  ASSERT_EQ(done.size(), 100U);
  for (int at = 0; at < 100; ++at) EXPECT_EQ(done[static_cast<std::size_t>(at)], at);
}

}  // namespace
}  // namespace pickd::workers
