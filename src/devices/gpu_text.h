// What `octet devices` says of a GPU; knows no CUDA, so that it is tested without.
#pragma once

#include <string>

namespace octet {

// By what the GPU multiplies INT8, from its compute capability and the tiles that this build has
// of each family.
std::string gpu_kernel_text(int major, int minor, size_t wgmma_tiles, size_t mma_tiles);

}  // namespace octet
