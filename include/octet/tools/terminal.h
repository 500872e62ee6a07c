// Pictures inside of terminals, as escape sequences of two protocols.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "octet/export.h"
#include "octet/words.h"

namespace octet {

enum class TerminalPictures : uint8_t {
  off,
  kitty,  // the graphics protocol of kitty, Ghostty, WezTerm and Konsole
  sixel,  // of foot, mlterm, contour, mintty and xterm
};
template <>
struct Words<TerminalPictures> {
  static constexpr Word<TerminalPictures> list[] = {{TerminalPictures::off, "off"},
                                                    {TerminalPictures::kitty, "kitty"},
                                                    {TerminalPictures::sixel, "sixel"}};
};

// What the terminal that the environment describes is known to show. Nothing is sent to it and
// nothing read from it. Off within tmux and screen.
OCTET_API TerminalPictures terminal_pictures();

// `rgb` has rows from the top. The cursor does not move with kitty, `rows` lines high; sixel paints
// as many pixels as given and leaves the cursor below them. A second picture of kitty's takes the
// place of the first. Terminals answer neither.
OCTET_API std::string kitty_picture(std::span<const uint8_t> rgb, int width, int height, int rows);
OCTET_API std::string sixel_picture(std::span<const uint8_t> rgb, int width, int height);

// A picture of another size: the mean of what a pixel covers, or the nearest.
OCTET_API std::vector<uint8_t> scaled_rgb(std::span<const uint8_t> rgb, int width, int height,
                                          int new_width, int new_height);

}  // namespace octet
