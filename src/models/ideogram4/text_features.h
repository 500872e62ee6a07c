// What Ideogram 4 sees of its text encoder.
#pragma once

#include <cstdint>
#include <iterator>

namespace octet::ideogram4 {

// Layers of the text tower whose output the transformer sees.
inline constexpr int64_t kTappedLayers[] = {0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 35};
inline constexpr int64_t kTaps = std::size(kTappedLayers);
// Layers that run: later ones, if there are any, give nothing.
inline constexpr int64_t kRunLayers = kTappedLayers[kTaps - 1] + 1;

}  // namespace octet::ideogram4
