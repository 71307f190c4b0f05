// Session: see session.hpp.
#include "libclient/session.hpp"

#include <errno.h>
#include <stdio.h>

namespace pickd::client {

int Session::open(const Identity& identity, const Deadline& deadline, LastError& error,
                  Session** session) {
  Session* opened = make_object<Session>();
  if (opened == nullptr) return error.set(-ENOMEM, "out of memory");
  int code = opened->connection_.open(identity.socket_path, deadline, error);
  if (code == 0) code = opened->greet(identity, deadline, error);
  if (code != 0) {
    opened->drop();
    return code;
  }
  *session = opened;
  return 0;
}

int Session::greet(const Identity& identity, const Deadline& deadline, LastError& error) {
  const Owned<ControlExchange> exchange = make_exchange();
  if (exchange == nullptr) return error.set(-ENOMEM, "out of memory");
  flatbuffers::FlatBufferBuilder& builder = exchange->builder();
  const auto name = builder.CreateString(identity.name);
  exchange->set_body(fb::CreateHello(builder, abi::kLayoutMajor, abi::kLayoutMinor, identity.client,
                                     name, identity.keys_max, identity.last_sequence));
  if (const int code = connection_.request(*exchange, deadline, error); code != 0) return code;
  greeted_ = true;

  const auto* welcome = exchange->reply_as<fb::Welcome>();
  if (welcome == nullptr || exchange->descriptor_count() != 1) {
    return error.set(
        -EPROTO, "the daemon answered a hello with something else than a welcome and a segment");
  }
  if (welcome->layout_major() != abi::kLayoutMajor) {
    return error.set(-EPROTONOSUPPORT, "the daemon speaks layout %u.%u, this library %u.%u",
                     unsigned{welcome->layout_major()}, unsigned{welcome->layout_minor()},
                     unsigned{abi::kLayoutMajor}, unsigned{abi::kLayoutMinor});
  }
  if (const int code = state_.map(exchange->take_descriptor(0), error); code != 0) return code;
  daemon_epoch_ = state_.daemon_epoch();
  keys_max_ = welcome->keys_max();
  if (keys_max_ < abi::kKeysMin || keys_max_ > identity.keys_max) {
    return error.set(-EPROTO, "the daemon granted chains of %u keys where %u were asked for",
                     keys_max_, identity.keys_max);
  }
  ::snprintf(daemon_version_, sizeof daemon_version_, "%s",
             welcome->version() == nullptr ? "unknown" : welcome->version()->c_str());
  return 0;
}

}  // namespace pickd::client
