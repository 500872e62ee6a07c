#include "formats/image.h"

#include "base/error.h"

namespace octet {

void check_image(const ImageView& image, const char* format, int64_t largest_side) {
  check(image.channels == 1 || image.channels == 3 || image.channels == 4,
        "{}: the image has {} channels, expected 1, 3 or 4", format, image.channels);
  check(image.width >= 1 && image.width <= largest_side && image.height >= 1 &&
            image.height <= largest_side,
        "{}: the image is {} x {} pixels, expected sides from 1 to {}", format, image.width,
        image.height, largest_side);
  const auto expected = static_cast<uint64_t>(image.width * image.height * image.channels);
  check(image.pixels.size() == expected,
        "{}: {} bytes of pixels were given for {} x {} x {}, expected {}", format,
        image.pixels.size(), image.width, image.height, image.channels, expected);
}

}  // namespace octet
