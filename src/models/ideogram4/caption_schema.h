// The keys of a caption in canonical order, and the rules that are numbers.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace octet::ideogram4::schema {

using Keys = std::span<const std::string_view>;

inline constexpr std::string_view kRoot[] = {"high_level_description", "style_description",
                                             "compositional_deconstruction"};
inline constexpr std::string_view kStyle[] = {"aesthetics", "lighting",  "photo",
                                              "medium",     "art_style", "color_palette"};
inline constexpr std::string_view kPhotoStyle[] = {"aesthetics", "lighting", "photo", "medium",
                                                   "color_palette"};
inline constexpr std::string_view kArtStyle[] = {"aesthetics", "lighting", "medium", "art_style",
                                                 "color_palette"};
inline constexpr std::string_view kStyleKinds[] = {"photo", "art_style"};
inline constexpr std::string_view kAnyStyle[] = {"aesthetics", "lighting", "medium",
                                                 "color_palette"};
inline constexpr std::string_view kDeconstruction[] = {"background", "elements"};
inline constexpr std::string_view kElement[] = {"type", "bbox", "text", "desc", "color_palette"};
inline constexpr std::string_view kObject[] = {"type", "bbox", "desc", "color_palette"};
inline constexpr std::string_view kText[] = {"type", "bbox", "text", "desc", "color_palette"};

inline constexpr std::string_view kTypes[] = {"obj", "text"};
// An element of a type that there is not.
inline constexpr std::string_view kAnyElement[] = {"type", "desc"};

inline constexpr std::string_view kOptional[] = {"bbox", "color_palette"};

// What prompt expanders put at the root, for the caller that sets the image's size.
inline constexpr std::string_view kExpanderKey = "aspect_ratio";

inline constexpr size_t kMostStyleColors = 16;
inline constexpr size_t kMostElementColors = 5;
inline constexpr int kBoxSide = 1000;  // boxes are in thousandths of the height and of the width

// "#RRGGBB"; the official verifier wants upper-case digits.
constexpr bool is_color(std::string_view text, bool lower_case_too) {
  if (text.size() != 7 || text[0] != '#') return false;
  for (const char c : text.substr(1)) {
    const bool lower = c >= 'a' && c <= 'f';
    if (!(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'F') && !(lower && lower_case_too)) {
      return false;
    }
  }
  return true;
}

}  // namespace octet::ideogram4::schema
