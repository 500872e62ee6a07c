// JSON of renderings, for the documents that hold some.
#pragma once

#include "octet/generate.h"
#include "report/json.h"

namespace octet::report {

// What ran, and where the time went.
Json json_of(const RenderReport& report);
Json json_of(const LinearCount& linears);

// What was asked for: version, model, size, caption, preset, guidance, seed.
Json json_of(const GenerateRequest& request, const RenderReport& report);

}  // namespace octet::report
