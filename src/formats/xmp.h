// Text of pictures in formats that have no place for keys and texts as PNG has: an XMP packet, with
// one JSON object in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/image.h"

namespace octet {

// Throws Error for text that is not UTF-8.
std::string xmp_packet(const std::vector<ImageText>& texts);

// Those that xmp_packet() put there; none where a packet is another program's.
std::vector<ImageText> texts_in_xmp(std::string_view packet);

}  // namespace octet
