// JSON of results that stand in documents of others.
#pragma once

#include "octet/generate.h"
#include "octet/tools/compare.h"
#include "report/json.h"

namespace octet::report {

// What ran, and where the time went.
Json json_of(const RenderReport& report);
Json json_of(const LinearCount& linears);

// What was asked for: version, model, size, caption, preset, guidance, seed.
Json json_of(const GenerateRequest& request, const RenderReport& report);

// What was compared.
Json json_of(const CompareReport& report);
Json json_of(const Statistic& statistic);

}  // namespace octet::report
