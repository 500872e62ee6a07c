// Lists of captions: .jsonl and .csv files, each row with its own seed, size and name if it likes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/picture.h"
#include "octet/sentence.h"

namespace octet::cli {

struct CaptionRow {
  std::string name;        // "line-3" unless the row has one
  std::string where;       // "list.csv, line 3"
  std::string text;        // JSON or plain text
  bool is_prompt = false;  // plain text, whatever it looks like
  std::optional<uint64_t> seed;
  std::optional<PictureSize> size;
  std::string error;  // why there is no text; begins with `where`
};

bool is_row_file(const std::string& path);  // by its ending: .jsonl or .csv

// A line of .jsonl is a caption, or an object with `caption` (an object or a text) or `prompt`, and
// perhaps `seed`, `size` (or `width` and `height`) and `name`. A .csv has these as its columns.
// Throws Error for a file that cannot be read, is not a regular one, or has no rows; what is wrong
// with a row is in the row.
std::vector<CaptionRow> read_caption_rows(const std::string& path);

}  // namespace octet::cli
