// Escape sequences that paint pictures in terminals; see octet/tools/terminal.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/image.h"

namespace octet {

std::string kitty_sequence(const ImageView& rgb, int rows);
std::string sixel_sequence(const ImageView& rgb);
std::vector<uint8_t> scaled(const ImageView& rgb, int64_t width, int64_t height);

}  // namespace octet
