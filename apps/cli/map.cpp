// octet map
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <sstream>

#include "commands.h"
#include "octet/tools/files.h"
#include "octet/tools/report.h"
#include "output.h"

namespace octet::cli {
namespace {

struct MapArguments {
  MapRequest request;
  int64_t layers = -1;  // not given
  std::string svg, page;
  std::vector<std::string> cards;  // to predict, or "all" among them; none: the device is measured
  std::vector<std::string> card_files;
  bool check = false;  // also predict what was measured, without having seen it, or published
};

void map_here(const CommonFlags& flags, MapArguments arguments) {
  MapRequest& request = arguments.request;
  request.device = flags.device;
  request.threads = flags.threads;
  if (arguments.layers >= 0) request.layers = arguments.layers;
  if (!request.shapes.empty()) shapes_from(request.shapes);  // a wrong list is wrong usage
  check_outputs(flags, {arguments.svg, arguments.page});
  const DeploymentMap map = [&] {
    PhaseReports progress(flags, "map");
    return map_device(request, std::ref(progress));
  }();
  if (!arguments.svg.empty()) write_text_file(arguments.svg, heat_map_svg(heat_map_of(map)));
  if (!arguments.page.empty()) write_text_file(arguments.page, map_page(map));
  show(flags, to_text(map), json_of(flags, map));
}

// "m,n,k" and "<family>@768,1024", several separated by ';'.
void read_shapes(const std::string& text, PredictRequest& request) {
  const std::string model = model_shapes("");
  shapes_from(text);  // a wrong list is wrong usage
  request.sizes.clear();
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ';');) {
    if (!item.starts_with(model)) {
      for (const GemmShape& shape : shapes_from(item)) request.shapes.push_back(shape);
      continue;
    }
    std::istringstream sizes(item.substr(model.size()));
    for (std::string size; std::getline(sizes, size, ',');) {
      request.sizes.push_back(std::stoi(size));
    }
  }
}

// What cards that are not here would do.
void predict_there(const CommonFlags& flags, const MapArguments& arguments) {
  PredictRequest request;
  request.text_tokens = static_cast<int>(arguments.request.text_tokens);
  const auto& names = arguments.cards;
  if (std::find(names.begin(), names.end(), "all") == names.end()) request.cards = names;
  const std::string& shapes = arguments.request.shapes;
  request.card_files = arguments.card_files;
  if (!shapes.empty()) read_shapes(shapes, request);
  if (!arguments.svg.empty() && request.sizes.empty()) {
    throw CLI::ValidationError("--svg draws steps of a model, expected --shapes such as " +
                               model_shapes("1024"));
  }
  check_outputs(flags, {arguments.svg}, arguments.card_files);
  Prediction prediction{.text_tokens = request.text_tokens,
                        .cards = predict_cards(request),
                        .memory = predict_memory(request.sizes),
                        .figures = {},
                        .check = {}};
  if (arguments.check) {
    prediction.figures = check_public_figures();
    prediction.check = leave_one_out();
  }
  if (!arguments.svg.empty()) {
    write_text_file(arguments.svg, heat_map_svg(heat_map_of(prediction.cards)));
  }
  show(flags, to_text(prediction, detail_of(flags)), json_of(flags, prediction));
}

}  // namespace

void add_map(CLI::App& program, CommonFlags& flags) {
  CLI::App& command = add_computing_command(
      program, flags, "map",
      "Measure which path is fastest on a device: INT8, bf16, FP8, NF4 or fake INT8");
  const auto arguments = std::make_shared<MapArguments>();
  MapRequest& request = arguments->request;
  add_value(command, "--shapes", "SHAPES", request.shapes,
            "m,n,k or a model's linears such as " + model_shapes("768,1024") +
                ", several separated by ; (default: " + model_shapes("768,1024,2048") +
                " on a GPU, fewer tokens elsewhere)");
  add_whole_number(command, "--text-tokens", request.text_tokens, 0, 2048, "Text tokens in a step");
  command.add_flag("--with-text", request.with_text,
                   "Also measure the linears with image and text tokens together");
  add_seconds(command, "--seconds", request.seconds, 60,
              "Time for each path of a linear, run without pause");
  add_value(
      command, "--layers", "COUNT", arguments->layers,
      "Layers of the networks whose steps are timed; 0: no steps (default: 5 on a GPU, else 0)")
      ->check(CLI::Range(int64_t{0}, int64_t{1000}));
  add_first_tuning(command, request.tuning);
  add_value(command, "--svg", "FILE", arguments->svg, "Draw the linears as a heat map");
  add_value(command, "--html", "FILE", arguments->page, "Write everything as one HTML page");
  CLI::Option* predict =
      add_value(command, "--predict", "CARDS", arguments->cards,
                "Measure nothing; predict other cards instead: 3090,a100; or all")
          ->delimiter(',')
          ->allow_extra_args(false);
  CLI::Option* card_file =
      add_value(command, "--card-file", "FILE", arguments->card_files,
                "Predict a card that this JSON file describes (docs/deployment-map.md)")
          ->allow_extra_args(false);
  for (const char* measured :
       {"--device", "--html", "--layers", "--seconds", "--threads", "--tune", "--with-text"}) {
    predict->excludes(command.get_option(measured));
    card_file->excludes(command.get_option(measured));
  }
  command.add_flag("--check", arguments->check,
                   "Also predict published figures, and the measured ones, each from a fit without "
                   "it");
  set_examples(command,
               {"octet map --predict rtx3090,rtx4090,h100 --svg cards.svg",
                "octet map --device cuda --svg map.svg --html map.html",
                "octet map --shapes " + model_shapes("1024") + " --with-text --json map.json"});
  command.callback([&flags, arguments] {
    const bool predicts = !arguments->cards.empty() || !arguments->card_files.empty();
    if (arguments->check && !predicts) {
      throw CLI::ValidationError("--check requires --predict or --card-file");
    }
    predicts ? predict_there(flags, *arguments) : map_here(flags, *arguments);
  });
}

}  // namespace octet::cli
