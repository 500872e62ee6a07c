// The diffusion transformer: velocity of the image's latent, given the time and the text.
//
// Two of them make an image: the conditional one sees text and image tokens in one sequence, the
// unconditional one, with its own weights, only the image tokens. Sequences are neither padded
// nor masked.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "models/ideogram4/config.h"
#include "models/part.h"
#include "nn/linear.h"
#include "nn/rope.h"

namespace octet::ideogram4 {

// Large linears run in INT8 but for these classes of layers: either they are small next to the
// rest and decide over it (the conditioning of all blocks), or they see raw latents and features.
inline constexpr std::string_view kKeptInFloat[] = {
    "input_proj", "llm_cond_proj",    "t_embedding.mlp_in", "t_embedding.mlp_out",
    "adaln_proj", "adaln_modulation", "final_layer.linear", "final_layer.adaln_modulation",
};

struct DitBlock {
  nn::Vector attention_norm1, attention_norm2, ffn_norm1;  // [D]
  nn::Linear qkv;                                          // [3 D, D]
  nn::Vector norm_q, norm_k;                               // [head_dim]
  nn::Linear attention_out;                                // [D, D]
  nn::Linear gate_up;                                      // [2 F, D]: w1, then w3
  nn::Linear down;                                         // [D, F]: w2
};

// What runs before the blocks.
struct DitEntry {
  nn::Linear input;  // [D, C]
  nn::Table roles;   // [2, D]: not image, image
};

// What of the times prepares all blocks.
struct DitTimes {
  nn::Linear time_in, time_out;  // [D, D]
  nn::Linear conditioning;       // [A, D]
};

// And one of them. The last norm is here since it runs with the block behind, at a time when the
// block's own weights may be gone.
struct DitModulation {
  nn::Linear linear;     // [4 D, A]: scale, gate of attention; scale, gate of FFN
  nn::Vector ffn_norm2;  // [D]
};

struct DitText {
  nn::Vector norm;    // [T]
  nn::Linear linear;  // [D, T]
};

struct Dit {
  DitConfig config;
  DitEntry entry;
  std::vector<DitBlock> blocks;
  nn::Linear exit;  // [C, D]
  DitTimes times;
  std::vector<DitModulation> modulations;
  nn::Linear exit_modulation;  // [D, A]
  DitText text;                // of the conditional one
};

// The one list of its weights. The unconditional one never reads those of the text.
void visit_weights(Dit& dit, bool conditional, nn::WeightVisitor& visit);
// The same in units: what runs before the blocks, each block, what runs after them; then what only
// prepares texts and times, and is needed no more during the steps.
struct DitUnits {
  explicit DitUnits(const DitConfig& config) : layers(config.layers) {}

  int64_t layers;

  int64_t entry() const { return 0; }
  int64_t block(int64_t i) const { return 1 + i; }
  int64_t exit() const { return 1 + layers; }
  int64_t of_pass() const { return 2 + layers; }
  int64_t times() const { return of_pass(); }
  int64_t modulation(int64_t i) const { return of_pass() + 1 + i; }
  int64_t exit_modulation() const { return of_pass() + 1 + layers; }
  int64_t text() const { return of_pass() + 2 + layers; }  // of the conditional one
  int64_t count(bool conditional) const { return text() + (conditional ? 1 : 0); }
};
void visit_unit(Dit& dit, int64_t unit, nn::WeightVisitor& visit);
void release_unit(Dit& dit, int64_t unit);

// What does not change from step to step: the text as tokens, and the positions of all tokens.
struct DitPrompt : models::Conditioning {
  DitPrompt(nn::Matrix text_, nn::Rotary rotary_, const models::Grid& grid)
      : Conditioning(text_.row_count(), grid), text(std::move(text_)), rotary(std::move(rotary_)) {}

  nn::Matrix text;    // [n, D], n may be 0
  nn::Rotary rotary;  // of n + grid.tokens() tokens
};

// Told each unit before it is used.
using NeedUnit = std::function<void(int64_t unit)>;

// The modulations depend only on the time: those of all steps are one product for each block, made
// beforehand.
class DitTimeline : public models::Timeline {
 public:
  DitTimeline(nn::Context& ctx, const Dit& dit, std::span<const float> times,
              const NeedUnit& need = {});

  // Of a block at the step, [1, 4 D], and of what follows the blocks, [D].
  TensorView of_block(int64_t block) const;
  ConstTensorView of_exit() const;
  // The weight of a block's last norm, [D].
  ConstTensorView ffn_norm2(int64_t block) const;

 private:
  void arrive(nn::Context& ctx) override;

  int64_t hidden_;
  nn::Matrix all_;      // [steps, blocks * 4 D + D]: of each block, then of the exit
  nn::Matrix current_;  // the step's row of it
  nn::Matrix norms_;    // F32 [blocks, D]
};

// `features` F32 [n, T] in host memory, as the text encoder left them; none for the unconditional.
DitPrompt prepare(nn::Context& ctx, const Dit& dit, std::span<const float> features,
                  const models::Grid& grid, const NeedUnit& need = {});

// The velocity `out` [image tokens, C] at the timeline's step; z has the same shape.
void forward(nn::Context& ctx, const Dit& dit, const DitPrompt& prompt, DitTimeline& timeline,
             const ConstTensorView& z, const TensorView& out, const NeedUnit& need = {});

}  // namespace octet::ideogram4
