// JSON as the one text of its values that digests are taken of, and that other programs can make:
// sorted keys, no spaces, strings in UTF-8 with no escape that is not needed, and floating-point
// numbers in the fewest digits that give them back, with an exponent below 1e-4 and from 1e16 on.
// That is json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False) of Python.
#pragma once

#include <string>

#include "formats/json_value.h"

namespace octet {

// Text that is not UTF-8 must have been replaced before.
std::string canonical_json(const nlohmann::json& value);

}  // namespace octet
