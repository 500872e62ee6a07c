#include "terminal_preview.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace octet::cli {
namespace {

constexpr int kMostRows = 16;
constexpr int kUsualCellWidth = 10, kUsualCellHeight = 20;

// Pixels of a character's cell, how many stand in a line, and the lines that a picture may take.
struct CellSize {
  int width = kUsualCellWidth, height = kUsualCellHeight, columns = 80, rows = kMostRows;
};

CellSize cells_of_terminal() {
  CellSize cells;
  winsize size = {};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) return cells;
  if (size.ws_col > 0) cells.columns = size.ws_col;
  // One line for the progress, and one that scrolling may add.
  if (size.ws_row > 0) cells.rows = std::clamp(size.ws_row - 2, 1, kMostRows);
  if (size.ws_xpixel == 0 || size.ws_ypixel == 0 || size.ws_col == 0 || size.ws_row == 0) {
    return cells;
  }
  cells.width = std::clamp(size.ws_xpixel / size.ws_col, 1, 100);
  cells.height = std::clamp(size.ws_ypixel / size.ws_row, 1, 100);
  return cells;
}

}  // namespace

void add_show(CLI::App& command, std::string& show) {
  add_choice(
      command, "--show", show, {"auto", "kitty", "sixel", "off"},
      "Rough pictures in the terminal after each step; auto: where it is known to show them");
}

TerminalPreview::TerminalPreview(const CommonFlags& flags, const std::string& show) {
  if (flags.quiet || ::isatty(STDERR_FILENO) != 1) return;
  pictures_ = show == "auto" ? terminal_pictures()
                             : from_word<TerminalPictures>(show).value_or(TerminalPictures::off);
}

void TerminalPreview::show(std::span<const uint8_t> rgb, int width, int height) {
  if (!is_on() || width < 1 || height < 1) return;
  const CellSize cells = cells_of_terminal();
  std::string out;
  if (!has_place_) {
    rows_ = cells.rows;
    out = "\r\x1b[K" + std::string(rows_, '\n');  // room above the progress' line
    has_place_ = true;
  }
  const int most_rows = std::min(rows_, cells.rows);  // somebody may make the window smaller
  int shown_height = most_rows * cells.height;
  int shown_width = std::max(1, width * shown_height / height);
  const int widest = std::min(2048, cells.columns * cells.width);
  if (shown_width > widest) {
    shown_height = std::max(1, shown_height * widest / shown_width);
    shown_width = widest;
  }
  const auto scaled = scaled_rgb(rgb, width, height, shown_width, shown_height);
  const int rows = std::clamp((shown_height + cells.height - 1) / cells.height, 1, most_rows);
  const std::string picture = pictures_ == TerminalPictures::kitty
                                  ? kitty_picture(scaled, shown_width, shown_height, rows)
                                  : sixel_picture(scaled, shown_width, shown_height);
  // The cursor is kept, moved up to paint, and restored.
  out += fmt::format(
      "\x1b"
      "7\x1b[{}A\r{}\x1b"
      "8",
      rows_, picture);
  std::fputs(out.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace octet::cli
