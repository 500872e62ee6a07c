// What a device should use, measured on it.
#include <fmt/format.h>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/json.h"
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

Json json_of(const MapRow& row) {
  Json tops = Json::object();
  for (const MapCell& cell : row.cells) tops[cell.way] = tops_of(row.shape, cell.load_us);
  return {{"layer", known(row.layer)},
          {"pixels", row.pixels > 0 ? Json(row.pixels) : Json()},
          {"text_tokens", row.text_tokens},
          {"m", row.shape.m},
          {"n", row.shape.n},
          {"k", row.shape.k},
          {"kernel", row.kernel},
          {"plan", row.plan},
          {"load_us", cells_by_way(row, &MapCell::load_us)},
          {"cold_us", cells_by_way(row, &MapCell::cold_us)},
          {"tops", tops},
          {"ratio", cells_by_way(row, &MapCell::ratio)},
          {"error", cells_by_way(row, &MapCell::error)},
          {"fastest", row.fastest},
          {"path", row.path}};
}

Json json_of(const MapStep& step) {
  Json seconds = Json::object();
  for (const int steps : kMapPictureSteps) seconds[std::to_string(steps)] = step.seconds(steps);
  return {{"pixels", step.pixels},
          {"way", step.way},
          {"attention", step.attention},
          {"measured", step.measured},
          {"ms", step.ms},
          {"computed_ms", known(step.computed_ms)},
          {"linears_ms", known(step.linears_ms)},
          {"attention_ms", known(step.attention_ms)},
          {"rest_ms", known(step.rest_ms)},
          {"seconds", seconds}};
}

Json json_of(const MapMemory& memory) {
  return {{"way", memory.way},
          {"networks", memory.alone ? "first" : "all"},
          {"pixels", memory.pixels},
          {"weight_bytes", memory.weight_bytes},
          {"work_bytes", memory.work_bytes},
          {"measured", memory.measured},
          {"fits_gb", memory.fits}};
}

std::string map_linears(const DeploymentMap& map) {
  constexpr double kLargeTops = 10;
  bool large = false;
  for (const MapRow& row : map.rows) {
    for (const MapCell& cell : row.cells) {
      large = large || tops_of(row.shape, cell.load_us) >= kLargeTops;
    }
  }
  std::vector<std::string> header = {"linear", "path", "m", "n", "k"};
  for (const MapWay& way : map.ways) {
    header.push_back(way.name + (large ? " TOPS" : " GOPS"));
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
      cells.push_back(short_number(large ? tops : tops * 1e3) +
                      (row.fastest == way.name ? "*" : ""));
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
      "its own.\nPictures: denoising alone.\n",
      table.text(), map.text_tokens, map.layers, map.timed_layers);
}

std::string map_memory(const DeploymentMap& map) {
  if (map.memory.empty()) return "";
  Table table({"linears", "networks", "size", "weights", "work", "fits on"}, 3);
  bool estimated = false;
  for (const MapMemory& memory : map.memory) {
    std::string cards;
    for (const int card : memory.fits) {
      cards += fmt::format("{}{}", cards.empty() ? "" : " ", card);
    }
    estimated = estimated || !memory.measured;
    table.add({memory.way, memory.alone ? "the first" : "all", fmt::format("{} px", memory.pixels),
               human_bytes(memory.weight_bytes),
               human_bytes(memory.work_bytes) + (memory.measured ? "" : "~"),
               cards.empty() ? "-" : cards + " GB"});
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

}  // namespace

std::string to_json(const DeploymentMap& map) try {
  Json ways = Json::object();
  for (const MapWay& way : map.ways) ways[way.name] = way.how;
  return document("octet.map/1",
                  {{"device", map.device},
                   {"date", map.date},
                   {"commit", map.commit},
                   {"threads", map.threads},
                   {"plan_file", known(map.plan_file)},
                   {"kept_rows", map.kept_rows},
                   {"text_tokens", map.text_tokens},
                   {"layers", map.layers > 0 ? Json(map.layers) : Json()},
                   {"timed_layers", map.timed_layers > 0 ? Json(map.timed_layers) : Json()},
                   {"ways", ways},
                   {"rows", list_of(map.rows, json_of)},
                   {"steps", list_of(map.steps, json_of)},
                   {"memory", list_of(map.memory, json_of)}});
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

}  // namespace octet
