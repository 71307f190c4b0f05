// What the library meets in a process that forks, stops or runs out of descriptors, and while the
// daemon stands still: calls that do not wait do not wait, nobody is forgotten in the queue for a
// channel, and nothing that the daemon granted is lost.
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <fstream>

#include "tests/system/queue.hpp"
#include "tests/system/standstill.hpp"

namespace pickd::systests {
namespace {

void kill_and_reap(Daemon& daemon) {
  daemon.signal(SIGKILL);
  daemon.reap();
}

// A client that would wait an hour for a daemon: what waits for that is seen to hang.
class PatientClient {
 public:
  explicit PatientClient(const Daemon& daemon, std::uint32_t channels_max = 0) {
    pickd_options options = PICKD_OPTIONS_INIT;
    const std::string socket = daemon.socket();
    options.socket_path = socket.c_str();
    options.channels_max = channels_max;
    options.connect_timeout_ms = 3'600'000;
    EXPECT_EQ(pickd_open(&options, &client_), 0);
  }
  PatientClient(const PatientClient&) = delete;
  PatientClient& operator=(const PatientClient&) = delete;
  ~PatientClient() { close(); }
  void close() {
    pickd_close(client_);
    client_ = nullptr;
  }
  pickd_client* get() const { return client_; }

 private:
  pickd_client* client_ = nullptr;
};

// A thread whose calls in the kernel can be seen.
class SeenThread {
 public:
  explicit SeenThread(std::function<void()> body)
      : thread_([this, body = std::move(body)] {
          id_ = static_cast<pid_t>(::syscall(SYS_gettid));
          body();
          over_ = true;
        }) {}
  SeenThread(const SeenThread&) = delete;
  SeenThread& operator=(const SeenThread&) = delete;
  ~SeenThread() { thread_.join(); }

  bool over() const { return over_; }
  bool waits_in(long number) const {
    return eventually([&] {
      std::ifstream file("/proc/self/task/" + std::to_string(id_) + "/syscall");
      long now = -1;
      return (file >> now) && now == number;
    });
  }

