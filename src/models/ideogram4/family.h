// Ideogram 4 as a row of the table of families.
#pragma once

#include "models/family.h"

namespace octet::ideogram4 {

const models::Family& family();

}  // namespace octet::ideogram4
