// Attention among the rows of one matrix, as transformers of images have it.
#pragma once

#include "nn/linear.h"

namespace octet::nn {

// Heads of q, k and v side by side are made of x by one linear, those of q and k normed and
// rotated.
// -> [rows - first, heads of q]: of the rows from the first on, which look at all.
Matrix self_attention(Context& ctx, const Operand& x, const Linear& qkv, const HeadRotations& heads,
                      int64_t first = 0);

}  // namespace octet::nn
