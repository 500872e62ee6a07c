// What a model makes when nobody says otherwise: its presets, and the size of its pictures. They
// are those of its family, unless the model's folder holds a file with its own:
//
//   octet_presets.json
//   {"presets": [{"name": "default", "steps": 20, "guidance": 3, "polish_guidance": 1.5,
//                 "polish_steps": 2, "mu": 0.5, "std": 1.2}],
//    "size": [256, 256]}
//
// Name, steps and guidance are every family's, the other keys of a preset its own.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/family.h"
#include "models/trained_for.h"

namespace octet::models {

inline constexpr std::string_view kPresetsFile = "octet_presets.json";

struct PictureDefaults {
  std::vector<Preset> presets;  // the first where nobody names one; there is at least one
  PictureSize size;
  std::string path;  // of the file that says so; empty: they are the family's
  std::optional<TrainedFor> trained_for = {};
};

// Those of the first of these places that is a folder with such a file, else the family's; and what
// the first that says so was trained for. Throws
// Error for a file that is wrong in anything: a key that is passed over would be a picture that
// nobody asked for.
PictureDefaults defaults_of(const Family& family, std::initializer_list<std::string> models);

// A guidance of a preset's file.
float guidance_in(const ConfigFields& fields, const char* key);

// A request's own size, or the model's.
PictureSize size_or_default(PictureSize asked, const PictureDefaults& defaults);

}  // namespace octet::models
