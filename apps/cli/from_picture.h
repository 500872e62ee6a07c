// --from: the same picture again, from what its file says of itself.
#pragma once

#include <set>
#include <string>

#include "flags.h"
#include "picture_flags.h"

namespace octet::cli {

struct FormerPicture {
  std::string path;
  std::string checkpoint;        // the fingerprint of its weights
  std::set<std::string> fields;  // of the request, that it filled
  NamedCaption caption;
  std::string left_out;  // what octet demo left out of the text that became the caption
};

// The key of that, for a picture made again is the same file.
inline constexpr const char* kLeftOut = "left_out";

// Reads the picture, and sets whatever the flags of the command did not. LoRAs are only named: a
// file from elsewhere does not choose which files are opened here. Throws Error for a picture
// without Octet's metadata.
FormerPicture take_from(const CommonFlags& flags, const std::string& path,
                        PictureArguments& arguments);

}  // namespace octet::cli
