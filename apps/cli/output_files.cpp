#include "output_files.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include "octet/tools/files.h"
#include "octet/tools/text.h"

namespace octet::cli {
namespace {

namespace fs = std::filesystem;

// What may be written again in a folder of inputs, where somebody may work.
bool is_former_output(const std::string& file) {
  char begin[24] = {};
  std::ifstream(file, std::ios::binary).read(begin, sizeof(begin) - 1);
  const std::string_view text = begin;
  return text.starts_with("\x89PNG") || text.starts_with("{\n  \"schema\": \"octet.") ||
         text.starts_with("<!doctype html>");
}

// The files that an output must not replace.
class TakenFiles {
 public:
  void add(const std::string& path) {
    std::error_code error;
    const std::string whole = written_file(path);
    (fs::is_directory(whole, error) ? folders_ : files_).insert(whole);
  }

  // Devices and pipes are nobody's: whoever names /dev/null twice means it.
  bool holds(const std::string& path) const {
    std::error_code error;
    const std::string whole = written_file(path);
    const fs::file_status status = fs::status(whole, error);
    if (whole.empty() || (fs::exists(status) && !fs::is_regular_file(status))) return false;
    if (files_.contains(whole)) return true;
    if (!fs::exists(status) || is_former_output(whole)) return false;
    return std::any_of(folders_.begin(), folders_.end(),
                       [&](const std::string& folder) { return whole.starts_with(folder + "/"); });
  }

 private:
  std::set<std::string> files_, folders_;
};

}  // namespace

void check_outputs(const CommonFlags& flags, std::vector<std::string> outputs,
                   const std::vector<std::string>& others) {
  if (!flags.json.empty() && flags.json != "-") outputs.push_back(flags.json);
  TakenFiles taken;
  for (const std::string& file : others) taken.add(file);
  for (const std::string& file : outputs) {
    if (taken.holds(file)) {
      throw CLI::ValidationError(
          fmt::format("{}: belongs to what another argument names, and one would overwrite the "
                      "other; give the output another name",
                      printable(file)));
    }
    taken.add(file);
    check_writable(file);
  }
}

}  // namespace octet::cli
