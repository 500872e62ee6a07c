// A map as a drawing and as one HTML page.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/boundary.h"
#include "octet/tools/map.h"
#include "octet/version.h"
#include "report/html.h"
#include "report/page.h"

namespace octet {
namespace {

using report::html_text;

constexpr const char* kMapPageStyle = R"(
svg{max-width:none;height:auto;border:0}td code{white-space:nowrap}
.best{font-weight:700;color:var(--good)}
.computed{font-style:italic})";

std::string measured_where(const DeploymentMap& map) {
  return fmt::format("measured on {}, {}, commit {}", map.device, map.date.substr(0, 10),
                     map.commit);
}

// Rows of one linear are one row of the drawing; sizes are its groups.
std::string linear_name(const MapRow& row) {
  const std::string size = fmt::format("{} x {}", row.shape.n, row.shape.k);
  return row.layer.empty() ? size : fmt::format("{} {}", row.layer, size);
}

std::string group_name(const MapRow& row) {
  if (row.pixels == 0) return fmt::format("{} rows", row.shape.m);
  return row.text_tokens > 0 ? fmt::format("{} px + text, {} rows", row.pixels, row.shape.m)
                             : fmt::format("{} px, {} rows", row.pixels, row.shape.m);
}

std::string table_head(const std::vector<std::string>& names) {
  std::string head = R"(<div class="scroll"><table><thead><tr>)";
  for (const std::string& name : names) {
    head += fmt::format(R"(<th scope="col">{}</th>)", html_text(name));
  }
  return head + "</tr></thead><tbody>";
}

std::string cell_text(const std::string& text, const char* kind = "") {
  return fmt::format(R"(<td class="{}">{}</td>)", kind, html_text(text));
}

std::string linear_table(const DeploymentMap& map) {
  std::vector<std::string> names = {"linear", "rows"};
  for (const MapWay& way : map.ways) names.push_back(way.name + ", us");
  names.emplace_back("fastest");
  names.emplace_back("INT8 kernel");
  std::string table = table_head(names);
  for (const MapRow& row : map.rows) {
    table += "<tr>" + cell_text(linear_name(row)) + cell_text(group_name(row));
    for (const MapWay& way : map.ways) {
      const MapCell* cell = row.cell(way.name);
      table += cell == nullptr
                   ? cell_text("–")
                   : cell_text(fmt::format("{:.1f} ({:.2f}x)", cell->load_us, cell->ratio),
                               row.fastest == way.name ? "best" : "");
    }
    table += cell_text(row.fastest) + "<td><code>" + html_text(row.kernel) + "</code></td></tr>";
  }
  return table + "</tbody></table></div>";
}

std::string step_table(const DeploymentMap& map) {
  std::vector<std::string> names = {"size", "linears", "attention", "step, ms", "from"};
  for (const int steps : kMapPictureSteps) names.push_back(fmt::format("{} steps, s", steps));
  std::string table = table_head(names);
  for (const MapStep& step : map.steps) {
    table += fmt::format(R"(<tr class="{}">)", step.measured ? "" : "computed");
    table += cell_text(fmt::format("{} px", step.pixels)) + cell_text(step.way) +
             cell_text(step.attention) + cell_text(fmt::format("{:.1f}", step.ms)) +
             cell_text(step.measured ? "measured" : "computed");
    for (const int steps : kMapPictureSteps) {
      table += cell_text(fmt::format("{:.2f}", step.seconds(steps)));
    }
    table += "</tr>";
  }
  return table + "</tbody></table></div>";
}

std::string memory_table(const DeploymentMap& map) {
  std::string table =
      table_head({"linears", "networks", "size", "weights, GB", "work, GB", "fits on, GB"});
  for (const MapMemory& memory : map.memory) {
    std::string cards;
    for (const int card : memory.fits)
      cards += fmt::format("{}{}", cards.empty() ? "" : ", ", card);
    table += "<tr>" + cell_text(memory.way) + cell_text(memory.alone ? "only the first" : "all") +
             cell_text(fmt::format("{} px", memory.pixels)) +
             cell_text(fmt::format("{:.2f}", static_cast<double>(memory.weight_bytes) * 1e-9)) +
             cell_text(fmt::format("{:.2f}{}", static_cast<double>(memory.work_bytes) * 1e-9,
                                   memory.measured ? "" : " (estimate)")) +
             cell_text(cards.empty() ? "none of these" : cards) + "</tr>";
  }
  return table + "</tbody></table></div>";
}

}  // namespace

