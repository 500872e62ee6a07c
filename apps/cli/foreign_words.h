// Words of other programs, and what takes their place here.
#pragma once

#include <span>
#include <string_view>

namespace octet::cli {

struct ForeignWords {
  const char* words;  // with spaces between them
  // The hint is given where the command has this flag, or this command, or has this name.
  std::string_view ours;
  std::string_view remedy;
};

std::span<const ForeignWords> foreign_words();

}  // namespace octet::cli
