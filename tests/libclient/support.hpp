// What several tests of the library need: a state segment as a daemon makes it, and a client that
// is not connected, for what is refused before a daemon is asked.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "abi/state_layout.hpp"
#include "libclient/client.hpp"
#include "libclient/memory.hpp"
#include "libclient/state_view.hpp"

namespace pickd::client {

inline constexpr std::uint64_t kTestStateBytes = 64 * 1024;

// Fills `header` as a daemon with blocks of 64 tokens and two workers would.
inline void fill_state_header(abi::StateHeader& header) {
  header.segment.magic = abi::kStateMagic;
  header.segment.layout_major = abi::kLayoutMajor;
  header.segment.layout_minor = abi::kLayoutMinor;
  header.segment.header_bytes = sizeof(abi::StateHeader);
  header.segment.total_bytes = kTestStateBytes;
  header.segment.byte_order_mark = abi::kByteOrderMark;
  header.segment.daemon_epoch = 7;
  header.segment.version.store(abi::segment_version(abi::kLayoutMajor, abi::kLayoutMinor));
  header.block_tokens = 64;
  header.keys_max = 2048;
  header.workers = 2;
  header.workers_offset = abi::kPageBytes;
  header.key_algorithms[0] = {1, abi::KeyKind::kText, 1, 0, 256};
  header.key_algorithms[1] = {2, abi::KeyKind::kTokens, 1, 0, 256};
  for (std::size_t i = 0; i < abi::kHashSecretBytes; ++i) {
    header.hash_secret[i] = static_cast<std::uint8_t>(i * 167 + 13);
  }
}

// A segment of `bytes` bytes whose header `change` may spoil.
inline Fd make_state_segment(
    const std::function<void(abi::StateHeader&)>& change = [](abi::StateHeader&) {},
    std::uint64_t bytes = kTestStateBytes) {
  Fd segment(::memfd_create("state", MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(segment.get(), static_cast<off_t>(kTestStateBytes)), 0);
  void* memory =
      ::mmap(nullptr, kTestStateBytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment.get(), 0);
  auto* header = new (memory) abi::StateHeader{};
  fill_state_header(*header);
  change(*header);
  ::munmap(memory, kTestStateBytes);
  EXPECT_EQ(::ftruncate(segment.get(), static_cast<off_t>(bytes)), 0);
  return segment;
}

inline std::string last_error(LastError& error) {
  char text[512];
  error.copy(text, sizeof text);
  return text;
}

// A client as pickd_open() makes it, before it connects.
inline Owned<pickd_client> unconnected_client() {
  Owned<pickd_client> client(make_object<pickd_client>());
  EXPECT_EQ(client->fork.arm(), 0);
  client->id = 1;
  client->connect_timeout_ms = 1000;
  return client;
}

struct FreeResult {
  void operator()(pickd_result* result) const { pickd_result_free(result); }
};
using Result = std::unique_ptr<pickd_result, FreeResult>;
inline Result new_result() { return Result(pickd_result_new()); }

}  // namespace pickd::client
