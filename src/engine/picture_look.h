// Detects failed pictures: nearly one colour, or the flat card with a line of text that a model
// paints instead of what was requested.
#pragma once

#include "engine/pixels.h"
#include "octet/picture.h"

namespace octet::engine {

// Pixels whose channels are all this close to the most common colour belong to the background.
inline constexpr int kSameColour = 16;
// A picture counts as constant from this share of background, or below this deviation.
inline constexpr double kConstantShare = 0.995, kConstantDeviation = 2;

// By all threads of a pool, if there is one.
PictureLook look_of(const PixelView& picture, ThreadPool* pool = nullptr);

}  // namespace octet::engine
