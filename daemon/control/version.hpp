// The version of this daemon.
#pragma once

#include "pickd/pickd.h"

namespace pickd::control {

#define PICKD_WORD_(x) #x
#define PICKD_WORD(x) PICKD_WORD_(x)
inline constexpr char kVersion[] = PICKD_WORD(PICKD_VERSION_MAJOR) "." PICKD_WORD(
    PICKD_VERSION_MINOR) "." PICKD_WORD(PICKD_VERSION_PATCH);
#undef PICKD_WORD
#undef PICKD_WORD_

}  // namespace pickd::control
