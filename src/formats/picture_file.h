// Picture files by their names' endings: .jpg and .jpeg JPEG, .webp WebP, all others PNG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/image.h"
#include "octet/picture_files.h"

namespace octet {

// Throws InvalidRequest for a name that promises another format, such as .gif.
PictureFormat format_of(const std::string& path);

// Whether the name ends as one of the three formats' does.
bool has_picture_ending(const std::string& path);

// Throws Error, naming the library that is missing, where this build cannot write the format.
void require_format(PictureFormat format);

inline constexpr int kUsualQuality = 95;

// A file of this format. `quality`, 1 to 100, is for JPEG and WebP.
std::vector<uint8_t> encode_picture_file(PictureFormat format, const ImageView& image,
                                         const std::vector<ImageText>& texts,
                                         int quality = kUsualQuality);

// The same, which appears whole or not at all.
void write_picture_file(const std::string& path, const ImageView& image,
                        const std::vector<ImageText>& texts, int quality = kUsualQuality);

struct PictureTexts {
  int64_t width = 0, height = 0;
  std::vector<ImageText> texts;
};

// The size of a PNG, JPEG or WebP file and the texts that write_picture_file() gave it; for PNG
// those of any program. Throws Error, which begins with `what`, for bytes that are none of them or
// damaged.
PictureTexts read_picture_texts(std::span<const std::byte> file, const std::string& what);

}  // namespace octet
