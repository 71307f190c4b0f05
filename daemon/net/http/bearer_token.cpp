#include "daemon/net/http/bearer_token.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "daemon/base/fd.hpp"
#include "daemon/base/log.hpp"

namespace pickd::net::http {

namespace {

constexpr std::size_t kTokenBytesMax = 16 * 1024;
constexpr std::uint64_t kLookNs = 1'000'000'000;

}  // namespace

base::Result<std::string> BearerToken::read_file() {
  // Never waits: what stands there may be a pipe.
  const base::Fd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) return base::errno_error(path_);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return base::errno_error(path_);
  if (!S_ISREG(status.st_mode)) return base::Error{-EINVAL, path_ + ": must be a file"};
  std::string text(kTokenBytesMax + 1, '\0');
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  if (got < 0) return base::errno_error(path_);
  text.resize(static_cast<std::size_t>(got));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.pop_back();
  const bool visible = std::all_of(text.begin(), text.end(),
                                   [](char letter) { return letter > 0x20 && letter < 0x7F; });
  if (text.empty() || text.size() > kTokenBytesMax || !visible) {
    return base::Error{-EINVAL,
                       path_ + ": must hold one token of 1 to 16384 visible ASCII characters"};
  }
  return text;
}

void BearerToken::read_if_changed(bool always) {
  struct stat status {};
  Mark mark;
  if (::stat(path_.c_str(), &status) == 0) {
    mark = {status.st_dev, status.st_ino, status.st_size,
            status.st_mtim.tv_sec * 1'000'000'000LL + status.st_mtim.tv_nsec};
  }
  if (!always && mark == mark_ && complaint_.empty()) return;
  mark_ = mark;
  auto token = read_file();
  const std::string complaint = token ? "" : token.error().text;
  if (complaint != complaint_ && !complaint.empty())
    spdlog::warn("bearer token: {}; asking without one", complaint);
  complaint_ = complaint;
  token_ = token ? *token : "";
}

const std::string& BearerToken::value(std::uint64_t now_ns) {
  if (looked_ns_ == 0 || now_ns - looked_ns_ >= kLookNs) {
    looked_ns_ = now_ns;
    read_if_changed(false);
  }
  return token_;
}

bool BearerToken::refresh(std::uint64_t now_ns) {
  const std::string before = token_;
  looked_ns_ = now_ns;
  read_if_changed(true);
  return token_ != before && !token_.empty();
}

}  // namespace pickd::net::http
