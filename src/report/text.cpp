#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "formats/boundary.h"
#include "formats/text.h"

namespace octet {

std::string printable(std::string_view text) { return without_controls(text); }

std::string shell_word(std::string_view text) try {
  const bool is_plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_letter || std::string_view("0123456789_-./=:,+@%").find(c) != std::string_view::npos;
  });
  if (is_plain) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
} catch (...) {
  rethrow_as_error();
}

std::string human_bytes(uint64_t bytes) try {
  const char* const units[] = {"B", "KB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(units); ++unit) value /= 1000;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", value, units[unit]);
} catch (...) {
  rethrow_as_error();
}

std::string counted(size_t count, const std::string& thing) try {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
} catch (...) {
  rethrow_as_error();
}

namespace report {
namespace {

// Characters on a screen: every byte of UTF-8 but the continuation bytes.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

}  // namespace

Table::Table(std::vector<std::string> header, size_t left) : left_(left) {
  rows_.push_back(std::move(header));
}

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = printable(cell);  // whoever wrote it
  rows_.push_back(std::move(row));
}

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

std::string interval_of(const Statistic& statistic, int decimals, const char* none) {
  if (!std::isfinite(statistic.low)) return none;
  return fmt::format("{:.{}f} to {:.{}f}", statistic.low, decimals, statistic.high, decimals);
}

std::string marked(const std::string& figure, const Steadiness& steadiness) {
  return steadiness.reliable || figure == "-" ? figure : "~" + figure;
}

std::string power_line(const PowerUse& power) {
  if (!power.is_known()) return "";
  const std::string limit = power.limit_w > 0 ? fmt::format(" of {:.0f}", power.limit_w) : "";
  const std::string hot =
      power.too_hot > 0 ? fmt::format(", heat {:.0f} %", 100 * power.too_hot) : "";
  return fmt::format(
      "Power {:.0f} W{}, clock {:.0f} MHz, up to {:.0f} C; the power limit lowered the clock "
      "{:.0f} %\nof the time{}.\n",
      power.mean_w, limit, power.mean_mhz, power.max_celsius, 100 * power.power_capped, hot);
}

}  // namespace report
}  // namespace octet
