// FileWatch: says when files were changed or replaced, through the reactor.
//
// Watches the files' directories, because editors and ConfigMaps replace files rather than write
// them. What is in the files it does not know; it may call without a change.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/base/fd.hpp"
#include "daemon/base/result.hpp"
#include "daemon/net/reactor.hpp"

namespace pickd::net {

class FileWatch {
 public:
  using Handler = std::function<void()>;

  // Calls `handler` on the reactor's thread when nothing has happened to the files for `quiet_ns`
  // after something did. `reactor` outlives the watch. Fails when a directory cannot be watched.
  static base::Result<std::unique_ptr<FileWatch>> create(Reactor& reactor,
                                                         const std::vector<std::string>& paths,
                                                         std::uint64_t quiet_ns, Handler handler);
  ~FileWatch();

 private:
  FileWatch(Reactor& reactor, std::uint64_t quiet_ns, Handler handler)
      : reactor_(reactor), quiet_ns_(quiet_ns), handler_(std::move(handler)) {}
  void read_events();
  bool concerns(int watch, const char* name) const;
  void wait_for_quiet();

  struct Watched {
    int watch;
    std::string name;  // of the file in its directory
  };
  Reactor& reactor_;
  std::uint64_t quiet_ns_;
  Handler handler_;
  base::Fd inotify_;
  std::vector<Watched> watched_;
  Reactor::TimerId timer_ = 0;
  bool timer_set_ = false;
};

}  // namespace pickd::net
