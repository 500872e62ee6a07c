// Rough pictures in the terminal while a picture is made, above the line of progress.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "flags.h"
#include "octet/tools/terminal.h"

namespace octet::cli {

// --show auto|kitty|sixel|off
void add_show(CLI::App& command, std::string& show);

class TerminalPreview {
 public:
  // Shows nothing where standard error is no terminal, and for --quiet. `show` is the flag's word.
  TerminalPreview(const CommonFlags& flags, const std::string& show);

  bool is_on() const { return pictures_ != TerminalPictures::off; }

  // In the place of the one before.
  void show(std::span<const uint8_t> rgb, int width, int height);

  // The next one gets a place of its own.
  void end() { has_place_ = false; }

 private:
  TerminalPictures pictures_ = TerminalPictures::off;
  bool has_place_ = false;
  int rows_ = 0;  // of that place
};

}  // namespace octet::cli
