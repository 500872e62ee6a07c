// Rotary position embeddings: cosines and sines of positions times frequencies.
//
// Angles are f32 products of f32 frequencies and positions, as the reference forms them: at
// positions of 65536 a wider product would differ by milliradians. Their cosine and sine are exact
// to f32, which takes a real range reduction; so the tables are made by the host, once per run.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "nn/context.h"

namespace octet::nn {

struct Rotary {
  Matrix cos, sin;  // F32 [rows, head_dim / 2]
};

// theta^(-2 i / head_dim), i = 0 .. head_dim / 2 - 1, in f32.
std::vector<float> rotary_frequencies(double theta, int64_t head_dim);

// Positions on three axes; frequency i turns by the position on axes[i].
using Position = std::array<float, 3>;
Rotary make_rotary(Backend& backend, const std::vector<Position>& positions,
                   const std::vector<float>& frequencies, const std::vector<int>& axes);

}  // namespace octet::nn