 private:
  std::atomic<pid_t> id_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

pickd_report_info done(const Result& result) {
  pickd_report_info info = PICKD_REPORT_INIT;
  info.ticket = result.ticket();
  info.kind = PICKD_REPORT_DONE;
  return info;
}

// ---- Fork ---------------------------------------------------------------------------------------

TEST(SystemLibraryFaults, AForkedChildClosesWhatThreadsOfTheParentWaitedIn) {
  Daemon daemon;
  PatientClient client(daemon, 1);
  const Request request("hello");
  std::unique_ptr<Forked> child;
  {
    const Result held;
    const Result waiting;
    const Standstill standstill(daemon);
    const SeenThread holds([&] {
      EXPECT_EQ(pickd_pick(client.get(), &request.raw, PICKD_NO_DEADLINE, held.get()), 0);
    });
    ASSERT_TRUE(holds.waits_in(SYS_ppoll));
    const SeenThread waits([&] {
      EXPECT_EQ(pickd_pick(client.get(), &request.raw, PICKD_NO_DEADLINE, waiting.get()), 0);
    });
    ASSERT_TRUE(waits.waits_in(SYS_futex)) << "for the only channel";
    // A control request that is not answered, and one that waits for its turn.
    const SeenThread asks([&] { pickd_endpoint_remove(client.get(), "nobody"); });
    ASSERT_TRUE(asks.waits_in(SYS_ppoll));
    const SeenThread asks_next([&] { pickd_endpoint_remove(client.get(), "nobody"); });
    ASSERT_TRUE(asks_next.waits_in(SYS_futex)) << "for its turn";

    child = std::make_unique<Forked>([&](Forked& self) {
      client.close();
      self.say('c');
      return 0;
    });
    EXPECT_EQ(child->hear(), 'c') << "it hangs in pickd_close()";
    child->kill(SIGKILL);
    daemon.signal(SIGCONT);
  }
  const Result after;
  EXPECT_EQ(pickd_pick(client.get(), &request.raw, kGenerousUs, after.get()), 0);
}

TEST(SystemLibraryFaults, TheEventDescriptorIsSilentAfterARestartThoughAChildHoldsTheOldPipe) {
  Daemon daemon;
  const Client client(daemon);
  const Queue queue(client, 16);
  const Request request("hello");
  const Result result;
  std::uint64_t data = 0;
  ASSERT_EQ(queue.submit(request, 1), 0);
  ASSERT_TRUE(queue.next(result, &data));
  const Forked child([](Forked& self) {
    self.hear();  // with everything that it inherited
    return 0;
  });
  kill_and_reap(daemon);
  EXPECT_TRUE(queue.readable(std::chrono::milliseconds(kGenerous))) << "the daemon went away";
  EXPECT_EQ(queue.poll(result, &data), 0);
  daemon.start();
  for (std::uint64_t turn = 2; turn < 5; ++turn) {
    ASSERT_EQ(queue.submit(request, turn), 0);
    ASSERT_TRUE(queue.next(result, &data));
    EXPECT_EQ(data, turn);
    EXPECT_EQ(queue.poll(result, &data), 0);
    EXPECT_FALSE(queue.readable(std::chrono::milliseconds(0))) << "an event loop would spin";
  }
}

// ---- The queue for a channel --------------------------------------------------------------------

TEST(SystemLibraryFaults, AllWhoWaitForAChannelAreAnsweredOnceTheDaemonIsSeenToStandStill) {
  Daemon daemon;
  const Client client(daemon, 1);
  const Request request("hello");
  const Result first;
  ASSERT_EQ(pick(client, request, first), 0);
  {
    const Standstill standstill(daemon);
    const auto until_answered = [&] {
      const Result result;
      EXPECT_EQ(pick(client, request, result, PICKD_NO_DEADLINE), 0);
      EXPECT_TRUE(result.degraded());
    };
    const SeenThread holds([&] {
      const Result result;
      EXPECT_EQ(pick(client, request, result, 1'500'000), 0);
      EXPECT_TRUE(result.degraded());
    });
    ASSERT_TRUE(holds.waits_in(SYS_ppoll));
    const SeenThread waits(until_answered);
    const SeenThread waits_too(until_answered);
    const SeenThread waits_as_well(until_answered);
    EXPECT_TRUE(eventually([&] {
      return waits.over() && waits_too.over() && waits_as_well.over();
    })) << "asleep beside a free channel";
    // For who sleeps on: a channel that comes back wakes one.
    daemon.signal(SIGCONT);
    const Result result;
    while (!waits.over() || !waits_too.over() || !waits_as_well.over())
      pick(client, request, result);
  }
}

// ---- Calls that do not wait ---------------------------------------------------------------------

TEST(SystemLibraryFaults, AReportThatIsHandedOverDoesNotWaitForADaemonThatStandsStill) {
  Daemon daemon;
  const PatientClient client(daemon);
  const Request request("hello");
  const Result result;
  ASSERT_EQ(pickd_pick(client.get(), &request.raw, kGenerousUs, result.get()), 0);
  const pickd_report_info report = done(result);
  const Result held;
  {
    const Standstill standstill(daemon);
    const SeenThread holds([&] {
      EXPECT_EQ(pickd_pick(client.get(), &request.raw, PICKD_NO_DEADLINE, held.get()), 0);
    });
    ASSERT_TRUE(holds.waits_in(SYS_ppoll));
    for (int turn = 0; turn < 3; ++turn)
      EXPECT_EQ(pickd_report(client.get(), &report, 0), -EAGAIN) << "the only channel is in use";
    daemon.signal(SIGCONT);
  }
  EXPECT_EQ(pickd_report(client.get(), &report, kGenerousUs), 0);
  const pickd_report_info last = done(held);
  EXPECT_EQ(pickd_report(client.get(), &last, kGenerousUs), 0);
  EXPECT_TRUE(eventually([&] { return daemon.status().channels <= 2; }))
      << "a channel that was granted too late is given back";
  EXPECT_EQ(daemon.inflight(), 0U);
}

TEST(SystemLibraryFaults, AReportThatIsHandedOverDoesNotWaitForADaemonThatDoesNotGreet) {
  Daemon daemon;
  const PatientClient client(daemon);
  const Request request("hello");
  const Result result;
  ASSERT_EQ(pickd_pick(client.get(), &request.raw, kGenerousUs, result.get()), 0);
  const pickd_report_info report = done(result);
  kill_and_reap(daemon);
  daemon.start();
  {
    const Standstill standstill(daemon);  // it listens, and does not answer a hello
    pickd_report_info begun = report;
    begun.kind = PICKD_REPORT_FIRST_TOKEN;
    EXPECT_EQ(pickd_report(client.get(), &begun, 0), -ENOTCONN);
    EXPECT_EQ(pickd_report(client.get(), &report, 0), 0) << "the end is kept";
  }
  EXPECT_EQ(daemon.inflight(), 1U) << "the ticket outlived the daemon";
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(pickd_pick(client.get(), &request.raw, kGenerousUs, result.get()), 0);
    const pickd_report_info next = done(result);
    EXPECT_EQ(pickd_report(client.get(), &next, 0), 0);
    return daemon.inflight() == 0;
  }));
}

