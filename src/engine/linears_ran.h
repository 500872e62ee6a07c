// How the linears of a model ran, by name.
#pragma once

#include <map>
#include <string>

#include "nn/profile.h"
#include "octet/picture.h"

namespace octet::engine {

using LinearUses = std::map<std::string, nn::Profile::LinearUse>;

LinearCount count_of(const LinearUses& linears);
// The checks of `require_int8`. Throws Error for a device that does not multiply int8,
void check_native(const Backend& backend);
// and for a linear that did not run in INT8 although neither its family nor its checkpoint keeps it
// in floating point.
void check_native(const LinearUses& linears);

}  // namespace octet::engine
