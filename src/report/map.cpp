// What a device should use, measured on it: text, JSON, a drawing and one HTML page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "octet/version.h"
#include "report/json.h"
#include "report/page.h"
#include "report/text.h"

namespace octet {
namespace {

using namespace report;

// By way: {"int8": 117.2, "bf16": 250.1}
Json cells_by_way(const MapRow& row, double MapCell::*figure) {
  Json json = Json::object();
  for (const MapCell& cell : row.cells) json[cell.way] = cell.*figure;
  return json;
}

double tops_of(const GemmShape& shape, double us) {
  return us > 0 ? 2e-6 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                      static_cast<double>(shape.k) / us
                : 0;
}

}  // namespace

static void to_json(Json& json, const MapRow& row) {
  Json tops = Json::object();
  for (const MapCell& cell : row.cells) tops[cell.way] = tops_of(row.shape, cell.load_us);
  json = joined({OCTET_KNOWN_FIELDS(row, layer, pixels), OCTET_FIELDS(row, text_tokens),
                 OCTET_FIELDS(row.shape, m, n, k), OCTET_FIELDS(row, kernel, plan),
                 field("load_us", cells_by_way(row, &MapCell::load_us)),
                 field("cold_us", cells_by_way(row, &MapCell::cold_us)), field("tops", tops),
                 field("ratio", cells_by_way(row, &MapCell::ratio)),
                 field("error", cells_by_way(row, &MapCell::error)),
                 OCTET_FIELDS(row, fastest, path)});
}

static void to_json(Json& json, const MapStep& step) {
  Json seconds = Json::object();
  for (const int steps : kMapPictureSteps) seconds[std::to_string(steps)] = step.seconds(steps);
  json = joined({OCTET_FIELDS(step, pixels, way, attention, measured, ms),
                 OCTET_KNOWN_FIELDS(step, computed_ms, linears_ms, attention_ms, rest_ms),
                 field("seconds", seconds)});
}

static void to_json(Json& json, const MapMemory& memory) {
  json = joined({OCTET_FIELDS(memory, way), field("networks", memory.alone ? "first" : "all"),
                 OCTET_FIELDS(memory, pixels, weight_bytes, work_bytes, measured),
                 field("fits_gb", memory.fits)});
}

namespace {

std::string map_linears(const DeploymentMap& map) {
  Speeds speed;
  for (const MapRow& row : map.rows) {
    for (const MapCell& cell : row.cells) speed.see(tops_of(row.shape, cell.load_us));
  }
  std::vector<std::string> header = {"linear", "path", "m", "n", "k"};
  for (const MapWay& way : map.ways) {
    header.push_back(way.name + " " + speed.unit());
    if (way.name != "bf16") header.emplace_back("vs bf16");
  }
  Table table(header, 2);
  for (const MapRow& row : map.rows) {
    std::vector<std::string> cells = {row.layer.empty() ? "-" : row.layer, row.path,
                                      std::to_string(row.shape.m), std::to_string(row.shape.n),
                                      std::to_string(row.shape.k)};
    for (const MapWay& way : map.ways) {
      const MapCell* cell = row.cell(way.name);
      const double tops = cell == nullptr ? 0 : tops_of(row.shape, cell->load_us);
      cells.push_back(speed(tops) + (row.fastest == way.name ? "*" : ""));
      if (way.name == "bf16") continue;
      cells.push_back(cell == nullptr ? "-" : fmt::format("{:.2f}x", cell->ratio));
    }
    table.add(std::move(cells));
  }
  return table.text();
}

std::string map_steps(const DeploymentMap& map) {
  if (map.steps.empty()) return "";
  std::vector<std::string> header = {"size", "linears", "attention", "from", "step ms"};
  for (const int steps : kMapPictureSteps) header.push_back(fmt::format("{} steps s", steps));
  for (const char* part : {"linears ms", "attention ms", "rest ms"}) header.emplace_back(part);
  Table table(header, 4);
  for (const MapStep& step : map.steps) {
    std::vector<std::string> cells = {fmt::format("{} px", step.pixels), step.way, step.attention,
                                      step.measured ? "measured" : "computed",
                                      short_number(step.ms)};
    for (const int steps : kMapPictureSteps) cells.push_back(short_number(step.seconds(steps)));
    for (const double ms : {step.linears_ms, step.attention_ms, step.rest_ms}) {
      cells.push_back(short_number(ms));
    }
    table.add(std::move(cells));
  }
  return fmt::format(
      "\n{}\nA step: one pass of each network with {} text tokens and {} layers, extrapolated from "
      "networks\nof 1 and {} layers. Computed: the bf16 step with this path's linears instead of "
      "its own.\nPictures: only denoising.\n",
      table.text(), map.text_tokens, map.layers, map.timed_layers);
}

std::string map_memory(const DeploymentMap& map) {
  if (map.memory.empty()) return "";
  Table table({"linears", "networks", "size", "weights", "work", "fits on"}, 3);
  bool estimated = false;
  for (const MapMemory& memory : map.memory) {
    estimated = estimated || !memory.measured;
    table.add({memory.way, memory.alone ? "the first" : "all", fmt::format("{} px", memory.pixels),
               human_bytes(memory.weight_bytes),
               human_bytes(memory.work_bytes) + (memory.measured ? "" : "~"),
               memory.fits.empty() ? "-" : fmt::format("{} GB", fmt::join(memory.fits, " "))});
  }
  return fmt::format(
      "\n{}\nWhile denoising; {:.1f} GB of a card are left for the context and other uses.{}\n",
      table.text(), kMapReserve * 1e-9, estimated ? " ~ is an estimate, not measured." : "");
}

std::string map_kept(const DeploymentMap& map) {
  if (map.plan_file.empty()) {
    return "This device has no plan file: --path auto uses INT8 for everything.";
  }
  if (map.kept_rows == 0) return "Nothing was stored: the kernels were not measured (--tune).";
  return fmt::format("Plan file, which --path auto reads: {}", printable(map.plan_file));
}

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

std::string cell_text(const std::string& text, const char* kind = "") {
  return fmt::format(R"(<td class="{}">{}</td>)", kind, html_text(text));
}

std::string linear_table(const DeploymentMap& map) {
  std::vector<std::string> names = {"linear", "rows"};
  for (const MapWay& way : map.ways) names.push_back(way.name + ", us");
  names.emplace_back("fastest");
  names.emplace_back("INT8 kernel");
  std::string rows;
  for (const MapRow& row : map.rows) {
    rows += "<tr>" + cell_text(linear_name(row)) + cell_text(group_name(row));
    for (const MapWay& way : map.ways) {
      const MapCell* cell = row.cell(way.name);
      rows += cell == nullptr
                  ? cell_text("–")
                  : cell_text(fmt::format("{:.1f} ({:.2f}x)", cell->load_us, cell->ratio),
                              row.fastest == way.name ? "best" : "");
    }
    rows += cell_text(row.fastest) + "<td><code>" + html_text(row.kernel) + "</code></td></tr>";
  }
  return html_table(names, rows);
}

std::string step_table(const DeploymentMap& map) {
  std::vector<std::string> names = {"size", "linears", "attention", "step, ms", "from"};
  for (const int steps : kMapPictureSteps) names.push_back(fmt::format("{} steps, s", steps));
  std::string rows;
  for (const MapStep& step : map.steps) {
    rows += fmt::format(R"(<tr class="{}">)", step.measured ? "" : "computed");
    rows += cell_text(fmt::format("{} px", step.pixels)) + cell_text(step.way) +
            cell_text(step.attention) + cell_text(fmt::format("{:.1f}", step.ms)) +
            cell_text(step.measured ? "measured" : "computed");
    for (const int steps : kMapPictureSteps) {
      rows += cell_text(fmt::format("{:.2f}", step.seconds(steps)));
    }
    rows += "</tr>";
  }
  return html_table(names, rows);
}

std::string memory_table(const DeploymentMap& map) {
  std::string rows;
  for (const MapMemory& memory : map.memory) {
    rows += "<tr>" + cell_text(memory.way) + cell_text(memory.alone ? "only the first" : "all") +
            cell_text(fmt::format("{} px", memory.pixels)) +
            cell_text(fmt::format("{:.2f}", static_cast<double>(memory.weight_bytes) * 1e-9)) +
            cell_text(fmt::format("{:.2f}{}", static_cast<double>(memory.work_bytes) * 1e-9,
                                  memory.measured ? "" : " (estimate)")) +
            cell_text(memory.fits.empty() ? "none of these"
                                          : fmt::format("{}", fmt::join(memory.fits, ", "))) +
            "</tr>";
  }
  return html_table({"linears", "networks", "size", "weights, GB", "work, GB", "fits on, GB"},
                    rows);
}

}  // namespace

std::string to_json(const DeploymentMap& map) try {
  Json ways = Json::object();
  for (const MapWay& way : map.ways) ways[way.name] = way.how;
  return document(
      "octet.map/1",
      joined({OCTET_FIELDS(map, device, date, commit, threads), OCTET_KNOWN_FIELDS(map, plan_file),
              OCTET_FIELDS(map, kept_rows, text_tokens),
              OCTET_KNOWN_FIELDS(map, layers, timed_layers), field("ways", ways),
              OCTET_FIELDS(map, rows, steps, memory)}));
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const DeploymentMap& map) try {
  std::string hows;
  for (const MapWay& way : map.ways) hows += fmt::format("  {:<5} {}\n", way.name, way.how);
  return fmt::format(
      "{}\nmeasured {}, commit {}\n\n{}\nUnder load, including the quantization of the "
      "activations; * is the fastest, path the\nfaster of INT8 and bf16.\n{}{}{}{}\n",
      map.device, map.date, map.commit, map_linears(map), hows, map_steps(map), map_memory(map),
      map_kept(map));
} catch (...) {
  rethrow_as_error();
}

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
  std::string page = page_head("Deployment map: " + map.device, kMapPageStyle);
  page += fmt::format("<main><h1>Deployment map</h1><p class=\"dim\">{}; Octet {}</p>",
                      html_text(measured_where(map)), html_text(version()));
  page += "<h2>Linears</h2>" + heat_map_svg(heat_map_of(map));
  page +=
      "<p class=\"dim\">Each path including the quantization of its activations, run without "
      "pause; in brackets the speed relative to bf16. The fastest is marked.</p>" +
      linear_table(map);
  std::string ways;
  for (const MapWay& way : map.ways) {
    ways += "<tr>" + cell_text(way.name) + cell_text(way.how) + "</tr>";
  }
  page += html_table({"way", "what runs"}, ways);
  if (!map.steps.empty()) {
    page += fmt::format(
        "<h2>Steps and pictures</h2><p class=\"dim\">One pass of each network, {} text tokens, {} "
        "layers, extrapolated from networks of 1 and {} layers. Computed: the measured bf16 step "
        "with this path's linears instead of its own. Pictures: only denoising.</p>",
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
