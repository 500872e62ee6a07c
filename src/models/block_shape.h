// The sizes of a family's networks as data, for those who measure and predict: of the published
// model.
#pragma once

#include <cstdint>
#include <vector>

#include "models/family.h"
#include "nn/weights.h"
#include "octet/tools/gemm_shape.h"

namespace octet::models {

struct BlockShape {
  int64_t layers = 0;                   // blocks of the first network
  std::vector<nn::LinearSpec> linears;  // of one of them: the large ones
  int64_t heads = 0, head_size = 0;     // of its attention
  std::vector<bool> sees_text;          // of each network
};
BlockShape block_shape(const Family& family);

int64_t image_tokens(const Family& family, int64_t pixels);  // of a square picture

GemmShape shape_of(const nn::LinearSpec& spec, int64_t rows);
// The smallest of a block at the usual size, without text: where one linear represents all.
GemmShape usual_linear(const Family& family);

}  // namespace octet::models
