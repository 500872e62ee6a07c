// A notation for the shapes of linears.
#pragma once

#include <string>
#include <vector>

#include "octet/export.h"
#include "octet/tools/gemm_shape.h"

namespace octet {

// Items separated by ';', each either "m,n,k" or "<family>@<pixels>[+<text tokens>][,...]", the
// large linears of one forward pass at that image size, without text or with so many tokens of it:
// "ideogram4@1024,1024+512". Throws Error with the item that is wrong.
OCTET_API std::vector<GemmShape> parse_shapes(const std::string& text);

// The large linears of the first known family at these sizes: "ideogram4@768,1024".
OCTET_API std::string model_shapes(const std::string& pixels);

}  // namespace octet
