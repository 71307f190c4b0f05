#include "daemon/discovery/file_source.hpp"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "daemon/base/clock.hpp"
#include "daemon/config/endpoint_file.hpp"
#include "daemon/endpoints/configured_spec.hpp"

namespace pickd::discovery {

namespace {

constexpr std::uint64_t kMsInNs = 1'000'000;

bool is_endpoint_file(const std::string& name) {
  return name[0] != '.' &&
         (name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json"));
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The path with every symbolic link followed; empty when it leads nowhere.
std::string followed(const std::string& path) {
  std::error_code error;
  const auto real = std::filesystem::canonical(path, error);
  return error ? "" : real.string();
}

bool is_directory(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

}  // namespace

FileSource::FileSource(net::Reactor& reactor, FileSourceOptions options, SourceHooks hooks)
    : reactor_(reactor),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      watch_(reactor, options_.settle_ms, [this] { look(); }) {
  while (options_.path.size() > 1 && options_.path.back() == '/') options_.path.pop_back();
}

FileSource::~FileSource() { reactor_.cancel(timer_); }

void FileSource::start() {
  started_ns_ = base::monotonic_ns();
  timer_ = reactor_.after(0, [this] { look(); });
}

void FileSource::schedule_look(std::uint64_t delay_ms) {
  reactor_.cancel(timer_);
  timer_ = reactor_.after(delay_ms * kMsInNs, [this] { look(); });
}

void FileSource::look() {
  again_soon_ = false;
  trouble_.clear();
  const std::vector<std::string> paths = list_files();
  watch_around(paths);  // before anything is read: what happens from here on is told
  bool changed = false;
  for (const std::string& path : paths) changed |= look_at(path, files_[path]);
  if (!given_any_) {
    // The first set waits a moment for files that are about to be there or are being written.
    const std::uint64_t age_ns = base::monotonic_ns() - started_ns_;
    changed = !again_soon_ || age_ns >= options_.gone_grace_ms * kMsInNs;
  }
  const std::set<std::string> there(paths.begin(), paths.end());
  for (auto at = files_.begin(); at != files_.end();) {
    const bool gone = !there.contains(at->first) && note_gone(at->second);
    changed |= gone;
    at = gone ? files_.erase(at) : std::next(at);
  }
  if (changed) give();
  std::string trouble = trouble_;
  for (const auto& [path, file] : files_) {
    if (file.trouble.empty()) continue;
    trouble += (trouble.empty() ? "" : "\n") + file.trouble;
  }
  hooks_.trouble(trouble);
  schedule_look(again_soon_ ? std::min(options_.poll_ms, 2 * options_.settle_ms)
                            : options_.poll_ms);
}

// The files to read, in the order in which they count. A path that leads nowhere gives none.
std::vector<std::string> FileSource::list_files() {
  struct stat about {};
  if (::stat(options_.path.c_str(), &about) != 0) {
    trouble_ = options_.path + ": " + std::strerror(errno);
    if (errno == ENOENT || errno == ENOTDIR) {
      again_soon_ |= base::monotonic_ns() - started_ns_ < options_.gone_grace_ms * kMsInNs;
      return {};
    }
    // Not gone, but out of reach: as a file that cannot be read.
    std::vector<std::string> known;
    for (const auto& [path, file] : files_) known.push_back(path);
    return known;
  }
  if (!S_ISDIR(about.st_mode)) return {options_.path};
  std::vector<std::string> paths;
  DIR* directory = ::opendir(options_.path.c_str());
  if (directory == nullptr) {
    trouble_ = options_.path + ": " + std::strerror(errno);
    for (const auto& [path, file] : files_) paths.push_back(path);
    return paths;
  }
  while (const dirent* entry = ::readdir(directory)) {
    if (is_endpoint_file(entry->d_name)) paths.push_back(options_.path + "/" + entry->d_name);
  }
  ::closedir(directory);
  std::sort(paths.begin(), paths.end());
  if (paths.size() > kEndpointFilesMax) {
    trouble_ = options_.path + ": there are " + std::to_string(paths.size()) +
               " files; only the first " + std::to_string(kEndpointFilesMax) + " count";
    paths.resize(kEndpointFilesMax);
  }
  return paths;
}

bool FileSource::look_at(const std::string& path, File& file) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) {
    if (errno == ENOENT) {  // a link that leads nowhere
      if (!note_gone(file)) return false;
      file.trouble = path + ": leads nowhere";
      file.read_any = false;
      return !std::exchange(file.endpoints, {}).empty();
    }
    file.trouble = path + ": " + std::strerror(errno);
    return false;
  }
  file.gone_since_ns = 0;
  const Signature now{about.st_dev, about.st_ino, static_cast<std::uint64_t>(about.st_size),
                      static_cast<std::uint64_t>(about.st_mtim.tv_sec) * 1'000'000'000ULL +
                          static_cast<std::uint64_t>(about.st_mtim.tv_nsec)};
  if (file.read_any && now == file.read) return false;
  // Written to just now, it may be half of what it will be; and a second write in the same step of
  // the file system's clock would leave no mark.
  const std::uint64_t quiet_ns = options_.settle_ms * kMsInNs;
  const bool at_rest =
      now == file.seen || base::clock_ns(CLOCK_REALTIME) >= now.changed_ns + quiet_ns;
  file.seen = now;
  if (!at_rest) {
    again_soon_ = true;
    return false;
  }
  file.read = now;
  file.read_any = true;
  return read(path, file);
}

bool FileSource::read(const std::string& path, File& file) {
  auto endpoints = config::read_endpoint_file(path, options_.pool);
  if (!endpoints) {
    file.trouble = endpoints.error().text;
    if (!file.endpoints.empty()) {
      file.trouble += "\n" + path + ": its " + std::to_string(file.endpoints.size()) +
                      " endpoints of before stay";
    }
    return false;
  }
  file.trouble.clear();
  file.endpoints.clear();
  for (const config::EndpointConfig& endpoint : *endpoints) {
    file.endpoints.push_back(endpoints::spec_of(endpoint, options_.block_tokens));
  }
  return true;
}

// True once the grace is over.
bool FileSource::note_gone(File& file) {
  const std::uint64_t now_ns = base::monotonic_ns();
  if (file.gone_since_ns == 0) file.gone_since_ns = now_ns;
  if (now_ns - file.gone_since_ns >= options_.gone_grace_ms * kMsInNs) return true;
  again_soon_ = true;
  return false;
}

// The directory of each name and of what it leads to: a swap of a link happens in the one, a rename
// over the target in the other. The parents tell when a directory itself is replaced.
void FileSource::watch_around(const std::vector<std::string>& files) {
  std::set<std::string> directories = {directory_of(options_.path)};
  const auto add_target = [&directories](const std::string& path) {
    const std::string target = followed(path);
    if (!target.empty()) directories.insert(directory_of(target));
  };
  if (is_directory(options_.path)) {
    directories.insert(options_.path);
    add_target(options_.path);
  }
  for (const std::string& file : files) {
    struct stat about {};
    if (::lstat(file.c_str(), &about) == 0 && S_ISLNK(about.st_mode)) add_target(file);
  }
  watch_.set_directories(directories);
}

void FileSource::give() {
  std::vector<endpoints::EndpointSpec> set;
  for (const auto& [path, file] : files_) {
    set.insert(set.end(), file.endpoints.begin(), file.endpoints.end());
  }
  // At the start a set that could not be read is no set: what a daemon before this one knew stays.
  const bool unread = set.empty() && !given_any_ &&
                      std::any_of(files_.begin(), files_.end(),
                                  [](const auto& file) { return !file.second.trouble.empty(); });
  if (unread) return;
  given_any_ = true;
  hooks_.set(std::move(set));
}

}  // namespace pickd::discovery
