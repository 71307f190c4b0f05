// The instance lock: one holder a path, its pid told to the others, gone with the process.
#include "daemon/state/instance_lock.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/state/temporary_directory.hpp"

namespace pickd::state::test {
namespace {

using InstanceLock = InADirectory;

// A child that holds the lock until it is told to end.
class Holder {
 public:
  explicit Holder(const std::string& path) {
    int ready[2];
    int end[2];
    if (::pipe(ready) != 0 || ::pipe(end) != 0) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(end[1]);
      const auto lock = take_instance_lock(path, "state.path");
      const char word = lock.ok() ? 'y' : 'n';
      char byte;
      if (::write(ready[1], &word, 1) == 1 && ::read(end[0], &byte, 1) < 0) ::_exit(1);
      ::_exit(0);
    }
    ::close(ready[1]);
    ::close(end[0]);
    end_ = end[1];
    char word = 0;
    took_it_ = ::read(ready[0], &word, 1) == 1 && word == 'y';
    ::close(ready[0]);
  }
  ~Holder() { finish(); }
  void kill() {
    ::kill(pid_, SIGKILL);
    finish();
  }
  bool took_it() const { return took_it_; }
  pid_t pid() const { return pid_; }

 private:
  void finish() {
    if (pid_ < 0) return;
    ::close(end_);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid_ = -1;
  int end_ = -1;
  bool took_it_ = false;
};

TEST_F(InstanceLock, IsAFileBesideThePathWithThePidOfItsHolder) {
  const auto lock = take_instance_lock(path(), "state.path");
  ASSERT_TRUE(lock.ok()) << lock.error().text;
  EXPECT_EQ(files(), std::set<std::string>{"state.lock"});
  std::string pid;
  std::getline(std::ifstream(path("state.lock")), pid);
  EXPECT_EQ(pid, std::to_string(::getpid()));
  struct stat file {};
  ASSERT_EQ(::stat(path("state.lock").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777, 0600U);
}

TEST_F(InstanceLock, IsRefusedWithThePidOfWhoeverHoldsIt) {
  const Holder holder(path());
  ASSERT_TRUE(holder.took_it());
  const auto refused = take_instance_lock(path(), "state.path");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, -EBUSY);
  EXPECT_NE(refused.error().text.find("pid " + std::to_string(holder.pid())), std::string::npos)
      << refused.error().text;
  EXPECT_NE(refused.error().text.find("state.path " + path()), std::string::npos);
}

TEST_F(InstanceLock, EndsWithItsHolderHoweverThatEnds) {
  Holder holder(path());
  ASSERT_TRUE(holder.took_it());
  holder.kill();
  const auto lock = take_instance_lock(path(), "state.path");
  ASSERT_TRUE(lock.ok()) << lock.error().text;
  std::string pid;
  std::getline(std::ifstream(path("state.lock")), pid);
  EXPECT_EQ(pid, std::to_string(::getpid())) << "no rest of a longer one";
}

TEST_F(InstanceLock, OfOnePathIsNotThatOfAnother) {
  const Holder holder(path());
  EXPECT_TRUE(take_instance_lock(path("other"), "state.path").ok());
}

TEST_F(InstanceLock, CanBeTakenAgainWhenItWasLetGo) {
  { const auto lock = take_instance_lock(path(), "state.path"); }
  EXPECT_TRUE(take_instance_lock(path(), "state.path").ok());
}

TEST_F(InstanceLock, DoesNotFollowALink) {
  std::ofstream(path("victim")) << "precious";
  ASSERT_EQ(::symlink(path("victim").c_str(), path("state.lock").c_str()), 0);
  EXPECT_FALSE(take_instance_lock(path(), "state.path").ok());
  std::string text;
  std::getline(std::ifstream(path("victim")), text);
  EXPECT_EQ(text, "precious");
}

TEST_F(InstanceLock, SaysWhichFileCannotBeMade) {
  const auto refused = take_instance_lock(directory_ + "/no/state", "state.path");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text.find(directory_ + "/no/state.lock"), std::string::npos);
}

// ---- The state file itself ----------------------------------------------------------------------

base::Fd open_file(const std::string& path, int flags) {
  return base::Fd(::open(path.c_str(), flags | O_CREAT | O_CLOEXEC, 0600));
}

TEST_F(InstanceLock, OfAStateFileHoldsForItsOtherNamesToo) {
  const base::Fd file = open_file(path(), O_RDWR);
  ASSERT_TRUE(check_state_is_free(path()).ok());
  ASSERT_TRUE(lock_state(file.get(), path()).ok());
  ASSERT_EQ(::link(path().c_str(), path("other").c_str()), 0);
  for (const std::string& name : {path(), path("other")}) {
    const auto refused = check_state_is_free(name);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, -EBUSY);
    EXPECT_NE(refused.error().text.find("state.path " + name), std::string::npos);
    const base::Fd second = open_file(name, O_RDWR);
    EXPECT_FALSE(lock_state(second.get(), name).ok()) << "two that start at one time";
  }
  { const base::Fd opened_and_closed = open_file(path(), O_RDWR); }
  EXPECT_FALSE(check_state_is_free(path("other")).ok())
      << "a descriptor that closes lets nothing go";
}

TEST_F(InstanceLock, OfAStateFileEndsWithItsDescriptor) {
  {
    const base::Fd file = open_file(path(), O_RDWR);
    ASSERT_TRUE(lock_state(file.get(), path()).ok());
  }
  EXPECT_TRUE(check_state_is_free(path()).ok());
  const base::Fd file = open_file(path(), O_RDWR);
  EXPECT_TRUE(lock_state(file.get(), path()).ok());
}

TEST_F(InstanceLock, OfAStateFileIsNotStoppedByWhoMayOnlyReadIt) {
  { const base::Fd made = open_file(path(), O_RDWR); }
  const base::Fd reader = open_file(path(), O_RDONLY);
  struct flock lock {};
  lock.l_type = F_RDLCK;
  ASSERT_EQ(::fcntl(reader.get(), F_OFD_SETLK, &lock), 0);
  EXPECT_EQ(::flock(reader.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_TRUE(check_state_is_free(path()).ok());
  const base::Fd file = open_file(path(), O_RDWR);
  EXPECT_TRUE(lock_state(file.get(), path()).ok());
}

TEST_F(InstanceLock, OfAStateFileThatIsNotThereIsFree) {
  EXPECT_TRUE(check_state_is_free(path()).ok());
  EXPECT_TRUE(check_state_is_free(directory_).ok()) << "for who opens it to refuse";
}

}  // namespace
}  // namespace pickd::state::test
