// The diffusion transformer: velocity of the image's latent, given the time and the text.
//
// Two of them make an image: the conditional one sees text and image tokens in one sequence, the
// unconditional one, with weights of its own, the image tokens alone. Sequences are neither padded
// nor masked.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "models/ideogram4/config.h"
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

struct Dit {
  DitConfig config;
  nn::Linear input;              // [D, C]
  nn::Vector text_norm;          // [T]; with `text` only in the conditional one
  nn::Linear text;               // [D, T]
  nn::Linear time_in, time_out;  // [D, D]
  nn::Linear conditioning;       // [A, D]
  nn::Table roles;               // [2, D]: not image, image
  std::vector<DitBlock> blocks;  // all, or none where they are handed to forward() one by one
  nn::Linear final_modulation;   // [D, A]
  nn::Linear final;              // [C, D]
};

// The one list of its weights. The unconditional one never reads those of the text.
void visit_weights(Dit& dit, bool conditional, nn::WeightVisitor& visit);
// The same in two parts: all but the blocks, and block i into `block`.
void visit_frame(Dit& dit, bool conditional, nn::WeightVisitor& visit);
void visit_block(DitBlock& block, const DitConfig& config, int64_t i, nn::WeightVisitor& visit);

// What does not change from step to step: the text as tokens, and the positions of all tokens.
struct DitPrompt {
  nn::Matrix text;    // [n, D], n may be 0
  nn::Rotary rotary;  // of n + grid_height * grid_width tokens
  int64_t grid_height = 0, grid_width = 0;

  int64_t text_tokens() const { return text.row_count(); }
  int64_t image_tokens() const { return grid_height * grid_width; }
};

// `features` F32 [n, T] in host memory, as the text encoder left them; none for the unconditional.
DitPrompt prepare(nn::Context& ctx, const Dit& dit, const std::vector<float>& features,
                  int64_t grid_height, int64_t grid_width);

// The velocity [image tokens, C] at `time`, 0 for noise to 1 for an image; z has the same shape.
nn::Matrix forward(nn::Context& ctx, const Dit& dit, const DitPrompt& prompt,
                   const ConstTensorView& z, float time);

// Block i, asked for in order; it stays where it is until the next is asked for.
using BlockSource = std::function<const DitBlock&(int64_t i)>;

// The same with blocks from elsewhere.
nn::Matrix forward(nn::Context& ctx, const Dit& dit, const BlockSource& block_at,
                   const DitPrompt& prompt, const ConstTensorView& z, float time);

}  // namespace octet::ideogram4
