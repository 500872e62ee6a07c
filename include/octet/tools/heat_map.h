// A table of ratios drawn as coloured cells: which way is how many times as fast.
#pragma once

#include <string>
#include <vector>

#include "octet/export.h"

namespace octet {

struct HeatCell {
  double ratio = 0;       // speed over that of the reference: above 1 is faster; 0: an empty cell
  std::string note = {};  // shown where a pointer rests on it
  bool best = false;      // of its group in its row: marked
};

struct HeatMap {
  // Columns that belong together, such as the ways of one size.
  struct Group {
    std::string name;
    std::vector<std::string> columns;
  };
  struct Row {
    std::string name;
    std::vector<HeatCell> cells;  // of all groups, one after the other
  };
  std::string title;
  std::string subtitle;  // what the figures are: measured on what and when, or predicted
  std::vector<Group> groups;
  std::vector<Row> rows;
};

// An SVG file that needs nothing else, light or dark as the reader's system is.
OCTET_API std::string heat_map_svg(const HeatMap& map);

}  // namespace octet
