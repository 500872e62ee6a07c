// octet::generate as the other public functions use it.
#pragma once

#include "octet/generate.h"
#include "pipeline/generate.h"

namespace octet {

// Throws what generate() would throw before it loads anything.
pipeline::LatentShape check_request(const GenerateRequest& request);

}  // namespace octet
