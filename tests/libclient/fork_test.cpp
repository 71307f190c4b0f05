// A forked child must not touch the parent's rings: every call there fails, and closing is safe.
#include <errno.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "libclient/queue.hpp"
#include "tests/libclient/support.hpp"

namespace pickd::client {
namespace {

// Runs `check` in a forked child; true when it returned true there.
template <typename Check>
bool in_child(const Check& check) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check() ? 0 : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Fork, IsSeenInTheChildOnly) {
  ForkGuard guard;
  ASSERT_EQ(guard.arm(), 0);
  EXPECT_FALSE(guard.in_child());
  EXPECT_TRUE(in_child([&] { return guard.in_child(); }));
  EXPECT_FALSE(guard.in_child());
  EXPECT_TRUE(in_child([&] {  // and in the child's child
    return in_child([&] { return guard.in_child(); });
  }));
}

TEST(Fork, MakesEveryCallOnTheParentsHandlesFail) {
  const Owned<pickd_client> client = unconnected_client();
  pickd_queue queue(client.get(), 4);
  const Result result = new_result();
  EXPECT_TRUE(in_child([&] {
    const pickd_request request = PICKD_REQUEST_INIT;
    pickd_report_info report = PICKD_REPORT_INIT;
    report.kind = PICKD_REPORT_DONE;
    pickd_endpoint endpoint = PICKD_ENDPOINT_INIT;
    endpoint.name = endpoint.address = "a";
    pickd_queue* opened = nullptr;
    pickd_client* const c = client.get();
    const int codes[] = {
        pickd_daemon_info(c, nullptr, nullptr, nullptr),
        pickd_pick(c, &request, 0, result.get()),
        pickd_result_status(result.get()),
        pickd_report(c, &report, 0),
        pickd_queue_open(c, 1, &opened),
        pickd_queue_submit(&queue, &request, 0, nullptr),
        pickd_queue_poll(&queue, result.get(), nullptr),
        pickd_queue_cancel(&queue, {1, 1}),
        pickd_queue_report(&queue, &report),
        pickd_queue_event_fd(&queue),
        pickd_endpoint_add(c, &endpoint),
        pickd_endpoint_update(c, &endpoint),
        pickd_endpoint_remove(c, "a"),
        pickd_endpoint_drain(c, "a", 1),
        pickd_endpoint_reset(c, "a"),
    };
    for (const int code : codes) {
      if (code != -EOWNERDEAD) return false;
    }
    return true;
  }));
}

TEST(Fork, LeavesSharedMappingsOutOfTheChild) {
  void* memory =
      ::mmap(nullptr, abi::kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(keep_from_children(memory, abi::kPageBytes), 0);
  unsigned char resident = 0;
  EXPECT_EQ(::mincore(memory, abi::kPageBytes, &resident), 0);
  EXPECT_TRUE(in_child(
      [&] { return ::mincore(memory, abi::kPageBytes, &resident) != 0 && errno == ENOMEM; }));
  ::munmap(memory, abi::kPageBytes);
}

TEST(Fork, LetsTheChildCloseWhatItInherited) {
  Owned<pickd_client> client = unconnected_client();
  EXPECT_TRUE(in_child([&] {
    pickd_close(client.release());
    return true;
  }));
  EXPECT_FALSE(client->fork.in_child());
}

TEST(Fork, LetsTheChildCloseThoughAThreadOfTheParentWaitedForAChannel) {
  Owned<pickd_client> client = unconnected_client();
  bool waits = false;
  bool over = false;
  std::thread waiter([&] {
    Lock lock(client->mutex);
    waits = true;
    while (!over) client->changed.wait(lock, Deadline::never());
  });
  // Seen under the mutex: then the thread is inside of wait(), which alone lets go of it.
  for (bool seen = false; !seen;) {
    const Lock lock(client->mutex);
    seen = waits;
  }
  EXPECT_TRUE(in_child([&] {
    ::alarm(60);  // ends a child that hangs
    pickd_close(client.release());
    return true;
  }));
  {
    const Lock lock(client->mutex);
    over = true;
    client->changed.wake_all();
  }
  waiter.join();
}

}  // namespace
}  // namespace pickd::client
