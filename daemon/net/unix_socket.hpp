// Unix sockets that keep message borders, with descriptors and credentials. Knows no message's
// meaning.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "abi/limits.hpp"
#include "daemon/base/fd.hpp"
#include "daemon/base/result.hpp"

namespace pickd::net {

// Listens at `path` (SOCK_SEQPACKET, non-blocking) with permission bits `mode` and, when not empty,
// `group`. A socket file that is there is replaced: the caller holds the instance lock. Who sees
// the file can connect (listen_at).
base::Result<base::Fd> listen_unix(const std::string& path, std::uint32_t mode,
                                   const std::string& group);

// The next connection, non-blocking; an invalid Fd when there is none.
base::Result<base::Fd> accept_unix(int listener);

struct Peer {
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};
base::Result<Peer> peer_of(int socket);

// A descriptor that becomes readable when the process ends; invalid when the kernel has none.
base::Fd open_pidfd(std::uint32_t pid);

struct Packet {
  std::vector<std::byte> bytes;
  bool end = false;     // the peer closed
  bool again = false;   // nothing there now
  bool broken = false;  // over the limit, or with descriptors: nobody sends those to the daemon
  std::vector<base::Fd> strays;  // those descriptors; closing them can take long, see Closer
};

// Takes one packet of at most `bytes_max`.
Packet receive_packet(int socket, std::size_t bytes_max);

// Sends one packet with descriptors, at most kControlDescriptorsMax, which stay the caller's.
// -EAGAIN when the peer does not read.
base::Result<void> send_packet(int socket, std::span<const std::uint8_t> bytes,
                               std::span<const int> fds);

}  // namespace pickd::net
