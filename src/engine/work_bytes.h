// What pictures take of a device's memory beside weights. The footprint runs parts while none of
// their weights is loaded, so it is asked when a model is opened, at a few sizes; what a picture of
// any other takes follows from these counts, at once and on any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "models/family.h"
#include "models/footprint.h"

namespace octet::engine {

// What a device has for it, or the host that is one.
double free_for_work(const Backend& backend);

class WorkBytes {
 public:
  WorkBytes() = default;
  // Of a device that runs `networks` of a model, and nothing else of it unless `text` says how.
  WorkBytes(const models::Model& model, std::span<models::Network* const> networks,
            const models::RunAs& how, const std::optional<models::RunAs>& text);

  uint64_t of(const models::Extent& extent) const;
  // Of encoding a text.
  uint64_t of_text(int64_t tokens) const;
  // Of a picture of 1024 x 1024 pixels.
  uint64_t usual() const { return of(usual_); }

 private:
  // Activations grow by as much with every token of the picture, of its text and every step.
  struct Growth {
    double base = 0, per_token = 0, per_text_token = 0, per_step = 0;
    double at(const models::Extent& extent) const;
  };
  // `extents`: one, and one with fewer tokens, one with less text, one with fewer steps.
  static Growth growth_of(const std::array<models::Extent, 4>& extents,
                          const std::array<uint64_t, 4>& bytes);

  Growth denoising_, encoding_, decoding_;
  models::Extent usual_;
};

}  // namespace octet::engine
