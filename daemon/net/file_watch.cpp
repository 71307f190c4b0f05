#include "daemon/net/file_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace pickd::net {

namespace {

// No IN_MODIFY: a file that is being written is of no use yet.
constexpr std::uint32_t kEvents =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_ATTRIB;
// What a mounted ConfigMap renames when it changes; the files are links through it.
constexpr std::string_view kConfigMapLink = "..data";

}  // namespace

base::Result<std::unique_ptr<FileWatch>> FileWatch::create(Reactor& reactor,
                                                           const std::vector<std::string>& paths,
                                                           std::uint64_t quiet_ns,
                                                           Handler handler) {
  std::unique_ptr<FileWatch> made(new FileWatch(reactor, quiet_ns, std::move(handler)));
  made->inotify_ = base::Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!made->inotify_.valid()) return base::errno_error("inotify");
  for (const std::string& path : paths) {
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "."
                                  : slash == 0               ? "/"
                                                             : path.substr(0, slash);
    const int watch = ::inotify_add_watch(made->inotify_.get(), directory.c_str(), kEvents);
    if (watch < 0) return base::errno_error("cannot watch " + directory);
    made->watched_.push_back({watch, path.substr(slash == std::string::npos ? 0 : slash + 1)});
  }
  FileWatch* self = made.get();
  auto watched = reactor.watch(made->inotify_.get(), kReadable,
                               [self](std::uint32_t) { self->read_events(); });
  if (!watched) return watched.error();
  return made;
}

FileWatch::~FileWatch() {
  if (timer_set_) reactor_.cancel(timer_);
  if (inotify_.valid()) reactor_.unwatch(inotify_.get());
}

bool FileWatch::concerns(int watch, const char* name) const {
  const std::string_view changed = name;
  return std::any_of(watched_.begin(), watched_.end(), [&](const Watched& watched) {
    return watched.watch == watch && (changed == watched.name || changed == kConfigMapLink);
  });
}

void FileWatch::read_events() {
  alignas(inotify_event) char buffer[4096];
  bool changed = false;
  while (true) {
    const ssize_t got = ::read(inotify_.get(), buffer, sizeof buffer);
    if (got <= 0) break;
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      // Events that were lost may have been ours.
      changed |= (event->mask & IN_Q_OVERFLOW) != 0 ||
                 (event->len != 0 && concerns(event->wd, event->name));
      at += static_cast<ssize_t>(sizeof(inotify_event)) + event->len;
    }
  }
  if (changed) wait_for_quiet();
}

void FileWatch::wait_for_quiet() {
  if (timer_set_) reactor_.cancel(timer_);
  timer_set_ = true;
  timer_ = reactor_.after(quiet_ns_, [this] {
    timer_set_ = false;
    handler_();
  });
}

}  // namespace pickd::net
