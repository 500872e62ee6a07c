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
  nn::Linear modulation;  // [4 D, A]: scale, gate of attention; scale, gate of FFN
  nn::Vector attention_norm1, attention_norm2, ffn_norm1, ffn_norm2;  // [D]
  nn::Linear qkv;                                                     // [3 D, D]
  nn::Vector norm_q, norm_k;                                          // [head_dim]
  nn::Linear attention_out;                                           // [D, D]
  nn::Linear gate_up;                                                 // [2 F, D]: w1, then w3
  nn::Linear down;                                                    // [D, F]: w2
};

// What runs before the blocks.
struct DitEntry {
  nn::Linear input;              // [D, C]
  nn::Vector text_norm;          // [T]; with `text` only in the conditional one
  nn::Linear text;               // [D, T]
  nn::Linear time_in, time_out;  // [D, D]
  nn::Linear conditioning;       // [A, D]
  nn::Table roles;               // [2, D]: not image, image
};

// And after them.
struct DitExit {
  nn::Linear modulation;  // [D, A]
  nn::Linear linear;      // [C, D]
};

struct Dit {
  DitConfig config;
  DitEntry entry;
  std::vector<DitBlock> blocks;
  DitExit exit;
};

// The one list of its weights. The unconditional one never reads those of the text.
void visit_weights(Dit& dit, bool conditional, nn::WeightVisitor& visit);
// The same in units: what runs before the blocks, each block, what runs after them.
int64_t unit_count(const DitConfig& config);
void visit_unit(Dit& dit, bool conditional, int64_t unit, nn::WeightVisitor& visit);

// What does not change from step to step: the text as tokens, and the positions of all tokens.
struct DitPrompt : models::Conditioning {
  DitPrompt(nn::Matrix text_, nn::Rotary rotary_, const models::Grid& grid)
      : Conditioning(text_.row_count(), grid), text(std::move(text_)), rotary(std::move(rotary_)) {}

  nn::Matrix text;    // [n, D], n may be 0
  nn::Rotary rotary;  // of n + grid.tokens() tokens
};

// The modulations depend only on the time: those of all steps are one product for each block. It
// is made when the block's weights are there for the first time, so that streamed ones do not come
// once more for it.
class DitTimeline : public models::Timeline {
 public:
  DitTimeline(nn::Context& ctx, const Dit& dit, std::span<const float> times);

  bool is_complete() const override { return made_ == all_.column_count(); }
  // Of a block at the step, [1, 4 D], and of what follows the blocks, [D]; the weights of `dit` are
  // needed the first time.
  TensorView of_block(nn::Context& ctx, const Dit& dit, int64_t block);
  ConstTensorView of_exit(nn::Context& ctx, const Dit& dit);
  // A copy of the weight of a block's ffn_norm2, [D]: that norm runs with the block behind, when
  // the block's own weights may be gone.
  ConstTensorView ffn_norm2(int64_t block) const;

 private:
  void arrive(nn::Context& ctx) override;
  void make_columns(nn::Context& ctx, const ConstTensorView& c, const nn::Linear& modulation);
  // From the first up to the ones before `end`, of the step's row.
  void copy_current(nn::Context& ctx, int64_t first, int64_t end);

  int64_t hidden_;
  nn::Matrix c_;        // [steps, A]
  nn::Matrix all_;      // [steps, blocks * 4 D + D]: of each block, then of the exit
  nn::Matrix current_;  // the step's row of it
  nn::Matrix norms_;    // F32 [blocks, D]
  int64_t made_ = 0;    // columns: units run in ascending order
};

// Told each unit before it is used.
using NeedUnit = std::function<void(int64_t unit)>;

// `features` F32 [n, T] in host memory, as the text encoder left them; none for the unconditional.
DitPrompt prepare(nn::Context& ctx, const Dit& dit, std::span<const float> features,
                  const models::Grid& grid);

// The velocity `out` [image tokens, C] at the timeline's step; z has the same shape.
void forward(nn::Context& ctx, const Dit& dit, const DitPrompt& prompt, DitTimeline& timeline,
             const ConstTensorView& z, const TensorView& out, const NeedUnit& need = {});

}  // namespace octet::ideogram4
