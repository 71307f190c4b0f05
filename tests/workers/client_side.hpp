// ClientSide: the client's end of a channel, in the test's own process, for honest and for hostile
// clients. Maps the memfd as a client of another process would.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "daemon/workers/channel.hpp"

namespace pickd::workers::test {

// The mapping of a channel's segment.
class Mapping {
 public:
  explicit Mapping(int fd) {
    const off_t bytes = ::lseek(fd, 0, SEEK_END);
    bytes_ = static_cast<std::size_t>(bytes);
    void* at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) throw std::runtime_error("mmap");
    base_ = static_cast<std::byte*>(at);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { ::munmap(base_, bytes_); }
  template <typename T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* base_;
  std::size_t bytes_;
};

class ClientSide {
 public:
  explicit ClientSide(int segment) : mapping_(segment) {}

  abi::ChannelHeader& header() const { return *mapping_.at<abi::ChannelHeader>(0); }
  abi::RingIndices& indices() const {
    return *mapping_.at<abi::RingIndices>(header().indices_offset);
  }
  std::byte* submissions() const { return mapping_.at<std::byte>(header().submissions_offset); }
  std::byte* completions() const { return mapping_.at<std::byte>(header().completions_offset); }
  std::size_t bytes() const { return mapping_.bytes(); }

  // A record of `bytes` bytes, its body filled with `fill`.
  static std::vector<std::byte> record(std::uint32_t bytes, std::uint64_t sequence = 0,
                                       abi::RecordType type = abi::RecordType::kPick,
                                       std::byte fill = std::byte{0x5A}) {
    std::vector<std::byte> made(std::max<std::size_t>(bytes, sizeof(abi::RecordHead)), fill);
    const abi::RecordHead head{bytes, type, 0, 0, sequence};
    std::memcpy(made.data(), &head, sizeof head);
    return made;
  }

  // Submits as the contract says; false when the ring is full.
  bool submit(const std::vector<std::byte>& record) {
    const std::uint64_t ring = header().submissions_bytes;
    const std::uint64_t units = abi::ring_units_bytes(record.size());
    const std::uint64_t place = tail_ & (ring - 1);
    const std::uint64_t padding = place + units > ring ? ring - place : 0;
    if (tail_ + padding + units - indices().submissions_head.load(std::memory_order_acquire) >
        ring) {
      return false;
    }
    if (padding != 0) {
      write_at(
          tail_,
          ClientSide::record(static_cast<std::uint32_t>(padding), 0, abi::RecordType::kPadding),
          sizeof(abi::RecordHead));
      tail_ += padding;
    }
    write_at(tail_, record, record.size());
    publish(tail_ + units);
    return true;
  }
  // Writes without looking at anything.
  void write_at(std::uint64_t index, const std::vector<std::byte>& record, std::size_t bytes) {
    std::memcpy(submissions() + (index & (header().submissions_bytes - 1)), record.data(), bytes);
  }
  void publish(std::uint64_t tail) {
    tail_ = tail;
    indices().submissions_tail.store(tail, std::memory_order_release);
  }
  std::uint64_t tail() const { return tail_; }

  // The next completion, or nothing. Padding is passed over.
  std::vector<std::byte> next_completion() {
    while (true) {
      if (indices().completions_tail.load(std::memory_order_acquire) == head_) return {};
      const std::uint64_t ring = header().completions_bytes;
      const std::byte* at = completions() + (head_ & (ring - 1));
      abi::RecordHead head;
      std::memcpy(&head, at, sizeof head);
      std::vector<std::byte> record(at, at + head.bytes);
      head_ += abi::ring_units_bytes(head.bytes);
      indices().completions_head.store(head_, std::memory_order_release);
      if (head.type != abi::RecordType::kPadding) return record;
      ++paddings_;
    }
  }
  std::uint64_t paddings() const { return paddings_; }

 private:
  Mapping mapping_;
  std::uint64_t tail_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t paddings_ = 0;
};

class ChannelTest : public ::testing::Test {
 protected:
  explicit ChannelTest(ChannelParameters parameters = {}) {
    parameters.keys_max = 64;
    parameters.submissions_bytes = 64 * 1024;
    parameters.completions_bytes = 4 * 1024;
    auto made = Channel::create(parameters, &descriptors_);
    if (!made) throw std::runtime_error(made.error().text);
    channel_ = std::move(*made);
    client_ = std::make_unique<ClientSide>(descriptors_.segment.get());
    copy_.resize(Channel::record_bytes_max(parameters.keys_max));
  }

  Channel::Look take(std::size_t* bytes) { return channel_->take(copy_, bytes); }
  Channel::Look take() {
    std::size_t bytes = 0;
    return take(&bytes);
  }
  // The next record that is no padding, whole; empty when there is none.
  std::vector<std::byte> next_submission() {
    std::size_t bytes = 0;
    while (take(&bytes) == Channel::Look::kRecord) {
      if (bytes != 0) return {copy_.begin(), copy_.begin() + static_cast<std::ptrdiff_t>(bytes)};
    }
    return {};
  }

  ChannelDescriptors descriptors_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<ClientSide> client_;
  std::vector<std::byte> copy_;  // of exactly the promised size: a byte more is seen by ASan
};

}  // namespace pickd::workers::test
