// Fields of a request for pictures that the native route and OpenAI's have in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/routes/call.h"
#include "server/routes/fields.h"
#include "server/service/service.h"

namespace octet::server {

// Sets the text of the picture: exactly one of `prompt` and `json_prompt`. `recognize`: a prompt
// that is itself a JSON object is taken for a caption.
void read_caption_fields(Fields& fields, const RequestLimits& limits, bool recognize,
                         JobSpec& spec);

// All others: negative_prompt, size, seed, steps, guidance, preset, n, lora, output_format and
// priority.
void read_picture_fields(Fields& fields, const RequestLimits& limits, JobSpec& spec);

// Who asks, and whether this request has been seen before.
JobSpec spec_of(const Call& call);

uint64_t random_seed();
bool is_json_object(std::string_view text);

}  // namespace octet::server
