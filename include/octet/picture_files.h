// Reads inputs of a request, and writes pictures.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "octet/export.h"
#include "octet/picture.h"
#include "octet/words.h"

namespace octet {

enum class PictureFormat : uint8_t { png, jpeg, webp };
template <>
struct Words<PictureFormat> {
  static constexpr Word<PictureFormat> list[] = {
      {PictureFormat::png, "png"}, {PictureFormat::jpeg, "jpeg"}, {PictureFormat::webp, "webp"}};
};

// "<width>x<height>", or the side of a square; throws InvalidRequest for anything else.
OCTET_API PictureSize parse_size(const std::string& text);

// A safetensors file with one tensor, F32 [tokens, channels] (or [1, tokens, channels], as
// diffusers takes it).
OCTET_API std::vector<float> read_noise(const std::string& path);

// Those of a family's published models; EngineInfo::presets are those of the loaded model.
OCTET_API std::vector<PresetInfo> list_presets(const std::string& family = "ideogram4");

// A PNG file in memory, with the picture's metadata. Level 1 is the fastest, and for photographs as
// small as any; up to 9, drawings and letters take fewer bytes and more time. Needs no engine: call
// it from any thread, for instance while the next picture is rendered.
OCTET_API std::vector<uint8_t> encode_png(const Picture& picture, int level = 1);

// Each pixel of the preview becomes a square of `scale` x `scale`.
OCTET_API std::vector<uint8_t> encode_png(const Preview& preview, int scale = 1);

// By the name's ending: .jpg and .jpeg as JPEG, .webp as WebP, all others as PNG; endings of other
// formats, such as .gif, are an InvalidRequest. The file appears whole or not at all. The metadata
// is stored as texts in PNG, and as XMP in the other two. `quality`, 1 to 100, is theirs; WebP
// loses nothing at 100. Throws Error, naming the library, if the build lacks libjpeg or libwebp.
OCTET_API void write_picture(const std::string& path, const Picture& picture, int quality = 95);

// The same bytes in memory, for instance for a network. Needs no engine, as encode_png().
OCTET_API std::vector<uint8_t> encode_picture(const Picture& picture, PictureFormat format,
                                              int quality = 95);
// Whether this build has the library that the format needs.
OCTET_API bool can_encode(PictureFormat format);

// Throws what write_picture() would because of the name alone.
OCTET_API void check_picture_name(const std::string& path);
OCTET_API bool has_picture_name(const std::string& path);  // ends with .png, .jpg, .jpeg or .webp
OCTET_API bool is_lossy_name(const std::string& path);     // `quality` matters

// What a PNG, JPEG or WebP file that Octet wrote says of itself. The metadata is empty if there is
// none; it comes with the file and may be anybody's.
struct PictureInfo {
  PictureSize size = {};
  std::vector<std::pair<std::string, std::string>> metadata = {};
};
OCTET_API PictureInfo read_picture_info(const std::string& path);

}  // namespace octet
