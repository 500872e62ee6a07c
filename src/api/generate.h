// octet::generate as the other public functions use it.
#pragma once

#include <functional>

#include "engine/generate.h"
#include "octet/generate.h"

namespace octet {

// Throws what generate() would throw before it loads anything; with `warn` also logs its warnings.
engine::LatentShape check_request(const GenerateRequest& request, bool warn);

// generate() of a request whose warnings were logged before.
GenerateReport generate_checked(const GenerateRequest& request, const OnGenerateStep& on_step,
                                const std::function<void(const Picture&)>& on_picture);

}  // namespace octet
