// Turns texts into the features that networks see, and keeps them.
#pragma once

#include "engine/session.h"

namespace octet::engine {

// Encodes a text that is not kept yet; loads the encoder if it is missing. `ctx` has a profile.
PromptCache::Text encode_text(Session& session, nn::Context& ctx, const PromptCache::Tokens& tokens,
                              const OnRenderProgress& progress);

// Encodes the texts of a job ahead of its turn, if that costs nothing but the time: the encoder is
// on the device, and there is room beside what runs now. Whatever is wrong with the job is left for
// it to find. Watches the backend meanwhile, and leaves it without an observer. Throws Cancelled.
void encode_ahead(Session& session, const Job& job);

}  // namespace octet::engine
