// What a client can do with the descriptors that it was given: the bell, the pipe, the state. The
// daemon does not wait, does not die, starts again, and stays the only one that writes the state.
#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/system/raw_control.hpp"
#include "tests/workers/client_side.hpp"

namespace pickd::systests {
namespace {

constexpr uid_t kNobody = 65534;

// A client without the library: it has a channel and does with it what it likes.
class RawChannel {
 public:
  explicit RawChannel(Daemon& daemon) : raw_(daemon) {
    EXPECT_TRUE(raw_.hello().has_value());
    const auto opened = raw_.ask(
        [](flatbuffers::FlatBufferBuilder& builder) { return fb::CreateOpenChannel(builder); });
    EXPECT_NE(opened->as<fb::ChannelOpened>(), nullptr);
    id_ = opened->as<fb::ChannelOpened>()->channel();
    for (const base::Fd& fd : raw_.descriptors()) descriptors_.emplace_back(::dup(fd.get()));
    side_ = std::make_unique<workers::test::ClientSide>(segment());
  }

  int segment() const { return descriptors_.at(0).get(); }
  int bell() const { return descriptors_.at(1).get(); }
  int pipe() const { return descriptors_.at(2).get(); }
  void close_pipe() { descriptors_.at(2).reset(); }
  workers::test::ClientSide& side() { return *side_; }

  // Hands a pick over, and rings whether the worker sleeps or not.
  bool submit() {
    abi::PickRecord pick{};
    pick.head = {sizeof pick, abi::RecordType::kPick, 0, 0, ++sequence_};
    pick.endpoints_max = 8;
    std::vector<std::byte> bytes(sizeof pick);
    std::memcpy(bytes.data(), &pick, sizeof pick);
    return side_->submit(bytes) && ring();
  }
  bool ring() const {
    const std::uint64_t one = 1;
    return ::write(bell(), &one, sizeof one) == sizeof one || errno == EAGAIN;
  }
  bool answered() {
    return eventually([this] { return !side_->next_completion().empty(); });
  }
  void close() {
    const auto outcome = raw_.ask([this](flatbuffers::FlatBufferBuilder& builder) {
      return fb::CreateCloseChannel(builder, id_);
    });
    EXPECT_EQ(outcome->code(), 0);
  }

 private:
  RawControl raw_;
  std::vector<base::Fd> descriptors_;
  std::unique_ptr<workers::test::ClientSide> side_;
  std::uint32_t id_ = 0;
  std::uint64_t sequence_ = 0;
};

void clear_nonblock(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  ASSERT_EQ(::fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK), 0);
}

class SystemHostileDescriptors : public testing::Test {
 protected:
  void expect_served() {
    const Result result;
    for (int turn = 0; turn < 20; ++turn) {
      ASSERT_EQ(pick(other_, Request("hello"), result), 0);
      ASSERT_FALSE(result.degraded());
      ASSERT_EQ(other_.report(result.ticket(), PICKD_REPORT_DONE), 0);
    }
  }

  Daemon daemon_;
  const Client other_{daemon_};
};

TEST_F(SystemHostileDescriptors, ABellThatBlocksAndIsFullOrEmptyHoldsNobodyUp) {
  RawChannel hostile(daemon_);
  clear_nonblock(hostile.bell());
  // Full: one more write would wait. The daemon shares this open file.
  std::uint64_t most = UINT64_MAX - 1;
  ASSERT_EQ(::write(hostile.bell(), &most, sizeof most), ssize_t{sizeof most});
  expect_served();
  // Drained, so that a read would wait.
  std::uint64_t count = 0;
  ASSERT_EQ(::read(hostile.bell(), &count, sizeof count), ssize_t{sizeof count});
  expect_served();
  ASSERT_TRUE(hostile.submit());
  EXPECT_TRUE(hostile.answered()) << "it is served as any other";
  expect_served();
}

TEST_F(SystemHostileDescriptors, APipeThatIsFullOrClosedHoldsNobodyUp) {
  RawChannel hostile(daemon_);
  clear_nonblock(hostile.pipe());
  // Asks to be woken for ever and never empties the pipe: a page of wakes fills it.
  hostile.side().indices().completions_waiting.store(1);
  for (int turn = 0; turn < 100; ++turn) {
    for (int count = 0; count < 50; ++count) ASSERT_TRUE(hostile.submit());
    for (int count = 0; count < 50; ++count) ASSERT_TRUE(hostile.answered());
  }
  expect_served();
  hostile.close_pipe();  // a write is EPIPE now, and a SIGPIPE where that is not kept off
  ASSERT_TRUE(hostile.submit());
  EXPECT_TRUE(hostile.answered());
  expect_served();
}

TEST_F(SystemHostileDescriptors, AClientHasNoWayToWriteIntoThePipe) {
  if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
  RawChannel hostile(daemon_);
  ASSERT_EQ(::fcntl(hostile.pipe(), F_GETFL) & O_ACCMODE, O_RDONLY);
  Forked other_user([&](Forked&) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) return 1;
    const std::string path = "/proc/self/fd/" + std::to_string(hostile.pipe());
    return ::open(path.c_str(), O_WRONLY | O_NONBLOCK) < 0 && errno == EACCES ? 0 : 2;
  });
  EXPECT_EQ(other_user.wait(), 0);
}

