// The version of Octet.
#pragma once

#include <string>

#include "octet/export.h"

namespace octet {

OCTET_API std::string version();  // "0.2.0"
// The short commit of the build, with "+changes" when the tree differed from it.
OCTET_API std::string commit();

}  // namespace octet
