#include "octet/tools/terminal.h"

#include "base/env.h"
#include "formats/boundary.h"
#include "formats/terminal_picture.h"

namespace octet {

TerminalPictures terminal_pictures() try {
  const env::Terminal terminal = env::terminal();
  const auto is = [&](std::string_view name) {
    return terminal.name.starts_with(name) || terminal.program == name;
  };
  if (terminal.is_shared) return TerminalPictures::off;
  const bool is_kitty = terminal.has_kitty_window || is("xterm-kitty") || is("xterm-ghostty") ||
                        is("ghostty") || is("WezTerm") || is("konsole");
  if (is_kitty) return TerminalPictures::kitty;
  const bool is_sixel = is("foot") || is("mlterm") || is("contour") || is("mintty") || is("yaft") ||
                        terminal.name.find("sixel") != std::string::npos;
  return is_sixel ? TerminalPictures::sixel : TerminalPictures::off;
} catch (...) {
  rethrow_as_error();
}

std::string kitty_picture(std::span<const uint8_t> rgb, int width, int height, int rows) try {
  return kitty_sequence({rgb, width, height}, rows);
} catch (...) {
  rethrow_as_error();
}

std::string sixel_picture(std::span<const uint8_t> rgb, int width, int height) try {
  return sixel_sequence({rgb, width, height});
} catch (...) {
  rethrow_as_error();
}

std::vector<uint8_t> scaled_rgb(std::span<const uint8_t> rgb, int width, int height, int new_width,
                                int new_height) try {
  return scaled({rgb, width, height}, new_width, new_height);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
