#include "formats/webp.h"

#include "base/error.h"
#include "formats/xmp.h"

#if OCTET_HAS_WEBP
#include <webp/encode.h>

#include <new>
#include <span>
#include <string_view>

namespace octet {
namespace {

constexpr size_t kRiffBytes = 12;  // "RIFF", a length, "WEBP"
constexpr uint8_t kHasXmp = 0x04;

using WebpBytes = std::vector<uint8_t>;

void append_little(WebpBytes& out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

void append_riff(WebpBytes& out, std::string_view type, std::span<const uint8_t> data) {
  out.insert(out.end(), type.begin(), type.end());
  append_little(out, static_cast<uint32_t>(data.size()), 4);
  out.insert(out.end(), data.begin(), data.end());
  if (data.size() % 2 == 1) out.push_back(0);
}

// A simple file has one chunk of pixels; with another chunk it needs a header that says so.
WebpBytes with_xmp(std::span<const uint8_t> simple, const ImageView& image,
                   const std::string& packet) {
  WebpBytes header = {kHasXmp, 0, 0, 0};
  append_little(header, static_cast<uint32_t>(image.width - 1), 3);
  append_little(header, static_cast<uint32_t>(image.height - 1), 3);
  WebpBytes chunks;
  append_riff(chunks, "VP8X", header);
  chunks.insert(chunks.end(), simple.begin() + kRiffBytes, simple.end());
  append_riff(chunks, "XMP ", {reinterpret_cast<const uint8_t*>(packet.data()), packet.size()});
  WebpBytes file(simple.begin(), simple.begin() + 4);
  append_little(file, static_cast<uint32_t>(chunks.size() + 4), 4);
  file.insert(file.end(), simple.begin() + 8, simple.begin() + kRiffBytes);
  file.insert(file.end(), chunks.begin(), chunks.end());
  return file;
}

struct WebpPicture {
  WebPPicture picture;
  WebPMemoryWriter writer;

  WebpPicture() {
    check(WebPPictureInit(&picture) != 0, "WebP: libwebp is another version than its header");
    WebPMemoryWriterInit(&writer);
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = &writer;
  }
  ~WebpPicture() {
    WebPMemoryWriterClear(&writer);
    WebPPictureFree(&picture);
  }
  WebpPicture(const WebpPicture&) = delete;
  WebpPicture& operator=(const WebpPicture&) = delete;
};

}  // namespace

std::vector<uint8_t> encode_webp(const ImageView& image, const std::vector<ImageText>& texts,
                                 int quality) {
  check_image(image, "WebP", WEBP_MAX_DIMENSION);
  check(image.channels == 3, "WebP: the image has {} channels, expected 3", image.channels);
  const bool is_exact = quality == 100;
  WebPConfig config;
  check(WebPConfigInit(&config) != 0, "WebP: libwebp is another version than its header");
  config.quality = is_exact ? 75.0F : static_cast<float>(quality);  // effort, where nothing is lost
  config.lossless = is_exact ? 1 : 0;
  config.use_sharp_yuv = 1;  // edges of coloured letters
  WebpPicture made;
  WebPPicture& picture = made.picture;
  picture.use_argb = 1;
  picture.width = static_cast<int>(image.width);
  picture.height = static_cast<int>(image.height);
  const bool is_done =
      WebPPictureImportRGB(&picture, image.pixels.data(), 3 * picture.width) != 0 &&
      WebPEncode(&config, &picture) != 0;
  if (picture.error_code == VP8_ENC_ERROR_OUT_OF_MEMORY ||
      picture.error_code == VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY) {
    throw std::bad_alloc();
  }
  check(is_done && made.writer.size > kRiffBytes, "WebP: libwebp failed with its error {}",
        static_cast<int>(picture.error_code));
  const std::span<const uint8_t> simple(made.writer.mem, made.writer.size);
  if (texts.empty()) return {simple.begin(), simple.end()};
  return with_xmp(simple, image, xmp_packet(texts));
}

}  // namespace octet

#else

namespace octet {

std::vector<uint8_t> encode_webp(const ImageView&, const std::vector<ImageText>&, int) {
  fail(
      "this build has no libwebp; write a .png, or build again with libwebp-dev installed and "
      "OCTET_PICTURE_FORMATS on");
}

}  // namespace octet

#endif
