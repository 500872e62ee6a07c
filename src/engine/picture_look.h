// Pictures that are none: nearly one colour, or the flat card with a line of text that a model
// paints in place of what it was asked for.
#pragma once

#include "engine/pixels.h"
#include "octet/picture.h"

namespace octet::engine {

// Pixels whose channels are all this near to the commonest colour belong to the background.
inline constexpr int kSameColour = 16;
// From this share of background on a picture is taken for constant, or below this deviation.
inline constexpr double kConstantShare = 0.995, kConstantDeviation = 2;

PictureLook look_of(const PixelView& picture);

}  // namespace octet::engine
