// A table of speed ratios, drawn as coloured cells.
#pragma once

#include <string>
#include <vector>

#include "octet/export.h"

namespace octet {

struct HeatCell {
  double ratio = 0;       // speed over that of the reference: above 1 is faster; 0: an empty cell
  std::string note = {};  // shown as a tooltip
  bool best = false;      // of its group in its row; highlighted
};

struct HeatMap {
  // Columns that belong together, such as the paths at one size.
  struct Group {
    std::string name;
    std::vector<std::string> columns;
  };
  struct Row {
    std::string name;
    std::vector<HeatCell> cells;  // of all groups, one after the other
  };
  std::string title;
  std::string subtitle;  // what the figures are: measured (where and when) or predicted
  std::vector<Group> groups;
  std::vector<Row> rows;
};

// A self-contained SVG file that follows the reader's light or dark theme.
OCTET_API std::string heat_map_svg(const HeatMap& map);

}  // namespace octet
