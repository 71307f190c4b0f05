// Objects on the heap without operator new: an allocation that fails is an answer (-ENOMEM), not an
// abort.
#pragma once

#include <stdlib.h>

#include <memory>
#include <new>
#include <utility>

namespace pickd::client {

// A new T, or nullptr when memory is out.
template <typename T, typename... Arguments>
T* make_object(Arguments&&... arguments) {
  void* memory = nullptr;
  constexpr std::size_t alignment = alignof(T) < sizeof(void*) ? sizeof(void*) : alignof(T);
  if (::posix_memalign(&memory, alignment, sizeof(T)) != 0) return nullptr;
  return new (memory) T(std::forward<Arguments>(arguments)...);
}

template <typename T>
void destroy_object(T* object) {
  if (object == nullptr) return;
  object->~T();
  ::free(object);
}

struct Destroy {
  template <typename T>
  void operator()(T* object) const {
    destroy_object(object);
  }
};

template <typename T>
using Owned = std::unique_ptr<T, Destroy>;

}  // namespace pickd::client
