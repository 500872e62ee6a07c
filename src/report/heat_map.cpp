#include "octet/tools/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "formats/boundary.h"
#include "report/page.h"

namespace octet {
namespace {

using report::html_text, report::svg_text;

constexpr double kCellWidth = 52, kCellHeight = 26, kGroupGap = 14, kHeatMargin = 16;
constexpr double kTitleHeight = 54, kHeadHeight = 44, kLegendHeight = 36,
                 kLetter = 7.2;  // of the names, about

// Slower red, as fast grey, faster green; other colours on a dark page. No variables: few programs
// but browsers know them. A cell is drawn twice: plain, and a colour as strong as the ratio is far
// from 1.
constexpr const char* kHeatStyle = R"(<style>
text{font:12px system-ui,sans-serif;fill:#1c2430}
.heat-title{font-size:15px;font-weight:600}.heat-dim{fill:#5d6875}
.heat-paper{fill:#fbfaf7}.heat-none{fill:#ece9e1}
.heat-fast{fill:#1c7c4a}.heat-slow{fill:#b3261e}
.heat-best{font-weight:700}.heat-frame{fill:none;stroke:#1c2430;stroke-width:1.5}
@media(prefers-color-scheme:dark){text{fill:#e6e8eb}.heat-dim{fill:#9aa4b0}
.heat-paper{fill:#14171c}.heat-none{fill:#2a3038}.heat-fast{fill:#3fae77}.heat-slow{fill:#e0655c}
.heat-frame{stroke:#e6e8eb}}
</style>)";

std::string heat_box(double x, double y, const char* kind, double opacity) {
  return fmt::format(
      R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="{}" height="{}" rx="3" opacity="{:.2f}"/>)",
      kind, x, y, kCellWidth - 2, kCellHeight - 2, opacity);
}

std::string heat_cell(const HeatCell& cell, double x, double y) {
  if (!(cell.ratio > 0)) {
    return heat_box(x, y, "heat-none", 0.5) +
           svg_text(x + kCellWidth / 2 - 1, y + 16, "middle", "–", "heat-dim");
  }
  constexpr double kStrongest = 0.75;
  const double doublings = std::log2(cell.ratio);  // twice as fast has the full colour
  const double strength = kStrongest * std::min(1.0, std::abs(doublings));
  std::string svg = "<g>";
  if (!cell.note.empty()) svg += "<title>" + html_text(cell.note) + "</title>";
  svg += heat_box(x, y, "heat-none", 1);
  svg += heat_box(x, y, doublings >= 0 ? "heat-fast" : "heat-slow", strength);
  if (cell.best) svg += heat_box(x, y, "heat-frame", 1);
  svg += svg_text(x + kCellWidth / 2 - 1, y + 16, "middle", fmt::format("{:.2f}", cell.ratio),
                  cell.best ? "heat-best" : "");
  return svg + "</g>";
}

}  // namespace

std::string heat_map_svg(const HeatMap& map) try {
  size_t columns = 0, longest = 0;
  for (const HeatMap::Group& group : map.groups) columns += group.columns.size();
  for (const HeatMap::Row& row : map.rows) {
    check(row.cells.size() == columns, "heat map: the row {} has {} cells, expected {}", row.name,
          row.cells.size(), columns);
    longest = std::max(longest, row.name.size());
  }
  const double left = kHeatMargin + kLetter * static_cast<double>(longest) + 10;
  const double cells = kCellWidth * static_cast<double>(columns) +
                       kGroupGap * static_cast<double>(std::max<size_t>(map.groups.size(), 1) - 1);
  const double words =
      kLetter * static_cast<double>(std::max(map.title.size() * 5 / 4, map.subtitle.size()));
  const double width = std::max(left + cells, kHeatMargin + words) + kHeatMargin;
  const double top = kTitleHeight + kHeadHeight;
  const double bottom = top + kCellHeight * static_cast<double>(map.rows.size());
  const double height = bottom + kLegendHeight;
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {:.0f} {:.0f}" width="{:.0f}" )"
      R"(height="{:.0f}" role="img" aria-label="{}: {}">{})"
      R"(<rect class="heat-paper" width="100%" height="100%"/>)",
      width, height, width, height, html_text(map.title), html_text(map.subtitle), kHeatStyle);
  svg += svg_text(kHeatMargin, 24, "start", map.title, "heat-title");
  svg += svg_text(kHeatMargin, 43, "start", map.subtitle, "heat-dim");
  double x = left;
  std::vector<double> places;
  for (const HeatMap::Group& group : map.groups) {
    const double middle = x + kCellWidth * static_cast<double>(group.columns.size()) / 2;
    svg += svg_text(middle, kTitleHeight + 16, "middle", group.name, "");
    for (const std::string& column : group.columns) {
      svg += svg_text(x + kCellWidth / 2 - 1, kTitleHeight + 35, "middle", column, "heat-dim");
      places.push_back(x);
      x += kCellWidth;
    }
    x += kGroupGap;
  }
  double y = top;
  for (const HeatMap::Row& row : map.rows) {
    svg += svg_text(left - 10, y + 16, "end", row.name, "");
    for (size_t i = 0; i < row.cells.size(); ++i) svg += heat_cell(row.cells[i], places[i], y);
    svg += "\n";
    y += kCellHeight;
  }
  svg += svg_text(kHeatMargin, bottom + 22, "start",
                  "Green is faster, red slower; the fastest is framed.", "heat-dim");
  return svg + "</svg>\n";
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
