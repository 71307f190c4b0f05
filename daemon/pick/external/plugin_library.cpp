#include "daemon/pick/external/plugin_library.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "daemon/pick/external/plugin_trial.hpp"

namespace pickd::pick {

namespace {

constexpr off_t kLibraryBytesMax = 64 << 20;
constexpr unsigned kMemoryExecutable = 0x0010;  // MFD_EXEC, of kernels since 6.3
constexpr std::size_t kErrorBytesMax = 512;

// Sealed: what was tried out is what is loaded, whatever becomes of the file.
base::Result<base::Fd> copy_of(const std::string& path) {
  const base::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return base::errno_error("cannot be opened");
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return base::errno_error("fstat");
  if (!S_ISREG(info.st_mode)) return base::Error{-EINVAL, "is no file"};
  if (info.st_size == 0 || info.st_size > kLibraryBytesMax)
    return base::Error{-EINVAL, "has " + std::to_string(info.st_size) + " bytes; 1 to 64 MiB"};
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return base::Error{-EPERM, "belongs to uid " + std::to_string(info.st_uid) +
                                   "; a library of the daemon belongs to root or to its own user"};
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return base::Error{-EPERM, "may be written by others; chmod go-w"};
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  base::Fd copy(::memfd_create("pickd-plugin", kFlags | kMemoryExecutable));
  if (!copy.valid()) copy = base::Fd(::memfd_create("pickd-plugin", kFlags));
  if (!copy.valid()) return base::errno_error("memfd_create");
  char buffer[64 * 1024];
  ssize_t got;
  while ((got = ::read(file.get(), buffer, sizeof buffer)) > 0) {
    for (ssize_t put = 0; put < got;) {
      const ssize_t wrote = ::write(copy.get(), buffer + put, static_cast<std::size_t>(got - put));
      if (wrote <= 0) return base::errno_error("cannot be copied");
      put += wrote;
    }
  }
  if (got < 0) return base::errno_error("cannot be read");
  if (::fcntl(copy.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) !=
      0) {
    return base::errno_error("cannot be sealed");
  }
  return copy;
}

}  // namespace

base::Result<std::shared_ptr<const PluginLibrary>> PluginLibrary::load(const std::string& path,
                                                                       PluginUse use,
                                                                       const std::string& config) {
  auto copy = copy_of(path);
  if (!copy) return copy.error();
  if (auto tried = try_out(copy->get(), use, config); !tried) return tried.error();
  std::shared_ptr<PluginLibrary> library(new PluginLibrary());
  library->copy_ = std::move(*copy);
  // The descriptor stays open as long as the library is loaded: the loader knows it by this name.
  library->name_ = "/proc/self/fd/" + std::to_string(library->copy_.get());
  library->handle_ = ::dlopen(library->name_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library->handle_ == nullptr) return base::Error{-ELIBBAD, ::dlerror()};
  const auto describe = reinterpret_cast<decltype(&pickd_plugin_describe)>(
      ::dlsym(library->handle_, "pickd_plugin_describe"));
  library->functions_.struct_size = sizeof(pickd_plugin);
  if (describe == nullptr || describe(PICKD_PLUGIN_ABI, &library->functions_) != 0 ||
      !lacks(library->functions_, use).empty()) {
    return base::Error{-ELIBBAD, "describes itself otherwise than a moment ago"};
  }
  return std::shared_ptr<const PluginLibrary>(std::move(library));
}

PluginLibrary::~PluginLibrary() {
  if (handle_ == nullptr) return;
  ::dlclose(handle_);
  // A library that does not let itself be unloaded keeps its name, and its name this descriptor.
  if (void* still = ::dlopen(name_.c_str(), RTLD_NOLOAD | RTLD_LAZY); still != nullptr) {
    ::dlclose(still);
    static_cast<void>(copy_.release());
  }
}

base::Result<PluginInstanceHandle> PluginInstanceHandle::make(
    std::shared_ptr<const PluginLibrary> library, const std::string& config) {
  const pickd_plugin& functions = library->functions();
  void* self = nullptr;
  if (functions.create != nullptr) {
    char error[kErrorBytesMax] = {};
    self = functions.create(config.c_str(), error, sizeof error - 1);
    if (self == nullptr) return base::Error{-EINVAL, std::string("refuses its config: ") + error};
  }
  return PluginInstanceHandle(std::move(library), self);
}

PluginInstanceHandle::PluginInstanceHandle(PluginInstanceHandle&& other) noexcept
    : library_(std::move(other.library_)), self_(std::exchange(other.self_, nullptr)) {}

PluginInstanceHandle::~PluginInstanceHandle() {
  if (library_ == nullptr) return;
  if (functions().destroy != nullptr && (self_ != nullptr || functions().create == nullptr))
    functions().destroy(self_);
}

}  // namespace pickd::pick
