// JSON of results that stand in documents of others.
#pragma once

#include "octet/generate.h"
#include "octet/tools/compare.h"
#include "octet/tools/report.h"
#include "report/json.h"

namespace octet::report {

// What was requested: version, model, size, caption, preset, guidance, seed.
Json json_of(const GenerateRequest& request, const RenderReport& report);

// Where weights were, and what of them came in each step.
Json json_of(const PlannedPictures& planned);

}  // namespace octet::report

namespace octet {

// What ran, and where the time went.
void to_json(report::Json& json, const RenderReport& report);
void to_json(report::Json& json, const LinearCount& linears);
void to_json(report::Json& json, const PartPlace& place);

// What was compared.
void to_json(report::Json& json, const CompareReport& report);
void to_json(report::Json& json, const Statistic& statistic);

}  // namespace octet
