// A shared library of the operator's: copied, tried out in a child process, loaded. Its header is
// include/pickd/plugin.h.
//
// Reads files and makes a process, which is why it is called while a configuration is loaded and
// never later.
#pragma once

#include <memory>
#include <string>

#include "daemon/base/fd.hpp"
#include "daemon/base/result.hpp"
#include "pickd/plugin.h"

namespace pickd::pick {

// What a library is asked for.
enum class PluginUse { kScore, kFilter };

class PluginLibrary {
 public:
  // The error says what is wrong with the file, or at which step of the trial it went wrong.
  static base::Result<std::shared_ptr<const PluginLibrary>> load(const std::string& path,
                                                                 PluginUse use,
                                                                 const std::string& config);
  ~PluginLibrary();
  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;

  const pickd_plugin& functions() const { return functions_; }

 private:
  PluginLibrary() = default;

  base::Fd copy_;
  std::string name_;
  void* handle_ = nullptr;
  pickd_plugin functions_{};
};

// An instance of a library, ended with it.
class PluginInstanceHandle {
 public:
  static base::Result<PluginInstanceHandle> make(std::shared_ptr<const PluginLibrary> library,
                                                 const std::string& config);
  PluginInstanceHandle(PluginInstanceHandle&& other) noexcept;
  PluginInstanceHandle& operator=(PluginInstanceHandle&&) = delete;
  PluginInstanceHandle(const PluginInstanceHandle&) = delete;
  PluginInstanceHandle& operator=(const PluginInstanceHandle&) = delete;
  ~PluginInstanceHandle();

  const pickd_plugin& functions() const { return library_->functions(); }
  void* self() const { return self_; }

 private:
  PluginInstanceHandle(std::shared_ptr<const PluginLibrary> library, void* self)
      : library_(std::move(library)), self_(self) {}

  std::shared_ptr<const PluginLibrary> library_;
  void* self_;
};

}  // namespace pickd::pick
