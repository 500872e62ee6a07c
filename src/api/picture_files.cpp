#include "octet/picture_files.h"

#include <cstring>

#include "base/error.h"
#include "formats/boundary.h"
#include "formats/png.h"
#include "formats/safetensors.h"
#include "formats/text.h"
#include "models/family.h"

namespace octet {

PictureSize parse_size(const std::string& text) try {
  return models::parse_image_size(text);
} catch (...) {
  rethrow_as_error();
}

std::vector<float> read_noise(const std::string& path) try {
  const SafetensorsFile file(path);
  check(file.tensors().size() == 1, "{}: holds {} tensors, expected one: the noise", path,
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

void write_picture(const std::string& path, const Picture& picture) try {
  std::vector<PngText> texts;
  for (const auto& [key, text] : picture.metadata) texts.push_back({key, text});
  write_png(path, {picture.rgb, picture.width, picture.height, 3}, texts);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
