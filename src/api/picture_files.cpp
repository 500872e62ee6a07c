#include "octet/picture_files.h"

#include <cstring>

#include "base/invalid_request.h"
#include "base/mapped_file.h"
#include "formats/boundary.h"
#include "formats/picture_file.h"
#include "formats/png.h"
#include "formats/safetensors.h"
#include "formats/text.h"
#include "models/family.h"

namespace octet {
namespace {

constexpr int kLargestScale = 64;

std::vector<ImageText> texts_of(const Picture& picture) {
  std::vector<ImageText> texts;
  for (const auto& [key, text] : picture.metadata) texts.push_back({key, text});
  return texts;
}

ImageView image_of(const Picture& picture) { return {picture.rgb, picture.width, picture.height}; }

}  // namespace

PictureSize parse_size(const std::string& text) try {
  return models::parse_image_size(text);
} catch (...) {
  rethrow_as_error();
}

std::vector<float> read_noise(const std::string& path) try {
  const SafetensorsFile file(path);
  check(file.tensors().size() == 1, "{}: contains {} tensors, expected one: the noise", path,
        file.tensors().size());
  const TensorInfo& info = file.tensors().front();
  FileShape shape = info.shape;
  if (shape.size() == 3 && shape.front() == 1) shape.erase(shape.begin());
  check(info.dtype == DType::f32 && shape.size() == 2,
        "{}: tensor {} is {} {}, expected F32 [tokens, channels]", path, in_quotes(info.name),
        name_of(info.dtype), to_string(info.shape));
  const auto bytes = file.bytes(info.name);
  std::vector<float> noise(bytes.size() / sizeof(float));
  if (!noise.empty()) std::memcpy(noise.data(), bytes.data(), bytes.size());
  file.check_intact();
  return noise;
} catch (...) {
  rethrow_as_error();
}

std::vector<PresetInfo> list_presets(const std::string& family) try {
  std::vector<PresetInfo> list;
  for (const models::Preset& preset : models::family_named(family).presets) {
    list.push_back({preset.name, preset.official_name, preset.steps});
  }
  return list;
} catch (...) {
  rethrow_as_error();
}

std::vector<uint8_t> encode_png(const Picture& picture, int level) try {
  return encode_png(image_of(picture), texts_of(picture), level);
} catch (...) {
  rethrow_as_error();
}

std::vector<uint8_t> encode_png(const Preview& preview, int scale) try {
  check_value(scale >= 1 && scale <= kLargestScale, "scale", "`scale` is {}, expected 1 to {}",
              scale, kLargestScale);
  const ImageView small{preview.rgb, preview.width, preview.height};
  check_image(small);
  const int64_t width = small.width * scale, height = small.height * scale;
  std::vector<uint8_t> rgb;
  rgb.reserve(preview.rgb.size() * static_cast<size_t>(scale * scale));
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const int64_t pixel = y / scale * small.width + x / scale;
      const auto from = preview.rgb.begin() + 3 * pixel;
      rgb.insert(rgb.end(), from, from + 3);
    }
  }
  return encode_png({rgb, width, height});
} catch (...) {
  rethrow_as_error();
}

void write_picture(const std::string& path, const Picture& picture, int quality) try {
  write_picture_file(path, image_of(picture), texts_of(picture), quality);
} catch (...) {
  rethrow_as_error();
}

std::vector<uint8_t> encode_picture(const Picture& picture, PictureFormat format, int quality) try {
  return encode_picture_file(format, image_of(picture), texts_of(picture), quality);
} catch (...) {
  rethrow_as_error();
}

bool can_encode(PictureFormat format) try {
  require_format(format);
  return true;
} catch (const Error&) {
  return false;
} catch (...) {
  rethrow_as_error();
}

void check_picture_name(const std::string& path) try {
  require_format(format_of(path));
} catch (...) {
  rethrow_as_error();
}

bool has_picture_name(const std::string& path) try {
  return has_picture_ending(path);
} catch (...) {
  rethrow_as_error();
}

bool is_lossy_name(const std::string& path) try {
  return format_of(path) != PictureFormat::png;
} catch (...) {
  rethrow_as_error();
}

PictureInfo read_picture_info(const std::string& path) try {
  const PictureTexts found =
      MappedFile(path).read([&](auto bytes) { return read_picture_texts(bytes, path); });
  PictureInfo info;
  info.size = {static_cast<int>(found.width), static_cast<int>(found.height)};
  for (const ImageText& each : found.texts) info.metadata.emplace_back(each.key, each.text);
  return info;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
