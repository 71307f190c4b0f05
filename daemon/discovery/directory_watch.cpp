#include "daemon/discovery/directory_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace pickd::discovery {

namespace {

// Not IN_MODIFY: a file that is being written is not to be read half-way.
constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                                  IN_CREATE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF |
                                  IN_ONLYDIR;

}  // namespace

DirectoryWatch::DirectoryWatch(net::Reactor& reactor, std::uint64_t settle_ms,
                               std::function<void()> happened)
    : reactor_(reactor), settle_ms_(settle_ms), happened_(std::move(happened)) {
  inotify_ = base::Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify_.valid()) {
    trouble_ = base::errno_error("inotify_init1").text;
    return;
  }
  const auto watched =
      reactor_.watch(inotify_.get(), net::kReadable, [this](std::uint32_t) { read_events(); });
  if (!watched) {
    trouble_ = watched.error().text;
    inotify_.reset();
  }
}

DirectoryWatch::~DirectoryWatch() {
  reactor_.cancel(settling_);
  if (inotify_.valid()) reactor_.unwatch(inotify_.get());
}

void DirectoryWatch::set_directories(const std::set<std::string>& directories) {
  if (!inotify_.valid()) return;
  trouble_.clear();
  std::map<std::string, int> before;
  before.swap(watches_);
  for (const std::string& directory : directories) {
    // Always anew: another directory may bear the name by now. The same one gives the same number.
    const int watch = ::inotify_add_watch(inotify_.get(), directory.c_str(), kEvents);
    if (watch >= 0) {
      watches_[directory] = watch;
    } else if (errno != ENOENT && errno != ENOTDIR) {
      trouble_ = "cannot watch " + directory + ": " + std::strerror(errno) +
                 (errno == ENOSPC ? "; raise fs.inotify.max_user_watches" : "");
    }
  }
  for (const auto& [directory, watch] : before) {
    const bool kept = std::any_of(watches_.begin(), watches_.end(),
                                  [watch = watch](const auto& w) { return w.second == watch; });
    if (!kept) ::inotify_rm_watch(inotify_.get(), watch);
  }
}

void DirectoryWatch::read_events() {
  alignas(inotify_event) char events[4096];
  bool any = false;
  while (::read(inotify_.get(), events, sizeof events) > 0) any = true;  // which does not matter
  if (!any || settling_ != 0) return;
  settling_ = reactor_.after(settle_ms_ * 1'000'000, [this] {
    settling_ = 0;
    happened_();
  });
}

}  // namespace pickd::discovery
