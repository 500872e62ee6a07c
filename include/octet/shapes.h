// Sizes of linears, and the notation for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/export.h"

namespace octet {

struct GemmShape {
  int64_t m = 0;         // tokens
  int64_t n = 0;         // output channels
  int64_t k = 0;         // input channels
  bool gate_up = false;  // two linears of a model side by side whose outputs a SwiGLU joins
};

// Items separated by ';', each either "m,n,k" or "<family>@<pixels>[,<pixels>...]", the large
// linears of one forward pass without text at that image size: "ideogram4@1024". Throws Error
// naming the item that is wrong.
OCTET_API std::vector<GemmShape> parse_shapes(const std::string& text);

}  // namespace octet
