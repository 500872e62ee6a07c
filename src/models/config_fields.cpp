#include "models/config_fields.h"

#include <filesystem>

#include "base/regular_file.h"

namespace octet::models {

std::string find_config(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path given(path);
  const bool is_folder = std::filesystem::is_directory(given, ignored);
  const std::string file = ((is_folder ? given : given.parent_path()) / "config.json").string();
  return is_file_there(file) ? file : "";
}

}  // namespace octet::models
