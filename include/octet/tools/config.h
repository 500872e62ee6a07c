// The user's defaults for programs: a file with lines such as model = "owner/name".
#pragma once

#include <optional>
#include <string>

#include "octet/export.h"

namespace octet {

struct Config {
  std::string file;       // where it is looked for; empty: nowhere
  bool is_there = false;  // the file
  std::optional<std::string> model, base, device;
};

// The file that OCTET_CONFIG names, which empty means none; else octet/config.toml in the user's
// folder of configurations, which need not exist. Throws Error, with the line, for anything in it
// but comments and known keys with a text in quotes. `~/` at the beginning of a model is the user's
// folder.
OCTET_API Config read_config();

}  // namespace octet
