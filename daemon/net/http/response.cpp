#include "daemon/net/http/response.hpp"

namespace pickd::net::http {

const char* failure_name(Failure failure) {
  switch (failure) {
    case Failure::kNone: return "ok";
    case Failure::kResolve: return "name not found";
    case Failure::kConnect: return "no connection";
    case Failure::kConnectTimeout: return "connect timed out";
    case Failure::kTls: return "tls refused";
    case Failure::kReset: return "connection lost";
    case Failure::kTimeout: return "timed out";
    case Failure::kTotalTimeout: return "took too long";
    case Failure::kMalformed: return "malformed answer";
    case Failure::kHeadTooLarge: return "head too large";
    case Failure::kBodyTooLarge: return "body too large";
    case Failure::kEncoded: return "compressed answer";
    case Failure::kRedirect: return "redirect refused";
    case Failure::kStopped: return "stopped";
    case Failure::kNoResources: return "no resources here";
  }
  return "unknown";
}

}  // namespace pickd::net::http
