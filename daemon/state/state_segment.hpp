// The state segment of this daemon: makes the file, maps it, hands out its parts.
//
// One writer: the daemon that holds the instance lock. Clients get the descriptor of
// open_read_only() and nothing else. The file is filled under another name and renamed, so that no
// reader ever sees half of one; it is never truncated or resized in place.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "abi/state_layout.hpp"
#include "daemon/base/fd.hpp"
#include "daemon/base/result.hpp"
#include "daemon/state/state_layout.hpp"

namespace boost::interprocess {
class mapped_region;
}

namespace pickd::state {

class StateSegment {
 public:
  // Goes on with the file at `path` when it is this boot's, whole, of our user and laid out as
  // wanted; else makes it anew. `origin` then says which, and why: "warm" or "empty: ...". A
  // virtual clock never goes on. -EBUSY while another daemon has the file, under whatever name.
  static base::Result<std::unique_ptr<StateSegment>> open_or_create(
      const std::string& path, const StateParameters& parameters, std::string* origin);

  // Makes `path` anew. The memory is allocated before it is mapped (a sparse file is SIGBUS later,
  // in the daemon and in its clients). Errors: no room in the file system, no permission, too
  // small.
  static base::Result<std::unique_ptr<StateSegment>> create(const std::string& path,
                                                            const StateParameters& parameters);
  ~StateSegment();
  StateSegment(const StateSegment&) = delete;
  StateSegment& operator=(const StateSegment&) = delete;

  // A descriptor for clients. Another user cannot reopen it for writing: the file's mode is 0600.
  base::Result<base::Fd> open_read_only() const;

  abi::StateHeader& header() const { return *header_; }
  abi::WorkerWord& worker_word(std::uint32_t worker) const;
  abi::Word* counters(std::uint32_t thread) const;  // kCountersMax words
  abi::EndpointRecord* endpoints() const;
  abi::Reservation* reservations() const;
  std::byte* routing_buffer(std::uint32_t which) const;
  std::byte* models() const;
  abi::Word* prefix_words() const;

  const std::string& path() const { return path_; }
  std::uint64_t page_bytes() const { return page_bytes_; }  // of the file system it lies on
  bool warm() const { return warm_; }                       // gone on with, not made
  std::uint64_t bytes() const { return layout_.total_bytes; }
  const StateLayout& layout() const { return layout_; }

 private:
  StateSegment() = default;
  template <typename T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

  base::Result<void> map(std::uint64_t bytes);

  std::string path_;
  bool warm_ = false;
  std::uint64_t page_bytes_ = abi::kPageBytes;
  StateLayout layout_;
  base::Fd fd_;
  std::unique_ptr<boost::interprocess::mapped_region> region_;
  std::byte* base_ = nullptr;
  abi::StateHeader* header_ = nullptr;
};

}  // namespace pickd::state
