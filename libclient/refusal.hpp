// Why a pick found nobody, in words.
#pragma once

#include "libclient/last_error.hpp"
#include "libclient/pick_request.hpp"

namespace pickd::client {

// Sets the words for a pick that ended with `status`, a negative errno, and returns it. `request`:
// where it is at hand still, else nullptr. `degraded`: the library looked by itself.
int explain_refusal(LastError& error, const PickRequest* request, bool degraded, int status);

}  // namespace pickd::client
