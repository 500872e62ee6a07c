// What a GPU's context takes of its memory where nobody says, and its kernels once they are loaded,
// when they first run: of an H200.
#pragma once

#include <cstdint>

namespace octet {

inline constexpr uint64_t kUsualContextBytes = uint64_t{560} << 20;
inline constexpr uint64_t kKernelBytes = uint64_t{96} << 20;

}  // namespace octet