TEST(SystemLibraryFaults, ClosingAQueueDoesNotWaitForADaemonThatStandsStill) {
  Daemon daemon;
  Forked closes([&](Forked& self) {
    const PatientClient client(daemon);
    const Request request("hello");
    pickd_queue* queues[3] = {};
    for (pickd_queue*& queue : queues) {
      if (pickd_queue_open(client.get(), 2048, &queue) != 0) return 1;
    }
    self.say('o');
    if (self.hear() != 's') return 2;
    // Two with a few outstanding, one until its ring is full.
    for (int at = 0; at < 10; ++at) {
      if (pickd_queue_submit(queues[0], &request.raw, 0, nullptr) != 0) return 3;
      if (pickd_queue_submit(queues[1], &request.raw, 0, nullptr) != 0) return 4;
    }
    while (pickd_queue_submit(queues[2], &request.raw, 0, nullptr) == 0) {
    }
    for (pickd_queue* queue : queues) pickd_queue_close(queue);
    self.say('c');
    return self.hear() == 'e' ? 0 : 5;
  });
  ASSERT_EQ(closes.hear(), 'o');
  {
    const Standstill standstill(daemon);
    closes.say('s');
    EXPECT_EQ(closes.hear(), 'c') << "it waits for the daemon";
  }
  EXPECT_TRUE(eventually([&] { return daemon.status().channels == 1; })) << "its pool's";
  EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; })) << daemon.inflight();
  closes.say('e');
  EXPECT_EQ(closes.wait(), 0);
}

// ---- Out of descriptors -------------------------------------------------------------------------

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* directory = ::opendir("/proc/self/fd");
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count - 3;  // ".", "..", and the look itself
}

