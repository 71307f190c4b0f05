// The C functions of clients: opening and closing, and what a client tells of itself.
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "libclient/client.hpp"
#include "libclient/memory.hpp"
#include "libclient/sized_struct.hpp"

using pickd::client::Call;
using pickd::client::destroy_object;
using pickd::client::LastError;
using pickd::client::Lock;
using pickd::client::make_object;
namespace abi = pickd::abi;

namespace {

constexpr std::uint32_t kChannelsDefault = 64;
constexpr std::uint32_t kConnectTimeoutMsDefault = 2000;
constexpr const char* kSocketPathDefault = "/run/pickd/pickd.sock";

// Copies a string option into `to`; false when it does not fit.
template <std::size_t N>
bool copy_string(const char* from, char (&to)[N]) {
  const std::size_t length = ::strlen(from);
  if (length >= N) return false;
  ::memcpy(to, from, length + 1);
  return true;
}

int apply_options(const pickd_options& options, pickd_client& client) {
  LastError& error = client.error;
  if ((options.flags & ~PICKD_OPEN_BUSY_POLL) != 0) {
    return error.set(-EINVAL, "flags 0x%x of the options: this library knows 0x%x", options.flags,
                     PICKD_OPEN_BUSY_POLL);
  }
  if (options.keys_max != 0 &&
      (options.keys_max < abi::kKeysMin || options.keys_max > abi::kKeysMax)) {
    return error.set(-EINVAL, "keys_max %u: %u to %u, or 0", options.keys_max, abi::kKeysMin,
                     abi::kKeysMax);
  }
  if (options.channels_max > abi::kChannelsPerClientMax) {
    return error.set(-EINVAL, "channels_max %u: at most %u", options.channels_max,
                     abi::kChannelsPerClientMax);
  }
  const char* path = options.socket_path;
  if (path == nullptr) path = ::getenv("PICKD_SOCKET");
  if (path == nullptr) path = kSocketPathDefault;
  if (*path == '\0') return error.set(-EINVAL, "the socket path is empty");
  const char* name = options.name == nullptr ? program_invocation_short_name : options.name;
  if (!copy_string(path, client.socket_path)) {
    return error.set(-E2BIG, "the socket path has more than %zu bytes",
                     sizeof client.socket_path - 1);
  }
  if (!copy_string(name, client.name)) {
    return error.set(-E2BIG, "the name of the client has more than %zu bytes",
                     sizeof client.name - 1);
  }

  client.keys_wanted = options.keys_max == 0 ? abi::kKeysDefault : options.keys_max;
  client.channels_max = options.channels_max == 0 ? kChannelsDefault : options.channels_max;
  client.connect_timeout_ms =
      options.connect_timeout_ms == 0 ? kConnectTimeoutMsDefault : options.connect_timeout_ms;
  const std::uint32_t spin_us = options.spin_us == 0               ? abi::kSpinDefaultUs
                                : options.spin_us == PICKD_NO_SPIN ? 0
                                                                   : options.spin_us;
  client.wait_policy = {spin_us, (options.flags & PICKD_OPEN_BUSY_POLL) != 0};
  return 0;
}

int draw_client_id(std::uint64_t* id) {
  do {
    if (::getrandom(id, sizeof *id, 0) != static_cast<ssize_t>(sizeof *id)) return -errno;
  } while (*id == 0);
  return 0;
}

// The options as they were before they had a place for words.
constexpr std::size_t kFirstOptionsBytes = offsetof(pickd_options, error);

void say(const pickd_options& options, const char* words) {
  if (options.error != nullptr && options.error_size != 0)
    ::snprintf(options.error, options.error_size, "%s", words);
}

int open_client(const pickd_options& options, pickd_client& client) {
  client.ticks.begin();
  int code = apply_options(options, client);
  if (code == 0) code = client.fork.arm();
  if (code == 0) code = draw_client_id(&client.id);
  if (code == 0) code = client.connect(client.connect_deadline());
  if (code == 0) client.ticks.calibrate();
  return code;
}

}  // namespace

extern "C" {

int pickd_open(const pickd_options* options, pickd_client** client) {
  if (client == nullptr) return -EINVAL;
  *client = nullptr;
  pickd_options copy = PICKD_OPTIONS_INIT;
  if (options != nullptr) {
    const int code = pickd::client::read_sized(options, kFirstOptionsBytes, &copy);
    // What this library does not know stands behind the place for the words.
    if (code == -E2BIG) say(*options, "the options set a field that this library does not know");
    if (code != 0) return code;
  }
  pickd::client::Owned<pickd_client> opened(make_object<pickd_client>());
  if (opened == nullptr) {
    say(copy, "out of memory");
    return -ENOMEM;
  }
  Call call(opened->error);
  const int code = call.end(open_client(copy, *opened));
  if (code != 0) {
    opened->error.copy(copy.error, copy.error_size);
    return code;
  }
  say(copy, "");
  *client = opened.release();
  return 0;
}

void pickd_close(pickd_client* client) {
  if (client == nullptr) return;
  if (client->fork.in_child()) client->abandon();
  destroy_object(client);
}

int pickd_daemon_info(pickd_client* client, uint32_t* block_tokens, uint32_t* keys_max,
                      const char** version) {
  if (client == nullptr) return -EINVAL;
  if (client->fork.in_child()) return -EOWNERDEAD;
  const Lock lock(client->mutex);
  if (block_tokens != nullptr) *block_tokens = client->session->state().block_tokens();
  if (keys_max != nullptr) *keys_max = client->session->keys_max();
  if (version != nullptr) *version = client->versions->text;
  return 0;
}

size_t pickd_last_error(pickd_client* client, char* buffer, size_t size) {
  if (client != nullptr && !client->fork.in_child()) return client->error.copy(buffer, size);
  if (buffer != nullptr && size > 0) buffer[0] = '\0';
  return 0;
}

}  // extern "C"
