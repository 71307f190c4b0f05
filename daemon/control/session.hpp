// A session: one client's connection, who it is and what it holds. Plain data of the control
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>

#include "daemon/base/fd.hpp"
#include "daemon/net/unix_socket.hpp"
#include "daemon/pick/explanation.hpp"

namespace pickd::control {

struct Session {
  std::uint64_t id = 0;
  base::Fd socket;
  base::Fd process;  // pidfd; invalid when the kernel has none
  net::Peer peer;
  bool admin = false;
  bool greeted = false;  // Hello came and was accepted
  bool leaving = false;  // Goodbye came: its end is no death
  bool resting = false;  // its user had its share of the control thread: not read for a moment
  bool ended = false;    // its socket is closed; waits for its channels to leave the workers
  std::uint64_t client = 0;
  std::string name;  // printable
  std::uint32_t keys_max = 0;
  std::unordered_set<std::uint32_t> channels;
  // Until its last row has been sent.
  std::unique_ptr<const pick::Explanation> explanation;
  std::string config_text;  // likewise until its last byte

  // Who it is, for the log.
  std::string words() const {
    return "client " + std::to_string(id) + " \"" + name + "\" pid " + std::to_string(peer.pid) +
           " uid " + std::to_string(peer.uid);
  }
  // The name under which this client's endpoints stand.
  std::string source() const { return "client:" + std::to_string(client); }
};

}  // namespace pickd::control
