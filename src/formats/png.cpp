#include "formats/png.h"

#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <optional>

#include "base/atomic_file.h"
#include "base/checked.h"
#include "base/error.h"
#include "formats/text.h"

namespace octet {
namespace {

constexpr size_t kCompressedTextBytes = 1024;  // from here on, text is worth compressing
constexpr int64_t kLargestSide = 1'000'000;    // libpng's own limit

// What libpng's callbacks see. The message is a fixed array, because nothing may throw in them.
struct Encoder {
  std::vector<std::byte> out;
  char message[256] = {};
};

void on_error(png_structp png, png_const_charp message) {
  auto* encoder = static_cast<Encoder*>(png_get_error_ptr(png));
  std::snprintf(encoder->message, sizeof(encoder->message), "%s", message);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_write(png_structp png, png_bytep data, size_t size) {
  bool stored = true;
  try {
    auto& out = static_cast<Encoder*>(png_get_io_ptr(png))->out;
    const auto* bytes = reinterpret_cast<const std::byte*>(data);
    out.insert(out.end(), bytes, bytes + size);
  } catch (...) {
    stored = false;  // png_error jumps, which it must not do out of a handler
  }
  if (!stored) png_error(png, "out of memory");
}

void on_flush(png_structp) {}

struct PngStructs {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~PngStructs() { png_destroy_write_struct(&png, &info); }
};

// The only function that libpng may jump back into: it and all that libpng calls in between have
// nothing to destroy. Returns whether the image was encoded; Encoder::message says why not.
bool run_libpng(png_structp png, png_infop info, const ImageView& image,
                std::span<png_text> texts) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  const int color_type = image.channels == 1   ? PNG_COLOR_TYPE_GRAY
                         : image.channels == 3 ? PNG_COLOR_TYPE_RGB
                                               : PNG_COLOR_TYPE_RGB_ALPHA;
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height), 8, color_type, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_sRGB(png, info, PNG_sRGB_INTENT_PERCEPTUAL);
  if (!texts.empty()) png_set_text(png, info, texts.data(), static_cast<int>(texts.size()));
  png_write_info(png, info);
  const int64_t row_bytes = image.width * image.channels;
  for (int64_t y = 0; y < image.height; ++y) {
    png_write_row(png, image.pixels.data() + y * row_bytes);
  }
  png_write_end(png, info);
  return true;
}

// Latin-1 without control characters, except for the line feed; nothing when a character is not.
std::optional<std::string> to_latin1(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    const bool printable = point.value == '\n' || (point.value >= 0x20 && point.value < 0x7f) ||
                           (point.value >= 0xa0 && point.value <= 0xff);
    if (point.length == 0 || !printable) return std::nullopt;
    result += static_cast<char>(point.value);
    text.remove_prefix(point.length);
  }
  return result;
}

std::string checked_key(const std::string& key) {
  const auto latin1 = to_latin1(key);
  const bool usable = latin1 && !latin1->empty() && latin1->size() <= 79 &&
                      latin1->find_first_of("\n\xa0") == std::string::npos &&
                      latin1->front() != ' ' && latin1->back() != ' ' &&
                      latin1->find("  ") == std::string::npos;
  if (!usable) {
    fail(
        "PNG: the text key {} is not allowed; expected 1 to 79 printable Latin-1 characters "
        "without leading, trailing or double spaces",
        in_quotes(key));
  }
  return *latin1;
}

void check_image(const ImageView& image) {
  check(image.channels == 1 || image.channels == 3 || image.channels == 4,
        "PNG: the image has {} channels, expected 1, 3 or 4", image.channels);
  check(image.width >= 1 && image.width <= kLargestSide && image.height >= 1 &&
            image.height <= kLargestSide,
        "PNG: the image is {} x {} pixels, expected sides from 1 to {}", image.width, image.height,
        kLargestSide);
  const auto expected = static_cast<uint64_t>(image.width * image.height * image.channels);
  check(image.pixels.size() == expected,
        "PNG: {} bytes of pixels were given for {} x {} x {}, expected {}", image.pixels.size(),
        image.width, image.height, image.channels, expected);
}

// The strings that libpng's text records point at, and which kind of chunk each record becomes.
struct TextStore {
  std::string key;
  std::string text;
  int compression;
};

TextStore stored_text(const PngText& text) {
  TextStore stored;
  stored.key = checked_key(text.key);
  if (text.text.find('\0') != std::string::npos || !is_utf8(text.text)) {
    fail("PNG: the text of {} has a NUL byte or is not UTF-8", in_quotes(text.key));
  }
  const bool is_long = text.text.size() >= kCompressedTextBytes;
  if (auto latin1 = to_latin1(text.text)) {
    stored.text = std::move(*latin1);
    stored.compression = is_long ? PNG_TEXT_COMPRESSION_zTXt : PNG_TEXT_COMPRESSION_NONE;
  } else {
    stored.text = text.text;
    stored.compression = is_long ? PNG_ITXT_COMPRESSION_zTXt : PNG_ITXT_COMPRESSION_NONE;
  }
  return stored;
}

}  // namespace

std::vector<std::byte> encode_png(const ImageView& image, const std::vector<PngText>& texts) {
  check_image(image);
  std::vector<TextStore> stored;
  for (const PngText& text : texts) stored.push_back(stored_text(text));
  std::vector<png_text> records(stored.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    records[i].compression = stored[i].compression;
    records[i].key = stored[i].key.data();
    records[i].text = stored[i].text.data();
    records[i].text_length = stored[i].text.size();
  }

  Encoder encoder;
  PngStructs structs;
  structs.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &encoder, on_error, on_warning);
  if (structs.png != nullptr) structs.info = png_create_info_struct(structs.png);
  check(structs.info != nullptr, "PNG: libpng cannot be set up: {}",
        encoder.message[0] != '\0' ? encoder.message : "out of memory");
  png_set_write_fn(structs.png, &encoder, on_write, on_flush);
  check(run_libpng(structs.png, structs.info, image, records), "PNG: encoding failed: {}",
        encoder.message);
  return std::move(encoder.out);
}

void write_png(const std::string& path, const ImageView& image, const std::vector<PngText>& texts) {
  AtomicFile file(path);
  file.write(encode_png(image, texts));
  file.commit();
}

}  // namespace octet
