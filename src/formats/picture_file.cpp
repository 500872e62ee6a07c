#include "formats/picture_file.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/invalid_request.h"
#include "formats/jpeg.h"
#include "formats/png.h"
#include "formats/text.h"
#include "formats/webp.h"

namespace octet {
namespace {

std::string ending_of(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

bool is_one_of(std::string_view ending, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), ending) != list.end();
}

}  // namespace

PictureFormat format_of(const std::string& path) {
  const std::string ending = ending_of(path);
  const bool is_other = is_one_of(
      ending, {".gif", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".jxl", ".jp2", ".ppm", ".svg"});
  check_value(!is_other, "out",
              "{}: pictures are written as PNG, JPEG or WebP, expected .png, "
              ".jpg, .jpeg or .webp",
              in_quotes(path));
  if (is_one_of(ending, {".jpg", ".jpeg"})) return PictureFormat::jpeg;
  return ending == ".webp" ? PictureFormat::webp : PictureFormat::png;
}

bool has_picture_ending(const std::string& path) {
  return is_one_of(ending_of(path), {".png", ".jpg", ".jpeg", ".webp"});
}

void require_format(PictureFormat format) {
  const uint8_t black[3] = {};
  encode_picture_file(format, {black, 1, 1}, {});
}

std::vector<uint8_t> encode_picture_file(PictureFormat format, const ImageView& image,
                                         const std::vector<ImageText>& texts, int quality) {
  check_value(quality >= 1 && quality <= kMostQuality, "quality",
              "`quality` is {}, expected 1 to {}", quality, kMostQuality);
  switch (format) {
    case PictureFormat::png: return encode_png(image, texts);
    case PictureFormat::jpeg: return encode_jpeg(image, texts, quality);
    case PictureFormat::webp: return encode_webp(image, texts, quality);
  }
  fail("encode_picture: the format {} is none of its values", static_cast<int>(format));
}

void write_picture_file(const std::string& path, const ImageView& image,
                        const std::vector<ImageText>& texts, int quality) {
  const std::vector<uint8_t> bytes = encode_picture_file(format_of(path), image, texts, quality);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(bytes)));
  file.commit();
}

}  // namespace octet
