// Writing WebP images with libwebp, where the build has it.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/image.h"

namespace octet {

// RGB; texts as XMP. `quality` is libwebp's, 1 to 99, and 100 loses nothing. Throws Error when the
// image or a text is not representable, and in a build without libwebp.
std::vector<uint8_t> encode_webp(const ImageView& image, const std::vector<ImageText>& texts,
                                 int quality);

}  // namespace octet
