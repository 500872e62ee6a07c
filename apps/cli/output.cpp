#include "output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "field_names.h"
#include "octet/tools/files.h"
#include "octet/tools/text.h"

namespace octet::cli {
namespace {

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

std::string counted(size_t count, const std::string& thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
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

void PhaseReports::operator()(const std::string& phase, int done, int total) {
  if (phase != phase_) {
    progress_.reset();
    progress_.emplace(flags_, title_, phase);
    phase_ = phase;
  }
  (*progress_)(done, total);
}

void say(const CommonFlags& flags, const Sentence& sentence) {
  // fputs rather than fmt::print, which throws when standard error is full or closed.
  std::fputs(fmt::format("octet: {}\n", printable(with_flags(sentence, flags.app))).c_str(),
             stderr);
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
