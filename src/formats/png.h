// Writing PNG images, with text that stays with the image (prompt, seed, settings).
//
//   write_png("out.png", {pixels, 1024, 1024, 3}, {{"Software", "Octet"}, {"caption", json}});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/image.h"

namespace octet {

constexpr int kFastPngLevel = 1;
constexpr int kSmallPngLevel = 9;

// A key has 1 to 79 printable Latin-1 characters, and no space at an end or two in a row. Latin-1
// text goes into tEXt (zTXt when long), all other into iTXt. Throws Error when the image or a text
// is not representable.
std::vector<uint8_t> encode_png(const ImageView& image, const std::vector<ImageText>& texts = {},
                                int level = kFastPngLevel);

// The same into a file, which appears whole or not at all.
void write_png(const std::string& path, const ImageView& image,
               const std::vector<ImageText>& texts = {});

}  // namespace octet
