// Which Octet this is.
#pragma once

#include <string>

namespace octet {

std::string version();  // "0.1.0"
std::string commit();   // the short commit of the build, "+changes" when the tree differed from it

}  // namespace octet
