// Directory watch: tells that something happened in one of a few directories, with inotify.
//
// It tells when, never what: whoever is told looks for itself. Waits a moment after the first
// event, so that a burst is one call. Reactor thread only. Where the kernel gives no watch
// (limits, file systems of other machines) it stays silent; see trouble().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "daemon/base/fd.hpp"
#include "daemon/net/reactor.hpp"

namespace pickd::discovery {

class DirectoryWatch {
 public:
  // `happened` is called on the reactor, `settle_ms` after the first of a burst of events.
  DirectoryWatch(net::Reactor& reactor, std::uint64_t settle_ms, std::function<void()> happened);
  ~DirectoryWatch();
  DirectoryWatch(const DirectoryWatch&) = delete;
  DirectoryWatch& operator=(const DirectoryWatch&) = delete;

  // Watches these directories and no others; those that are not there are tried again each time.
  void set_directories(const std::set<std::string>& directories);
  // Why not everything that is there is watched; empty: it is.
  const std::string& trouble() const { return trouble_; }

 private:
  void read_events();

  net::Reactor& reactor_;
  std::uint64_t settle_ms_;
  std::function<void()> happened_;
  base::Fd inotify_;
  std::map<std::string, int> watches_;  // directory -> watch descriptor
  std::string trouble_;
  net::Reactor::TimerId settling_ = 0;
};

}  // namespace pickd::discovery
