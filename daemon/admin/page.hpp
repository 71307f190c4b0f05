// The page: one HTML document with its style and script in it, made at build time from page/, and
// the policy that lets a browser run these and nothing else.
#pragma once

#include <string>

#include "daemon/admin/answer.hpp"

namespace pickd::admin {

// Made once; the same for everybody.
Answer page_answer();

}  // namespace pickd::admin
