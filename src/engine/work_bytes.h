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
// The same within a budget of bytes; 0: none. Devices with a limit of their own keep it themselves.
double free_for_work(const Backend& backend, uint64_t budget);

class WorkBytes {
 public:
  WorkBytes() = default;
  // Of a device that runs `networks` of a model, and nothing else of it unless `text` says how.
  // `of_ops`: what its single ops take for themselves, models::kOpsBytes for a GPU.
  WorkBytes(const models::Model& model, std::span<models::Network* const> networks,
            const models::RunAs& how, const std::optional<models::RunAs>& text,
            uint64_t of_ops = models::kOpsBytes);

  // The most that any stage takes.
  uint64_t of(const models::Extent& extent) const;
  // Of the steps alone; and of what they take and give back within each pass.
  uint64_t of_steps(const models::Extent& extent) const;
  uint64_t of_pass(const models::Extent& extent) const;
  // Of encoding a text.
  uint64_t of_text(int64_t tokens) const;
  // The least that decoding takes, with what is kept of the prompt and the schedule.
  uint64_t least_of_decoding(const models::Extent& extent) const;
  // A picture of 1024 x 1024 pixels.
  const models::Extent& usual_extent() const { return usual_; }
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

  Growth denoising_, passes_, encoding_, decoding_, least_decoding_;
  models::Extent usual_;
  uint64_t of_ops_ = 0;
};

}  // namespace octet::engine
