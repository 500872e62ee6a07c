// Reads inputs of a request, and writes pictures.
#pragma once

#include <string>
#include <vector>

#include "octet/export.h"
#include "octet/picture.h"

namespace octet {

// "<width>x<height>", or the side of a square; throws InvalidRequest for anything else.
OCTET_API PictureSize parse_size(const std::string& text);

// A safetensors file with one tensor, F32 [tokens, channels] (or [1, tokens, channels], as
// diffusers takes it).
OCTET_API std::vector<float> read_noise(const std::string& path);

// Those of a family's published models; EngineInfo::presets are those of the loaded model.
OCTET_API std::vector<PresetInfo> list_presets(const std::string& family = "ideogram4");

// As PNG. The file appears whole or not at all.
OCTET_API void write_picture(const std::string& path, const Picture& picture);

}  // namespace octet