HeatMap heat_map_of(const DeploymentMap& map) try {
  HeatMap drawn;
  drawn.title = "Linears under load: speed relative to bf16";
  drawn.subtitle = measured_where(map);
  std::vector<std::string> columns;
  for (const MapWay& way : map.ways) {
    if (way.name != "bf16") columns.push_back(way.name);  // it is 1 everywhere
  }
  const auto index_of = [](auto& list, const std::string& name) {
    const auto found =
        std::find_if(list.begin(), list.end(), [&](const auto& each) { return each.name == name; });
    if (found != list.end()) return static_cast<size_t>(found - list.begin());
    list.push_back({name, {}});
    return list.size() - 1;
  };
  for (const MapRow& row : map.rows) {
    index_of(drawn.groups, group_name(row));
    index_of(drawn.rows, linear_name(row));
  }
  for (HeatMap::Group& group : drawn.groups) group.columns = columns;
  for (HeatMap::Row& row : drawn.rows) row.cells.resize(drawn.groups.size() * columns.size());
  for (const MapRow& row : map.rows) {
    const size_t first = index_of(drawn.groups, group_name(row)) * columns.size();
    HeatMap::Row& into = drawn.rows[index_of(drawn.rows, linear_name(row))];
    for (size_t i = 0; i < columns.size(); ++i) {
      const MapCell* cell = row.cell(columns[i]);
      if (cell == nullptr) continue;
      into.cells[first + i] = {
          .ratio = cell->ratio,
          .note = fmt::format("{}: {:.1f} us under load, {:.1f} us cold, error {:.4f}", columns[i],
                              cell->load_us, cell->cold_us, cell->error),
          .best = row.fastest == columns[i]};
    }
  }
  return drawn;
} catch (...) {
  rethrow_as_error();
}

std::string map_page(const DeploymentMap& map) try {
  std::string page = report::page_head("Deployment map: " + map.device, kMapPageStyle);
  page += fmt::format("<main><h1>Deployment map</h1><p class=\"dim\">{}; Octet {}</p>",
                      html_text(measured_where(map)), html_text(version()));
  page += "<h2>Linears</h2>" + heat_map_svg(heat_map_of(map));
  page +=
      "<p class=\"dim\">Each path including the quantization of its activations, run without "
      "pause; in brackets the speed relative to bf16. The fastest is marked.</p>" +
      linear_table(map);
  page += table_head({"way", "what runs"});
  for (const MapWay& way : map.ways) {
    page += "<tr>" + cell_text(way.name) + cell_text(way.how) + "</tr>";
  }
  page += "</tbody></table></div>";
  if (!map.steps.empty()) {
    page += fmt::format(
        "<h2>Steps and pictures</h2><p class=\"dim\">One pass of each network, {} text tokens, {} "
        "layers, extrapolated from networks of 1 and {} layers. Computed: the measured bf16 step "
        "with this path's linears instead of its own. Pictures: denoising alone.</p>",
        map.text_tokens, map.layers, map.timed_layers);
    page += step_table(map);
  }
  if (!map.memory.empty()) {
    page += fmt::format(
        "<h2>Memory while denoising</h2><p class=\"dim\">{:.1f} GB of a card are left for the "
        "context and other uses.</p>",
        kMapReserve * 1e-9);
    page += memory_table(map);
  }
  return page + "</main></body></html>\n";
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
