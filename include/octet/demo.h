// The demo: a picture from a small model with all of Ideogram 4's structure.
#pragma once

#include "octet/export.h"
#include "octet/generate.h"

namespace octet {

// A request for the demo's picture. Its model, of seeded random weights, is written into the cache
// folder when it is not there yet.
OCTET_API GenerateRequest demo_request();

}  // namespace octet
