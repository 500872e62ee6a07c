// In which way the linears of a model ran, by their names.
#pragma once

#include <map>
#include <string>

#include "nn/profile.h"
#include "octet/picture.h"

namespace octet::engine {

using LinearUses = std::map<std::string, nn::Profile::LinearUse>;

LinearCount count_of(const LinearUses& linears);
// What `require_int8` demands. Throws Error for a device that does not multiply int8,
void check_native(const Backend& backend);
// and for a linear that neither its family nor its checkpoint keeps from INT8, and that ran as
// something else.
void check_native(const LinearUses& linears);

}  // namespace octet::engine
