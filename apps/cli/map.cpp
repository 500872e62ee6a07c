// octet map
#include "octet/tools/map.h"

#include <fmt/format.h>

#include <functional>
#include <memory>

#include "commands.h"
#include "help_page.h"
#include "map_predict.h"
#include "model_flags.h"
#include "octet/tools/files.h"
#include "octet/tools/text.h"
#include "output.h"
#include "output_files.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

struct MapArguments {
  MapRequest request;
  int64_t layers = -1;  // not given
  std::string svg, page;
  std::vector<std::string> cards;  // to predict; none: the device is measured
  bool check = false;
};

// By way: {"int8": 117.2, "bf16": 250.1}
Json by_way(const MapRow& row, double MapCell::*figure) {
  Json json = Json::object();
  for (const MapCell& cell : row.cells) json[cell.way] = cell.*figure;
  return json;
}

double tops_of(const GemmShape& shape, double us) {
  return us > 0 ? 2e-6 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                      static_cast<double>(shape.k) / us
                : 0;
}

Json to_json(const MapRow& row) {
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
          {"load_us", by_way(row, &MapCell::load_us)},
          {"cold_us", by_way(row, &MapCell::cold_us)},
          {"tops", tops},
          {"ratio", by_way(row, &MapCell::ratio)},
          {"error", by_way(row, &MapCell::error)},
          {"fastest", row.fastest},
          {"path", row.path}};
}

