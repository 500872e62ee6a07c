// Writing JPEG images with libjpeg, where the build has it.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/image.h"

namespace octet {

inline constexpr int kMostQuality = 100;

// Gray or RGB, colours at full resolution; texts as XMP, 65,502 bytes of it at most. `quality` is
// libjpeg's, 1 to 100. Throws Error when the image or a text is not representable, and in a build
// without libjpeg.
std::vector<uint8_t> encode_jpeg(const ImageView& image, const std::vector<ImageText>& texts,
                                 int quality);

}  // namespace octet
