// The few symbols that the compiler and FlatBuffers' headers take from a C++ runtime, on top of
// libc.
//
// The version script of libpickd.so and the list of kept symbols of libpickd.a make them local, so
// that no user's program gets its operators from here. The test build leaves this file out: there
// the real runtime (or a sanitizer's) is linked.
#include <stdlib.h>

#include <cstddef>

void* operator new(std::size_t size) {
  void* memory = ::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) ::abort();  // nothing of this library calls it with a size of its own
  return memory;
}
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete(void* memory) noexcept { ::free(memory); }
void operator delete[](void* memory) noexcept { ::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { ::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { ::free(memory); }

extern "C" void __cxa_pure_virtual() { ::abort(); }
