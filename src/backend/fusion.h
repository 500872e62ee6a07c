// What a GEMM does with its scaled sums besides rounding them; see gemm.h for the arithmetic. Apart
// from it because device code includes this too.
#pragma once

#include <cstdint>
#include <string_view>

namespace octet {

enum class Fusion : uint8_t {
  none,
  bias,
  swiglu,  // of a weight packed as gate and up rows, see Backend::pack; out is [m, n / 2]
};

std::string_view name_of(Fusion fusion);

}  // namespace octet
