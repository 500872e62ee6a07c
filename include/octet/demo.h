// The demo: a small model with everything that Ideogram 4 has, and a picture of it.
#pragma once

#include "octet/export.h"
#include "octet/generate.h"

namespace octet {

// A request for the demo's picture. Its model, of seeded random weights, is written into the cache
// folder when it is not there yet.
OCTET_API GenerateRequest demo_request();

}  // namespace octet
