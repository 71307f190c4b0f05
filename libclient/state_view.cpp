// StateView: see state_view.hpp.
#include "libclient/state_view.hpp"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "libclient/fork.hpp"

namespace pickd::client {

int check_segment(const abi::SegmentHeader& segment, std::uint64_t magic,
                  std::uint64_t header_bytes_min, std::uint64_t file_bytes, LastError& error) {
  // Partner: the daemon stores `version` last with release; everything read below was stored
  // before.
  const std::uint64_t version = segment.version.load(std::memory_order_acquire);
  if (version == 0)
    return error.set(-EPROTO, "the daemon handed out a segment that is still being filled");
  if (segment.magic != magic || segment.byte_order_mark != abi::kByteOrderMark) {
    return error.set(-EPROTO, "the daemon handed out a segment with a wrong magic or byte order");
  }
  if (segment.layout_major != abi::kLayoutMajor ||
      version != abi::segment_version(segment.layout_major, segment.layout_minor)) {
    return error.set(-EPROTONOSUPPORT, "segment layout %u.%u, this library reads %u.x",
                     unsigned{segment.layout_major}, unsigned{segment.layout_minor},
                     unsigned{abi::kLayoutMajor});
  }
  if ((segment.features & ~abi::kFeaturesKnown) != 0) {
    return error.set(-EPROTONOSUPPORT, "segment uses features 0x%x, this library knows 0x%x",
                     segment.features, abi::kFeaturesKnown);
  }
  if (segment.header_bytes < header_bytes_min || segment.header_bytes > file_bytes ||
      segment.total_bytes != file_bytes) {
    return error.set(-EPROTO, "segment of %llu bytes lies about its size",
                     static_cast<unsigned long long>(file_bytes));
  }
  return 0;
}

StateView::~StateView() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

int StateView::map(Fd descriptor, LastError& error) {
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) {
    const int code = -errno;
    return error.set(code, "fstat of the state segment: %s", ::strerror(-code));
  }
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  if (status.st_size < 0 || file_bytes < sizeof(abi::StateHeader)) {
    return error.set(-EPROTO, "the state segment is too small for its header");
  }
  void* base = ::mmap(nullptr, file_bytes, PROT_READ, MAP_SHARED, descriptor.get(), 0);
  if (base == MAP_FAILED) {
    const int code = -errno;
    return error.set(code, "mmap of the state segment: %s", ::strerror(-code));
  }
  base_ = base;
  bytes_ = file_bytes;
  header_ = static_cast<const abi::StateHeader*>(base);
  if (const int code = keep_from_children(base, bytes_); code != 0) {
    return error.set(code, "madvise of the state segment: %s", ::strerror(-code));
  }
  return check(error);
}

int StateView::check(LastError& error) {
  if (const int code = check_segment(header_->segment, abi::kStateMagic, sizeof(abi::StateHeader),
                                     bytes_, error);
      code != 0) {
    return code;
  }
  block_tokens_ = header_->block_tokens;
  keys_max_ = header_->keys_max;
  workers_ = header_->workers;
  const std::uint64_t words_offset = header_->workers_offset;
  ::memcpy(algorithms_, header_->key_algorithms, sizeof algorithms_);
  ::memcpy(hash_secret_, header_->hash_secret, sizeof hash_secret_);

  if (block_tokens_ < abi::kBlockTokensMin || block_tokens_ > abi::kBlockTokensMax ||
      keys_max_ < abi::kKeysMin || keys_max_ > abi::kKeysMax || workers_ == 0 ||
      workers_ > abi::kWorkersMax) {
    return error.set(-EPROTO,
                     "state header: block_tokens %u, keys_max %u or workers %u is out of range",
                     block_tokens_, keys_max_, workers_);
  }
  const std::uint64_t words_bytes = abi::kWorkersMax * sizeof(abi::WorkerWord);
  if (words_offset % alignof(abi::WorkerWord) != 0 || words_offset > bytes_ ||
      bytes_ - words_offset < words_bytes) {
    return error.set(-EPROTO, "state header: the worker words lie outside the segment");
  }
  worker_words_ =
      reinterpret_cast<const abi::WorkerWord*>(static_cast<const char*>(base_) + words_offset);
  if (!store_.attach(base_, bytes_, *header_)) {
    return error.set(-EPROTO, "state header: endpoints, routing or prefix lie outside the segment");
  }
  for (const abi::KeyAlgorithm& entry : algorithms_) {
    if (entry.id != 0 && entry.block_bytes != block_tokens_ * abi::kBytesPerToken) {
      return error.set(-EPROTO, "state header: key algorithm %u has blocks of %u bytes, not %zu",
                       unsigned{entry.id}, entry.block_bytes,
                       std::size_t{block_tokens_} * abi::kBytesPerToken);
    }
  }
  return 0;
}

const abi::KeyAlgorithm* StateView::algorithm(abi::KeyKind kind) const {
  for (const abi::KeyAlgorithm& entry : algorithms_) {
    if (entry.id != 0 && entry.kind == kind) return &entry;
  }
  return nullptr;
}

}  // namespace pickd::client
