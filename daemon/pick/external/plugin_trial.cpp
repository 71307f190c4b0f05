#include "daemon/pick/external/plugin_trial.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>

#include "daemon/base/clock.hpp"
#include "daemon/pick/columns.hpp"
#include "daemon/pick/plugin.hpp"

namespace pickd::pick {

namespace {

// What the child is at; it says so before each step.
enum Step : char {
  kLoading = 'l',
  kDescribing = 'd',
  kCreating = 'c',
  kCalling = 's',
  kDone = 'k'
};
constexpr char kWords = 'e';  // the rest of what it says is an error in words

const char* step_name(char step) {
  switch (step) {
    case kLoading: return "loaded";
    case kDescribing: return "described by pickd_plugin_describe()";
    case kCreating: return "made an instance of by create()";
    case kCalling: return "called with a sample of three candidates";
    default: return "let go";
  }
}

// ---- In the child -------------------------------------------------------------------------------

constexpr int kSayFd = 3;
constexpr int kCopyFd = 4;

void say(char step) { static_cast<void>(!::write(kSayFd, &step, 1)); }
[[noreturn]] void give_up(const char* words) {
  say(kWords);
  static_cast<void>(!::write(kSayFd, words, std::strlen(words)));
  ::_exit(1);
}

pickd_plugin_text text_of(const char* text) { return {text, std::strlen(text)}; }

constexpr std::size_t kSampleCount = 3;

void call_sample(const pickd_plugin& functions, PluginUse use, void* self) {
  // Known, none, unknown.
  constexpr std::array<float, kSampleCount> kValues = {1.0F, 0.0F,
                                                       std::numeric_limits<float>::quiet_NaN()};
  constexpr std::uint16_t kIds[kSampleCount] = {1, 2, 3};
  const float* columns[kColumns] = {};
  for (std::size_t at = 0; at < kColumns; ++at) {
    if ((functions.columns >> at & 1) != 0) columns[at] = kValues.data();
  }
  pickd_plugin_pick pick{};
  pick.struct_size = sizeof pick;
  pick.count = kSampleCount;
  pick.columns = columns;
  pick.column_count = kColumns;
  pick.ids = kIds;
  pick.model = text_of("sample");
  pick.adapter = pick.session = pick.fairness = text_of("");
  pick.prompt_tokens = 4000;
  pick.prompt_blocks = 63;
  pick.endpoint_name = [](const pickd_plugin_pick*, std::size_t) { return text_of("sample"); };
  pick.endpoint_address = [](const pickd_plugin_pick*, std::size_t) { return text_of("host:1"); };
  pick.endpoint_label = [](const pickd_plugin_pick*, std::size_t, const char*) {
    return pickd_plugin_text{nullptr, 0};
  };
  pick.attribute = [](const pickd_plugin_pick*, const char*) {
    return pickd_plugin_text{nullptr, 0};
  };
  float scores[kSampleCount];
  std::fill(std::begin(scores), std::end(scores), kNoScore);
  std::uint8_t keep[kSampleCount] = {1, 1, 1};
  if (use == PluginUse::kScore) {
    functions.score(self, &pick, scores);
  } else {
    functions.filter(self, &pick, keep);
  }
}

[[noreturn]] void run_child(int copy, int say_fd, PluginUse use, const std::string& config) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  // The daemon's sockets and segments are none of its business.
  const int say_kept = ::fcntl(say_fd, F_DUPFD, 10);
  const int copy_kept = ::fcntl(copy, F_DUPFD, 10);
  ::dup2(say_kept, kSayFd);
  ::dup2(copy_kept, kCopyFd);
  ::close_range(kCopyFd + 1, ~0U, 0);
  say(kLoading);
  void* handle = ::dlopen("/proc/self/fd/4", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) give_up(::dlerror());
  const auto describe =
      reinterpret_cast<decltype(&pickd_plugin_describe)>(::dlsym(handle, "pickd_plugin_describe"));
  if (describe == nullptr) give_up("exports no pickd_plugin_describe()");
  say(kDescribing);
  pickd_plugin functions{};
  functions.struct_size = sizeof functions;
  if (describe(PICKD_PLUGIN_ABI, &functions) != 0)
    give_up("does not know this version of plugin.h");
  if (const std::string missing = lacks(functions, use); !missing.empty()) give_up(missing.c_str());
  say(kCreating);
  void* self = nullptr;
  if (functions.create != nullptr) {
    char error[256] = "refuses its config: ";
    const std::size_t used = std::strlen(error);
    self = functions.create(config.c_str(), error + used, sizeof error - used - 1);
    if (self == nullptr) give_up(error);
  }
  say(kCalling);
  call_sample(functions, use, self);
  say(kDone);
  if (functions.destroy != nullptr) functions.destroy(self);
  ::_exit(0);
}

// ---- In the daemon ------------------------------------------------------------------------------

// All that the child says, until it ends or the time is over.
std::string listen(int fd, bool* in_time) {
  std::string said;
  const std::uint64_t until_ns = base::monotonic_ns() + kTrialNs;
  while (true) {
    const std::uint64_t now_ns = base::monotonic_ns();
    *in_time = now_ns < until_ns;
    if (!*in_time) return said;
    pollfd waiting{fd, POLLIN, 0};
    const auto left_ms = static_cast<int>((until_ns - now_ns) / 1'000'000 + 1);
    if (::poll(&waiting, 1, left_ms) <= 0) continue;
    char buffer[512];
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0) return said;
    said.append(buffer, static_cast<std::size_t>(got));
    if (said.size() > 4096) return said;
  }
}

}  // namespace

std::string lacks(const pickd_plugin& functions, PluginUse use) {
  if (use == PluginUse::kScore && functions.score == nullptr)
    return "has no score(), and is named as an external-scorer";
  if (use == PluginUse::kFilter && functions.filter == nullptr)
    return "has no filter(), and is named as an external-filter";
  if (functions.columns >> kColumns != 0)
    return "reads columns that this pickd does not have; it has " + std::to_string(kColumns);
  return "";
}

base::Result<void> try_out(int copy, PluginUse use, const std::string& config) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::errno_error("pipe2");
  const base::Fd hears(ends[0]);
  base::Fd says(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return base::errno_error("fork");
  if (child == 0) run_child(copy, says.get(), use, config);
  says.reset();
  bool in_time = false;
  const std::string said = listen(hears.get(), &in_time);
  // It has ended, unless it hangs or closed the pipe by itself.
  ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const std::size_t words = said.find(kWords);
  if (words != std::string::npos) return base::Error{-ELIBBAD, said.substr(words + 1)};
  const char step = said.empty() ? char{kLoading} : said.back();
  if (!in_time) {
    return base::Error{-ETIMEDOUT,
                       std::string("did not come back within 2 s when it was ") + step_name(step)};
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && step == kDone) return {};
  const std::string how = WIFSIGNALED(status)
                              ? std::string("crashed (") + ::strsignal(WTERMSIG(status)) + ")"
                              : "ended its process";
  return base::Error{-ELIBBAD, how + " when it was " + step_name(step)};
}

}  // namespace pickd::pick
