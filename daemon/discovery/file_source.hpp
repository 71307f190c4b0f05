// File source: the endpoints in a YAML or JSON file, or in all such files of a directory, kept up
// to date while they are replaced.
//
//   a file is replaced (renamed over, or a symbolic link swapped as for a ConfigMap): read anew
//   a file has a mistake, is empty or cannot be read: its last good endpoints stay, with trouble
//   a file is gone, and still is after `gone_grace_ms`: its endpoints are gone
//   a file of a directory is wrong: the other files are not affected
//
// inotify tells when to look; a slow poll finds what inotify does not tell (other machines' writes
// on network file systems). Looking and parsing run on the reactor's thread; sizes are bounded.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/discovery/directory_watch.hpp"
#include "daemon/discovery/source.hpp"
#include "daemon/net/reactor.hpp"

namespace pickd::discovery {

struct FileSourceOptions {
  std::string path;
  std::string pool;
  std::uint64_t block_tokens = 64;
  std::uint64_t settle_ms = 50;  // between the first event of a burst and the look
  std::uint64_t gone_grace_ms =
      2000;  // a file that is written by "remove, then create" is not gone
  std::uint64_t poll_ms = 5000;
};

inline constexpr std::size_t kEndpointFilesMax = 1024;  // of a directory; more is refused

class FileSource final : public Source {
 public:
  FileSource(net::Reactor& reactor, FileSourceOptions options, SourceHooks hooks);
  ~FileSource() override;
  void start() override;

 private:
  // What tells one content of a file from another without reading it.
  struct Signature {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t bytes = 0;
    std::uint64_t changed_ns = 0;
    bool operator==(const Signature&) const = default;
  };
  struct File {
    Signature read;  // of what was read last, well or badly
    Signature seen;  // by the last look
    bool read_any = false;
    std::uint64_t gone_since_ns = 0;  // 0: it is there
    std::string trouble;              // of the last reading
    std::vector<endpoints::EndpointSpec> endpoints;
  };

  void look();
  void schedule_look(std::uint64_t delay_ms);
  std::vector<std::string> list_files();
  bool look_at(const std::string& path, File& file);
  bool read(const std::string& path, File& file);
  bool note_gone(File& file);
  void watch_around(const std::vector<std::string>& files);
  void give();

  net::Reactor& reactor_;
  FileSourceOptions options_;
  SourceHooks hooks_;
  DirectoryWatch watch_;
  std::map<std::string, File> files_;  // by path, in the order in which they count
  std::string trouble_;                // with the path itself
  bool given_any_ = false;
  bool again_soon_ = false;
  std::uint64_t started_ns_ = 0;
  net::Reactor::TimerId timer_ = 0;
};

}  // namespace pickd::discovery
