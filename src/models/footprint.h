// What a model takes of a device's memory: weights, what is kept of a prompt and of a schedule, the
// work of a pass, decoding, text. The one place where memory is counted; whoever plans, predicts or
// refuses for lack of it asks here.
//
// Everything but weights and decoding is found by running the part itself on a device that only
// counts (backend/counting_backend.h). So it holds for every family, and follows its code. Parts
// are asked while none of their weights is loaded.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "backend/counting_backend.h"
#include "models/part.h"

namespace octet::models {

// How a part runs.
struct RunAs {
  DType dtype = DType::bf16;  // of activations, and of weights that are not INT8
  bool int8 = true;           // large linears
  // Of these, those that are in floating point nevertheless; empty: none.
  std::function<bool(const nn::LinearSpec&)> floating = {};
  nn::AttentionScores scores = nn::AttentionScores::floating;
  int64_t rows_at_once = 0;  // of a network
};

// Parts on a device that only counts. They have weights of its memory as long as this lives, and
// none after it.
class CountedRun {
 public:
  explicit CountedRun(const RunAs& how)
      : how_(how),
        ctx_{.backend = device_,
             .dtype = how.dtype,
             .scores = how.scores,
             .rows_at_once = how.rows_at_once} {}
  ~CountedRun() {
    for (Part* part : parts_) part->release_all();
  }
  CountedRun(const CountedRun&) = delete;
  CountedRun& operator=(const CountedRun&) = delete;

  void add(Part& part);
  nn::Context& ctx() { return ctx_; }
  // Beside weights.
  uint64_t used() const { return device_.memory().used - weight_bytes_; }
  uint64_t peak() const { return device_.memory().peak - weight_bytes_; }

 private:
  RunAs how_;
  CountingBackend device_;
  nn::Context ctx_;
  std::vector<Part*> parts_;
  uint64_t weight_bytes_ = 0;
};

// Of a unit, as `device` packs it; null: without the padding of any layout.
uint64_t unit_bytes(Part& part, int64_t unit, const RunAs& how, const Backend* device = nullptr);

struct WeightBytes {
  uint64_t all = 0;
  uint64_t largest_unit = 0;
};
// As `device` packs them; null: without the padding of any layout.
WeightBytes weight_bytes(Part& part, const RunAs& how, const Backend* device = nullptr);

// A picture, or several that run side by side.
struct Extent {
  Grid grid;
  int64_t text_tokens = 0;
  int64_t steps = 1;
  int64_t batch = 1;
};

// Beside weights, of networks that take turns.
struct DenoisingBytes {
  uint64_t conditioning = 0;  // of all networks, kept for the prompt and the size
  uint64_t timelines = 0;     // likewise for the schedule
  uint64_t latents = 0;       // and their velocities, one for each network
  uint64_t work = 0;          // the most that a pass, or what comes before, takes in addition

  uint64_t all() const { return conditioning + timelines + latents + work; }
};
DenoisingBytes denoising_bytes(std::span<Network* const> networks, const Extent& extent,
                               const RunAs& how);

uint64_t encoding_bytes(TextEncoder& encoder, int64_t tokens, const RunAs& how);

// Of the images, and of ops.
uint64_t decoding_bytes(const Decoder& decoder, const Grid& grid, DType dtype);
// The least that it can do with.
uint64_t least_decoding_bytes(const Decoder& decoder, const Grid& grid, DType dtype);

// What single ops of a GPU may take for themselves, which nobody counts: accumulators, the
// workspace of a library, an unfolded strip of an image. A host's take none. An H200 measured 0.2
// GB in addition to a step's count, at 768 px as at 2048 (docs/deployment-map.md).
inline constexpr uint64_t kOpsBytes = uint64_t{256} << 20;

// --- formats that others run, for comparisons: int8, bf16, fp8, nf4, fake (INT8) ---

// The weights of a network with its large linears in that format, all else in bf16.
uint64_t weight_bytes_in(Network& network, std::string_view format);
// A weight in bf16 while it is multiplied, of formats that dequantize it; else 0.
uint64_t dequantized_bytes_in(Network& network, std::string_view format);

}  // namespace octet::models
