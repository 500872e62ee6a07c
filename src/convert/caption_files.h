// Captions of a calibration, from files.
#pragma once

#include <string>
#include <vector>

#include "models/family.h"

namespace octet::convert {

// As the tokenizer of the family is to get them. A path is a file with one caption, a file with one
// in each line (its name ends with ".jsonl"; empty lines do not count), or a folder, whose files
// with the family's suffix are taken by name. Logs warnings about them. Throws Error, naming the
// file and the line, for a caption that is not valid, unless `any` will do, and for a path without
// any.
std::vector<std::string> read_captions(const models::Family& family,
                                       const std::vector<std::string>& paths, bool any = false);

}  // namespace octet::convert
