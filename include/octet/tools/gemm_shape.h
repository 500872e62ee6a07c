// The size of a linear: plain data.
#pragma once

#include <cstdint>

namespace octet {

struct GemmShape {
  int64_t m = 0;         // tokens
  int64_t n = 0;         // output channels
  int64_t k = 0;         // input channels
  bool gate_up = false;  // two linears side by side whose outputs are combined by a SwiGLU
};

}  // namespace octet
