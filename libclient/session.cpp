// Session: see session.hpp.
#include "libclient/session.hpp"

#include <errno.h>
#include <stdio.h>

namespace pickd::client {

int Session::open(const Identity& identity, const Deadline& deadline, LastError& error,
                  Session** session) {
  Session* opened = nullptr;
  int code = begin(identity, deadline, Connection::When::kWait, error, &opened);
  if (code != 0 || opened == nullptr) return code;
  code = opened->finish(deadline, error);
  if (code != 0) {
    opened->drop();
    return code;
  }
  *session = opened;
  return 0;
}

int Session::begin(const Identity& identity, const Deadline& deadline, Connection::When when,
                   LastError& error, Session** session) {
  Session* opened = make_object<Session>();
  if (opened == nullptr) return error.set(-ENOMEM, "out of memory");
  opened->hello_ = make_exchange();
  int code = opened->hello_ == nullptr ? error.set(-ENOMEM, "out of memory") : 0;
  if (code == 0) code = opened->connection_.open(identity.socket_path, deadline, error, when);
  if (code == 0) {
    opened->keys_wanted_ = identity.keys_max;
    flatbuffers::FlatBufferBuilder& builder = opened->hello_->builder();
    const auto name = builder.CreateString(identity.name);
    opened->hello_->set_body(fb::CreateHello(builder, abi::kLayoutMajor, abi::kLayoutMinor,
                                             identity.client, name, identity.keys_max,
                                             identity.last_sequence));
    code = opened->connection_.begin(*opened->hello_, error);
    // A daemon that refuses a client says why and hangs up at once: its words wait for finish().
    if (code == -ENOTCONN) code = 0;
  }
  if (code != 0) {
    opened->drop();
    return code;
  }
  *session = opened;
  return 0;
}

int Session::finish(const Deadline& deadline, LastError& error) {
  const int code = connection_.await(*hello_, deadline, error);
  greeted_ = code == 0 || code == -EMFILE;  // welcome, but no descriptor was left for the segment
  if (code != 0) return code;
  const Owned<ControlExchange> exchange(hello_.release());

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
  if (const int failed = state_.map(exchange->take_descriptor(0), error); failed != 0)
    return failed;
  daemon_epoch_ = state_.daemon_epoch();
  keys_max_ = welcome->keys_max();
  if (keys_max_ < abi::kKeysMin || keys_max_ > keys_wanted_) {
    return error.set(-EPROTO, "the daemon granted chains of %u keys where %u were asked for",
                     keys_max_, keys_wanted_);
  }
  ::snprintf(daemon_version_, sizeof daemon_version_, "%s",
             welcome->version() == nullptr ? "unknown" : welcome->version()->c_str());
  return 0;
}

}  // namespace pickd::client
