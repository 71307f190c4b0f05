// Arbitrary bytes as the configuration file: loaded, printed and loaded again, made into a profile.
//
// Whatever is accepted must survive being printed: a configuration that changes by printing it
// would mislead the operator who reads --print-config.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "daemon/base/fd.hpp"
#include "daemon/config/load.hpp"
#include "daemon/pick/schedule.hpp"

namespace {

using pickd::base::Fd;

class File {
 public:
  explicit File(const void* bytes, std::size_t size) : fd_(::memfd_create("config", MFD_CLOEXEC)) {
    if (!fd_.valid() || ::write(fd_.get(), bytes, size) != static_cast<ssize_t>(size)) std::abort();
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }

 private:
  Fd fd_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const File file(data, size);
  const auto loaded = pickd::config::load_config(file.path(), {});
  if (!loaded) {
    if (loaded.error().text.empty() || loaded.error().code >= 0) std::abort();
    return 0;
  }
  static_cast<void>(pickd::pick::Schedule::make(loaded.value().config.scheduling));
  // One that names another file prints what it read there; that is not the same text again.
  if (!loaded.value().config.scheduling.file.empty()) return 0;
  const std::string printed = pickd::config::print_config(loaded.value());
  const File again(printed.data(), printed.size());
  const auto second = pickd::config::load_config(again.path(), {});
  if (!second || !(second.value().config == loaded.value().config)) {
    std::fprintf(stderr, "printed and read again it is another one: %s\n%s\n",
                 second ? "" : second.error().text.c_str(), printed.c_str());
    std::abort();
  }
  return 0;
}
