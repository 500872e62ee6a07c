// The files that a command writes, looked at before its work.
#pragma once

#include <string>
#include <vector>

#include "flags.h"

namespace octet::cli {

// With the files that the command writes besides that of --json, and the other files and folders
// that it was given: fails where an output cannot be written, and with wrong usage where it would
// replace another output, an input, or a file in an input's folder that is no earlier output.
void check_outputs(const CommonFlags& flags, std::vector<std::string> outputs = {},
                   const std::vector<std::string>& others = {});

}  // namespace octet::cli
