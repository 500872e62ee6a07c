// In which way the linears of a model ran, by their names.
#pragma once

#include <map>
#include <string>

#include "nn/profile.h"
#include "octet/picture.h"

namespace octet::engine {

using LinearUses = std::map<std::string, nn::Profile::LinearUse>;

LinearCount count_of(const LinearUses& linears);
// Throws Error for a linear that nobody protects from INT8, and that ran as something else.
void check_native(const LinearUses& linears);

}  // namespace octet::engine
