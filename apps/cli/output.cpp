#include "output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include "field_names.h"
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
  return text.starts_with("\x89PNG") || text.starts_with("\xff\xd8\xff") ||
         (text.starts_with("RIFF") && std::string_view(begin + 8, 4) == "WEBP") ||
         text.starts_with("{\n  \"schema\": \"octet.") || text.starts_with("<!doctype html>");
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

ProgressReports::ProgressReports(const CommonFlags& flags, std::string title, std::string unit)
    : quiet_(flags.quiet), title_(std::move(title)), unit_(std::move(unit)) {}

void ProgressReports::operator()(int done, int total) {
  if (quiet_) return;
  if (!progress_) progress_.emplace(title_, total, unit_);
  progress_->update(done);
}

void PhaseReports::operator()(const std::string& phase, int done, int total) {
  if (phase != phase_) {
    progress_.reset();
    progress_.emplace(flags_, title_, phase);
    phase_ = phase;
  }
  (*progress_)(done, total);
}

namespace {

// An argument may be as long as the system allows, and is often the start of a sentence.
std::string shortened(const std::string& line) {
  constexpr size_t kMost = 9'000, kStart = 6'000, kEnd = 2'000;
  if (line.size() <= kMost) return line;
  const auto at_character = [&](size_t at) {
    while ((static_cast<unsigned char>(line[at]) & 0xc0) == 0x80) --at;
    return at;
  };
  return line.substr(0, at_character(kStart)) + " ... " +
         line.substr(at_character(line.size() - kEnd));
}

}  // namespace

void say(const CommonFlags& flags, const Sentence& sentence) {
  const std::string line = shortened(printable(with_flags(sentence, flags.app)));
  // fputs rather than fmt::print, which throws when standard error is full or closed.
  std::fputs(fmt::format("octet: {}\n", line).c_str(), stderr);
}

std::string short_path(const std::string& path) {
  constexpr size_t kMost = 120, kKept = 80;
  if (path.size() <= kMost) return path;
  size_t first = path.find('/', path.size() - kKept);
  if (first == path.npos) first = path.size() - kKept;
  while (first < path.size() && (static_cast<unsigned char>(path[first]) & 0xc0) == 0x80) ++first;
  return "..." + path.substr(first);
}

Detail detail_of(const CommonFlags& flags) {
  return flags.quiet ? Detail::brief : flags.verbose ? Detail::full : Detail::usual;
}

void show(const CommonFlags& flags, const std::string& text, const std::string& json) {
  std::fputs((flags.json == "-" ? json : text).c_str(), stdout);
  if (!flags.json.empty() && flags.json != "-") write_text_file(flags.json, json);
}

void check_outputs(const CommonFlags& flags, std::vector<std::string> outputs,
                   const std::vector<std::string>& others) {
  if (!flags.json.empty() && flags.json != "-") outputs.push_back(flags.json);
  TakenFiles taken;
  for (const std::string& file : others) taken.add(file);
  for (const std::string& file : outputs) {
    if (file.empty()) continue;
    if (taken.holds(file)) {
      throw CLI::ValidationError(
          fmt::format("{}: belongs to what another argument names, and one would overwrite the "
                      "other; give the output another name",
                      printable(file)));
    }
    taken.add(file);
    make_folder_of(file);
    check_writable(file);
  }
}

}  // namespace octet::cli
