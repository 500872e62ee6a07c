#include "engine/decoding.h"

#include <algorithm>

#include "backend/host_backend.h"
#include "base/out_of_memory.h"
#include "engine/work_bytes.h"
#include "models/footprint.h"

namespace octet::engine {

uint64_t image_bound(Session& session, const models::Grid& grid, DType dtype) {
  // Beside weights that stay, what is free is in pieces: some of it fits nothing.
  constexpr double kOfPieces = 0.75;
  const models::Decoder& decoder = *session.model().decoder;
  const Backend& backend = session.backend();
  double free = free_for_work(backend, session.options().model.max_memory);
  if (!keeps_data_on_host(backend)) free -= static_cast<double>(models::kOpsBytes);
  if (!session.decoder().is_loaded()) free -= static_cast<double>(session.plan().back().bytes);
  if (free > static_cast<double>(decoder.image_bytes(grid, dtype))) return 0;
  return std::max(decoder.least_image_bytes(grid, dtype),
                  static_cast<uint64_t>(std::max(kOfPieces * free, 0.0)));
}

UnsetVector<float> decode_within_memory(Session& session, nn::Context& ctx,
                                        std::span<const float> latent, const models::Grid& grid,
                                        const std::function<void(double)>& progress) {
  const models::Decoder& decoder = *session.model().decoder;
  const uint64_t least = decoder.least_image_bytes(grid, ctx.dtype);
  ctx.image_bytes = image_bound(session, grid, ctx.dtype);
  try {
    return decoder.decode(ctx, latent, grid, progress);
  } catch (const OutOfMemory&) {
    if (ctx.image_bytes == least) throw;
  }
  // More pieces than expected: with the least for images, once more.
  session.backend().trim_memory();
  ctx.image_bytes = least;
  return decoder.decode(ctx, latent, grid, progress);
}

}  // namespace octet::engine