Json to_json(const MapStep& step) {
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

Json to_json(const MapMemory& memory) {
  return {{"way", memory.way},
          {"networks", memory.alone ? "first" : "all"},
          {"pixels", memory.pixels},
          {"weight_bytes", memory.weight_bytes},
          {"work_bytes", memory.work_bytes},
          {"measured", memory.measured},
          {"fits_gb", memory.fits}};
}

template <class Entry>
Json list_json(const std::vector<Entry>& entries) {
  Json list = Json::array();
  for (const Entry& entry : entries) list.push_back(to_json(entry));
  return list;
}

Json to_json(const DeploymentMap& map) {
  Json ways = Json::object();
  for (const MapWay& way : map.ways) ways[way.name] = way.how;
  return {{"device", map.device},
          {"date", map.date},
          {"commit", map.commit},
          {"threads", map.threads},
          {"plan_file", known(map.plan_file)},
          {"kept_rows", map.kept_rows},
          {"text_tokens", map.text_tokens},
          {"layers", map.layers > 0 ? Json(map.layers) : Json()},
          {"timed_layers", map.timed_layers > 0 ? Json(map.timed_layers) : Json()},
          {"ways", ways},
          {"rows", list_json(map.rows)},
          {"steps", list_json(map.steps)},
          {"memory", list_json(map.memory)}};
}

std::string linear_table(const DeploymentMap& map) {
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

std::string step_text(const DeploymentMap& map) {
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

std::string memory_text(const DeploymentMap& map) {
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

std::string kept_text(const DeploymentMap& map) {
  if (map.plan_file.empty()) {
    return "This device has no plan file: --path auto uses INT8 for everything.";
  }
  if (map.kept_rows == 0) return "Nothing was stored: the kernels were not measured (--tune).";
  return fmt::format("Plan file, which --path auto reads: {}", printable(map.plan_file));
}

std::string to_text(const DeploymentMap& map) {
  std::string hows;
  for (const MapWay& way : map.ways) hows += fmt::format("  {:<5} {}\n", way.name, way.how);
  return fmt::format(
      "{}\nmeasured {}, commit {}\n\n{}\nUnder load, including the quantization of the "
      "activations; * is the fastest, path the\nfaster of INT8 and bf16.\n{}{}{}{}\n",
      map.device, map.date, map.commit, linear_table(map), hows, step_text(map), memory_text(map),
      kept_text(map));
}

void map_here(const CommonFlags& flags, MapArguments arguments) {
  MapRequest& request = arguments.request;
  request.device = flags.device;
  request.threads = flags.threads;
  if (arguments.layers >= 0) request.layers = arguments.layers;
  if (!request.shapes.empty()) shapes_from(request.shapes);  // a wrong list is wrong usage
  std::vector<std::string> outputs;
  for (const std::string& path : {arguments.svg, arguments.page}) {
    if (!path.empty()) outputs.push_back(path);
  }
  check_outputs(flags, outputs);
  const DeploymentMap map = [&] {
    PhaseReports progress(flags, "map");
    return map_device(request, std::ref(progress));
  }();
  if (!arguments.svg.empty()) write_text_file(arguments.svg, heat_map_svg(heat_map_of(map)));
  if (!arguments.page.empty()) write_text_file(arguments.page, map_page(map));
  show(flags, to_text(map), to_json(map));
}

void predict_there(const CommonFlags& flags, const MapArguments& arguments) {
  show_prediction(flags, {.cards = arguments.cards,
                          .shapes = arguments.request.shapes,
                          .text_tokens = static_cast<int>(arguments.request.text_tokens),
                          .svg = arguments.svg,
                          .check = arguments.check});
}

}  // namespace

void add_map(CLI::App& program, CommonFlags& flags) {
  CLI::App* command = program.add_subcommand(
      "map", "Measure which path is fastest on a device: INT8, bf16, FP8, NF4 or fake INT8");
  add_device_flags(*command, flags);
  add_output_flags(*command, flags);
  const auto arguments = std::make_shared<MapArguments>();
  MapRequest& request = arguments->request;
  command
      ->add_option("--shapes", request.shapes,
                   "m,n,k or a model's linears such as " + model_shapes("768,1024") +
                       ", several separated by ; (default: " + model_shapes("768,1024,2048") +
                       " on a GPU, fewer tokens elsewhere)")
      ->type_name("SHAPES");
  add_whole_number(*command, "--text-tokens", request.text_tokens, 0, 2048,
                   "Text tokens in a step");
  command->add_flag("--with-text", request.with_text,
                    "Also measure the linears with image and text tokens together");
  add_seconds(*command, "--seconds", request.seconds, 60,
              "Time for each path of a linear, run without pause");
  command
      ->add_option(
          "--layers", arguments->layers,
          "Layers of the networks whose steps are timed; 0: no steps (default: 5 on a GPU, else 0)")
      ->check(CLI::Range(int64_t{0}, int64_t{1000}))
      ->type_name("COUNT");
  add_choice(*command, "--tune", request.tuning,
             "Measure the kernels first: never, if the plan file lacks a shape, or always");
  command->add_option("--svg", arguments->svg, "Draw the linears as a heat map")->type_name("FILE");
  command->add_option("--html", arguments->page, "Write everything as one HTML page")
      ->type_name("FILE");
  CLI::Option* predict =
      command
          ->add_option("--predict", arguments->cards,
                       "Measure nothing; predict other cards instead: rtx3090,rtx4090; or all")
          ->type_name("CARDS")
          ->delimiter(',')
          ->allow_extra_args(false);
  for (const char* measured :
       {"--device", "--html", "--layers", "--seconds", "--threads", "--tune", "--with-text"}) {
    predict->excludes(command->get_option(measured));
  }
  command
      ->add_flag("--check", arguments->check,
                 "Also predict the measured figures, each from a fit without it")
      ->needs(predict);
  set_examples(*command,
               {"octet map --predict rtx3090,rtx4090,h100 --svg cards.svg",
                "octet map --device cuda --svg map.svg --html map.html",
                "octet map --shapes " + model_shapes("1024") + " --with-text --json map.json"});
  command->callback([&flags, arguments] {
    arguments->cards.empty() ? map_here(flags, *arguments) : predict_there(flags, *arguments);
  });
}

}  // namespace octet::cli
