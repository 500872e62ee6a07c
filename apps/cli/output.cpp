#include "output.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include "octet/files.h"
#include "octet/text.h"

namespace octet::cli {
namespace {

namespace fs = std::filesystem;

// Characters on a screen: every byte of UTF-8 but the continuation bytes.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

// "octet.bench.gemm/1". The number rises when a field changes its meaning or goes; a new field
// leaves it as it is.
std::string schema_of(const CommonFlags& flags) {
  std::string command = flags.command;
  std::replace(command.begin(), command.end(), ' ', '.');
  return fmt::format("octet.{}/1", command);
}

constexpr int kMostLinks = 40;  // of a chain, as in the kernel

// The same for two names of one file, also where it is not there yet.
fs::path whole_path(const std::string& path) {
  std::error_code error;
  fs::path whole = fs::absolute(path, error);
  // A link whose file is not there: weakly_canonical() would take it for a file.
  for (int links = 0; links < kMostLinks && fs::is_symlink(whole, error); ++links) {
    whole = whole.parent_path() / fs::read_symlink(whole, error);
  }
  return fs::weakly_canonical(whole, error);
}

// What may be written again in a folder of inputs, where somebody may work.
bool is_former_output(const fs::path& file) {
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
    const fs::path whole = whole_path(path);
    (fs::is_directory(whole, error) ? folders_ : files_).insert(whole.string());
  }

  // Devices and pipes are nobody's: whoever names /dev/null twice means it.
  bool holds(const std::string& path) const {
    std::error_code error;
    const fs::path whole = whole_path(path);
    const fs::file_status status = fs::status(whole, error);
    if (fs::exists(status) && !fs::is_regular_file(status)) return false;
    if (files_.contains(whole.string())) return !whole.empty();
    if (!fs::exists(status) || is_former_output(whole)) return false;
    return std::any_of(folders_.begin(), folders_.end(), [&](const std::string& folder) {
      return whole.string().starts_with(folder + "/");
    });
  }

 private:
  std::set<std::string> files_, folders_;
};

}  // namespace

Table::Table(std::vector<std::string> header, size_t left) : left_(left) {
  rows_.push_back(std::move(header));
}

void Table::add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

std::string Table::text() const {
  std::vector<size_t> widths(rows_[0].size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      const std::string padding(widths[i] - width_of(row[i]), ' ');
      line += i < left_ ? row[i] + padding : padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string bar(double share) {
  constexpr int kCells = 20;
  const int cells = std::max(1, static_cast<int>(share * kCells + 0.5));
  std::string text;
  for (int i = 0; i < cells; ++i) text += "█";
  return text;
}

std::string human_bytes(uint64_t bytes) {
  const char* const units[] = {"B", "KB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(units); ++unit) value /= 1000;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", value, units[unit]);
}

std::string short_number(double value) {
  if (value <= 0) return "-";
  if (value < 1) return fmt::format("{:.2g}", value);
  return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

std::string short_percent(double share) {
  if (share <= 0) return "-";
  const double percent = share * 100;
  return percent < 1 ? fmt::format("{:.2g} %", percent) : fmt::format("{:.0f} %", percent);
}

nlohmann::ordered_json known(double value) {
  return value > 0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json known(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

ProgressReports::ProgressReports(const CommonFlags& flags, std::string title, std::string unit)
    : quiet_(flags.quiet), title_(std::move(title)), unit_(std::move(unit)) {}

void ProgressReports::operator()(int done, int total) {
  if (quiet_) return;
  if (!progress_) progress_.emplace(title_, total, unit_);
  progress_->update(done);
}

void check_outputs(const CommonFlags& flags, std::vector<std::string> outputs,
                   const std::vector<std::string>& others) {
  if (!flags.json.empty() && flags.json != "-") outputs.push_back(flags.json);
  TakenFiles taken;
  for (const std::string& file : others) taken.add(file);
  for (const std::string& file : outputs) {
    if (taken.holds(file)) {
      throw CLI::ValidationError(fmt::format(
          "{}: belongs to what another argument names, and one would replace the other; give the "
          "output a name of its own",
          printable(file)));
    }
    taken.add(file);
    check_writable(file);
  }
}

void show(const CommonFlags& flags, const std::string& text, const nlohmann::ordered_json& result) {
  nlohmann::ordered_json json = {{"schema", schema_of(flags)}};
  if (result.is_object()) json.update(result);
  // File names need not be UTF-8, and JSON must be.
  const auto dump = [&json] {
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  };
  std::fputs((flags.json == "-" ? dump() : text).c_str(), stdout);
  if (!flags.json.empty() && flags.json != "-") write_text_file(flags.json, dump());
}

}  // namespace octet::cli
