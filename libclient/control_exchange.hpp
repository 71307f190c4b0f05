// ControlExchange: one request to the daemon's control socket and its answer, in fixed buffers.
//
// Heap only (128 KiB); control requests are rare. FlatBuffers grows its buffer by itself, which
// without exceptions can only end in an abort: callers bound what they put in with
// kControlMessageBytesMax first.
#pragma once

#include <stdlib.h>

#include <cstddef>
#include <cstdint>

#include "abi/limits.hpp"
#include "libclient/fd.hpp"
#include "libclient/memory.hpp"
#include "pickd_generated.h"

namespace pickd::client {

class ControlExchange {
 public:
  // Room that the message, its tables and the builder's own notes take besides strings.
  static constexpr std::size_t kOverheadBytes = 4096;

  ControlExchange() : builder_(abi::kControlMessageBytesMax, &allocator_, false) {}
  ControlExchange(const ControlExchange&) = delete;
  ControlExchange& operator=(const ControlExchange&) = delete;

  flatbuffers::FlatBufferBuilder& builder() { return builder_; }

  // What is to be sent: set once the body has been built with builder().
  template <typename Table>
  void set_body(flatbuffers::Offset<Table> body) {
    body_type_ = fb::BodyTraits<Table>::enum_value;
    body_ = body.Union();
  }

  // The answer, verified; nullptr before Connection::request() returned 0.
  const fb::Message* reply() const { return reply_; }
  template <typename Table>
  const Table* reply_as() const {
    return reply_ == nullptr ? nullptr : reply_->template body_as<Table>();
  }
  std::size_t descriptor_count() const { return descriptor_count_; }
  Fd take_descriptor(std::size_t index) { return Fd(descriptors_[index].release()); }

 private:
  friend class Connection;

  class FixedAllocator final : public flatbuffers::Allocator {
   public:
    std::uint8_t* allocate(std::size_t size) override {
      if (size > sizeof bytes_) ::abort();  // a caller put more in than it had bounded
      return bytes_;
    }
    void deallocate(std::uint8_t*, std::size_t) override {}

   private:
    alignas(16) std::uint8_t bytes_[abi::kControlMessageBytesMax];
  };

  FixedAllocator allocator_;
  flatbuffers::FlatBufferBuilder builder_;
  fb::Body body_type_ = fb::Body::NONE;
  flatbuffers::Offset<void> body_;
  const fb::Message* reply_ = nullptr;
  Fd descriptors_[abi::kControlDescriptorsMax];
  std::size_t descriptor_count_ = 0;
  bool lost_descriptors_ = false;  // the process could not take all that came
  alignas(16) std::uint8_t reply_bytes_[abi::kControlMessageBytesMax];
};

// nullptr when memory is out.
inline Owned<ControlExchange> make_exchange() {
  return Owned<ControlExchange>(make_object<ControlExchange>());
}

}  // namespace pickd::client
