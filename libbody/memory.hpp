// Memory that grows without exceptions: what cannot be had is told by the caller as -ENOMEM. All of
// it is kept from one body to the next.
#pragma once

#include <stdlib.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

namespace pickd::body {

// A growing array of values that may be copied as bytes.
template <typename T>
class List {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  List() = default;
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() { ::free(data_); }

  bool reserve(std::size_t count) {
    if (count <= capacity_) return true;
    std::size_t wanted = capacity_ < 16 ? 16 : capacity_;
    while (wanted < count) wanted *= 2;
    if (wanted > SIZE_MAX / sizeof(T) / 2) return false;
    void* grown = ::realloc(static_cast<void*>(data_), wanted * sizeof(T));
    if (grown == nullptr) return false;
    data_ = static_cast<T*>(grown);
    capacity_ = wanted;
    return true;
  }

  bool push(const T& value) {
    if (!reserve(size_ + 1)) return false;
    data_[size_++] = value;
    return true;
  }

  bool append(const T* values, std::size_t count) {
    if (!reserve(size_ + count)) return false;
    if (count != 0) std::memcpy(data_ + size_, values, count * sizeof(T));
    size_ += count;
    return true;
  }

  void cut(std::size_t size) { size_ = size; }  // at most size()
  void clear() { size_ = 0; }
  // Gives memory back that is more than `bytes`.
  void shrink(std::size_t bytes) {
    if (capacity_ * sizeof(T) <= bytes) return;
    ::free(data_);
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t index) { return data_[index]; }
  const T& operator[](std::size_t index) const { return data_[index]; }
  T& back() { return data_[size_ - 1]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

inline std::string_view view(const List<char>& list) { return {list.data(), list.size()}; }

// Bytes that stay where they are until the arena is cleared.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { release(nullptr); }

  // Room for `size` bytes, right behind the last ones where the chunk has room; nullptr when memory
  // is out. Alignment of a byte.
  char* take(std::size_t size) {
    if (chunk_ == nullptr || chunk_->size - chunk_->used < size) {
      if (!add_chunk(size)) return nullptr;
    }
    char* at = chunk_->bytes() + chunk_->used;
    chunk_->used += size;
    return at;
  }

  // Forgets all bytes; keeps one chunk if it is of at most `keep_bytes`.
  void clear(std::size_t keep_bytes) {
    Chunk* kept = chunk_ != nullptr && chunk_->size <= keep_bytes ? chunk_ : nullptr;
    release(kept);
    chunk_ = kept;
    if (kept != nullptr) {
      kept->before = nullptr;
      kept->used = 0;
    }
  }

 private:
  struct Chunk {
    Chunk* before;
    std::size_t size;
    std::size_t used;
    char* bytes() { return reinterpret_cast<char*>(this + 1); }
  };
  static constexpr std::size_t kChunkBytes = std::size_t{16} << 10;

  // Chunks double, so that a long stream takes few and the last of them can be kept for the next.
  bool add_chunk(std::size_t size) {
    std::size_t bytes = chunk_ == nullptr ? kChunkBytes : chunk_->size * 2;
    if (bytes < size) bytes = size;
    auto* chunk = static_cast<Chunk*>(::malloc(sizeof(Chunk) + bytes));
    if (chunk == nullptr) return false;
    *chunk = {chunk_, bytes, 0};
    chunk_ = chunk;
    return true;
  }

  void release(const Chunk* kept) {
    for (Chunk* chunk = chunk_; chunk != nullptr;) {
      Chunk* before = chunk->before;
      if (chunk != kept) ::free(chunk);
      chunk = before;
    }
    chunk_ = nullptr;
  }

  Chunk* chunk_ = nullptr;
};

// Objects on the heap: nullptr when memory is out.
template <typename T, typename... Arguments>
T* make_object(Arguments&&... arguments) {
  return new (std::nothrow) T(std::forward<Arguments>(arguments)...);
}

}  // namespace pickd::body