// Lets the process open `more` descriptors than it has.
bool leave_descriptors(std::size_t more) {
  // Numbers below the limit that are free count too: they are taken first.
  while (true) {
    const int taken = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (taken < 0) return false;
    if (static_cast<std::size_t>(taken) + 1 == open_descriptors()) break;
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  limit.rlim_cur = open_descriptors() + more;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

TEST(SystemLibraryFaults, AChannelThatFindsNoDescriptorsIsRefusedAndGivenBack) {
  Daemon daemon;
  constexpr std::size_t kOfAQueue = 3;  // epoll, event, timer
  for (std::size_t left = 0; left < 3; ++left) {
    Forked poor([&](Forked& self) {
      const Client client(daemon);
      if (!leave_descriptors(kOfAQueue + left)) return 1;
      pickd_queue* queue = nullptr;
      for (int turn = 0; turn < 20; ++turn) {
        const int code = pickd_queue_open(client.get(), 16, &queue);
        if (code != -EMFILE) {
          std::fprintf(stderr, "%d: %s\n", code, client.last_error().c_str());
          return 2;
        }
      }
      if (client.last_error().find("RLIMIT_NOFILE") == std::string::npos) return 3;
      // What it has goes on.
      const Result result;
      if (pick(client, Request("hello"), result) != 0 || result.degraded()) return 4;
      if (client.report(result.ticket(), PICKD_REPORT_DONE) != 0) return 5;
      self.say('d');
      self.hear();
      return 0;
    });
    EXPECT_EQ(poor.hear(), 'd') << left << " descriptors left";
    EXPECT_TRUE(eventually([&] { return daemon.status().channels == 1; }))
        << daemon.status().channels << " channels, with " << left << " descriptors left";
    poor.say('e');
    EXPECT_EQ(poor.wait(), 0) << left << " descriptors left";
  }
  EXPECT_EQ(daemon.counter("clients_died"), 0U);
}

TEST(SystemLibraryFaults, AProcessWithoutDescriptorsPicksFromTheMappedStateAfterARestart) {
  for (std::size_t left = 0; left < 4; ++left) {
    Daemon daemon;
    Forked poor([&](Forked& self) {
      const Client client(daemon);
      const Result result;
      if (pick(client, Request("hello"), result) != 0) return 1;
      if (client.report(result.ticket(), PICKD_REPORT_DONE) != 0) return 2;
      rlimit before{};
      if (::getrlimit(RLIMIT_NOFILE, &before) != 0 || !leave_descriptors(left)) return 3;
      self.say('o');
      if (self.hear() != 'r') return 4;
      for (int turn = 0; turn < 20; ++turn) {
        const int code = pick(client, Request("hello"), result);
        if (code != 0 || result.count() != 4) {
          std::fprintf(stderr, "%d: %s\n", code, client.last_error().c_str());
          return 5;
        }
        // -ESTALE: of a degraded one, from a daemon that is back.
        const int reported = client.report(result.ticket(), PICKD_REPORT_DONE);
        if (reported != 0 && reported != -ESTALE) return 6;
      }
      if (::setrlimit(RLIMIT_NOFILE, &before) != 0) return 7;
      return eventually([&] {
        return pick(client, Request("hello"), result) == 0 && !result.degraded() &&
               client.report(result.ticket(), PICKD_REPORT_DONE) == 0;
      })
                 ? 0
                 : 8;
    });
    ASSERT_EQ(poor.hear(), 'o');
    kill_and_reap(daemon);
    daemon.start();
    poor.say('r');
    EXPECT_EQ(poor.wait(), 0) << left << " descriptors left";
    EXPECT_TRUE(eventually([&] { return daemon.inflight() == 0; }));
  }
}

TEST(SystemLibraryFaults, AQueueWithoutDescriptorsPicksFromTheMappedStateAfterARestart) {
  Daemon daemon;
  Forked poor([&](Forked& self) {
    const Client client(daemon);
    const Queue queue(client, 16);
    const Result result;
    std::uint64_t data = 0;
    if (queue.submit(Request("hello"), 0) != 0 || !queue.next(result, &data)) return 1;
    if (queue.report(done(result)) != 0) return 2;
    self.say('o');
    if (self.hear() != 'r') return 3;
    // A new connection finds descriptors and a channel finds none.
    if (queue.submit(Request("hello"), 0) != 0 || !queue.next(result, &data)) return 4;
    rlimit none{};
    if (::getrlimit(RLIMIT_NOFILE, &none) != 0) return 5;
    none.rlim_cur = 3;
    if (::setrlimit(RLIMIT_NOFILE, &none) != 0) return 6;
    self.say('f');
    if (self.hear() != 's') return 7;
    for (std::uint64_t turn = 1; turn < 20; ++turn) {
      if (queue.submit(Request("hello"), turn) != 0 || !queue.next(result, &data)) return 8;
      if (data != turn || !result.degraded() || result.count() != 4) return 9;
      if (queue.report(done(result)) != 0) return 10;
    }
    return 0;
  });
  for (const char news : {'r', 's'}) {
    ASSERT_NE(poor.hear(), 0);
    kill_and_reap(daemon);
    daemon.start();
    poor.say(news);
  }
  EXPECT_EQ(poor.wait(), 0);
}

}  // namespace
}  // namespace pickd::systests
