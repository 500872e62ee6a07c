// Latents become pictures within the memory that is free by then.
#pragma once

#include <functional>
#include <span>

#include "base/unset_vector.h"
#include "engine/session.h"

namespace octet::engine {

// What is there for images, where it is less than the whole takes; else 0.
uint64_t image_bound(Session& session, const models::Grid& grid, DType dtype);

// As models::Decoder::decode(): the same picture, slower where memory is short.
UnsetVector<float> decode_within_memory(Session& session, nn::Context& ctx,
                                        std::span<const float> latent, const models::Grid& grid,
                                        const std::function<void(double)>& progress);

}  // namespace octet::engine
