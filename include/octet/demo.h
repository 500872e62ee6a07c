// The demo: a picture by the small model that comes with Octet.
#pragma once

#include <cstdint>
#include <string>

#include "octet/export.h"
#include "octet/generate.h"

namespace octet {

// Of the noise that demo.json is painted from.
inline constexpr uint64_t kDemoSeed = 7;

// A request for a picture of this caption (JSON, see octet/caption.h), or of the one that lies in
// the model's folder as demo.json; preset and size are the model's own.
//
// The model is in the folder that OCTET_DEMO_MODEL names, else in share/octet/demo of the
// installation that this library or program belongs to, else in models/demo of the source tree that
// it was built from and not installed. Throws Error where it is in none of them.
OCTET_API GenerateRequest demo_request(const std::string& caption = {});

}  // namespace octet