// A closed channel's bell must not wake the worker for ever: the client keeps the open file.
TEST_F(SystemHostileDescriptors, ABellThatIsKeptAfterItsChannelClosedIsNotWatched) {
  const auto watched = [this] {
    std::size_t count = 0;
    const std::string directory = "/proc/" + std::to_string(daemon_.pid()) + "/fdinfo";
    for (const auto& info : std::filesystem::directory_iterator(directory)) {
      std::ifstream file(info.path());
      std::string line;
      while (std::getline(file, line)) count += line.starts_with("tfd:") ? 1 : 0;
    }
    return count;
  };
  RawChannel hostile(daemon_);
  ASSERT_TRUE(hostile.submit());
  ASSERT_TRUE(hostile.answered());
  daemon_.status();  // connected from here on
  const std::size_t before = watched();
  hostile.close();
  EXPECT_TRUE(eventually([&] { return daemon_.status().channels == 1; }));
  EXPECT_TRUE(eventually([&] { return watched() == before - 1; }))
      << watched() << " descriptors in the daemon's epolls, there were " << before;
  for (int turn = 0; turn < 100; ++turn) ASSERT_TRUE(hostile.ring());
  expect_served();
}

TEST_F(SystemHostileDescriptors, AClientThatLocksTheStateStopsNoRestart) {
  RawControl raw(daemon_);
  ASSERT_TRUE(raw.hello().has_value());
  ASSERT_EQ(raw.descriptors().size(), 1U);
  const base::Fd state(::dup(raw.descriptors()[0].get()));
  ASSERT_EQ(::flock(state.get(), LOCK_EX | LOCK_NB), 0);
  struct flock whole {};
  whole.l_type = F_RDLCK;
  whole.l_whence = SEEK_SET;
  EXPECT_EQ(::fcntl(state.get(), F_OFD_SETLK, &whole), -1) << "the daemon's own is in the way";
  const Result result;
  const std::string prompt = prompt_of(4096, 1);
  ASSERT_EQ(pick(other_, Request(prompt), result), 0);
  ASSERT_EQ(other_.report(result.ticket(), PICKD_REPORT_DONE), 0);
  daemon_.signal(SIGKILL);
  daemon_.reap();
  ASSERT_EQ(::fcntl(state.get(), F_OFD_SETLK, &whole), 0) << "before the next one's";
  daemon_.start();  // fails the test when it does not come up
  ASSERT_TRUE(
      eventually([&] { return pick(other_, Request(prompt), result) == 0 && !result.degraded(); }));
  EXPECT_EQ(result.match_tokens(), 1024U) << "and it goes on with the file that is locked";
}

TEST_F(SystemHostileDescriptors, AnotherUserCannotMakeTheStateWritable) {
  if (::geteuid() != 0) GTEST_SKIP() << kNeedsRoot;
  RawControl raw(daemon_);
  ASSERT_TRUE(raw.hello().has_value());
  ASSERT_EQ(raw.descriptors().size(), 1U);
  const int state = raw.descriptors()[0].get();
  const std::string path = daemon_.state();
  ASSERT_EQ(::chmod(daemon_.directory().c_str(), 0755), 0) << "so that its mode is what is tried";
  Forked other_user([&](Forked&) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) return 1;
    const char byte = 0;
    if (::pwrite(state, &byte, 1, 0) >= 0 || errno != EBADF) return 2;
    if (::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, state, 0) != MAP_FAILED) return 3;
    void* read_only = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, state, 0);
    if (read_only == MAP_FAILED) return 4;
    if (::mprotect(read_only, 4096, PROT_READ | PROT_WRITE) == 0 || errno != EACCES) return 5;
    if (::ftruncate(state, 0) == 0) return 6;
    if (::fchmod(state, 0666) == 0 || errno != EPERM) return 7;
    const std::string self = "/proc/self/fd/" + std::to_string(state);
    if (::open(self.c_str(), O_RDWR | O_CLOEXEC) >= 0 || errno != EACCES) return 8;
    if (::open(path.c_str(), O_RDWR | O_CLOEXEC) >= 0 || errno != EACCES) return 9;
    if (::open(path.c_str(), O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES) return 10;
    if (::fallocate(state, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0) return 11;
    return 0;
  });
  EXPECT_EQ(other_user.wait(), 0);
  expect_served();
}

}  // namespace
}  // namespace pickd::systests
