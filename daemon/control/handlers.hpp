// Handlers: one function a control message. A new message is a function here and a line in the
// table of dispatch.cpp.
#pragma once

#include "daemon/control/control_server.hpp"

namespace pickd::control {

struct Handlers {
  using Function = void (*)(ControlServer& server, Session& session, const fb::Message& message);

  // handle_session.cpp
  static void hello(ControlServer& server, Session& session, const fb::Message& message);
  static void open_channel(ControlServer& server, Session& session, const fb::Message& message);
  static void close_channel(ControlServer& server, Session& session, const fb::Message& message);
  static void goodbye(ControlServer& server, Session& session, const fb::Message& message);

  // handle_endpoints.cpp
  static void change_endpoint(ControlServer& server, Session& session, const fb::Message& message);
  static void replace_endpoints(ControlServer& server, Session& session,
                                const fb::Message& message);
  static void ask_endpoints(ControlServer& server, Session& session, const fb::Message& message);

  // handle_status.cpp
  static void ask_status(ControlServer& server, Session& session, const fb::Message& message);
  static void ask_store(ControlServer& server, Session& session, const fb::Message& message);
  static void set_clock(ControlServer& server, Session& session, const fb::Message& message);

  // handle_explain.cpp
  static void ask_explain(ControlServer& server, Session& session, const fb::Message& message);

  // handle_recording.cpp
  static void ask_recording(ControlServer& server, Session& session, const fb::Message& message);

  // handle_config.cpp
  static void ask_config(ControlServer& server, Session& session, const fb::Message& message);
};

}  // namespace pickd::control
