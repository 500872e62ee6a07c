#include "map_predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "octet/tools/files.h"
#include "octet/tools/report.h"
#include "output.h"
#include "output_files.h"

namespace octet::cli {
namespace {

// "<family>@768,1024"
std::vector<int> sizes_from(const std::string& shapes) {
  const std::string model = model_shapes("");
  shapes_from(shapes);  // a wrong list is wrong usage
  if (!shapes.starts_with(model) || shapes.find(';') != shapes.npos) {
    throw CLI::ValidationError(
        fmt::format("--shapes is '{}', expected sizes of the model with --predict, such as {}1024",
                    shapes, model));
  }
  std::vector<int> sizes;
  std::istringstream list(shapes.substr(model.size()));
  for (std::string size; std::getline(list, size, ',');) sizes.push_back(std::stoi(size));
  return sizes;
}

}  // namespace

void show_prediction(const CommonFlags& flags, const PredictArguments& arguments) {
  PredictRequest request;
  const auto& names = arguments.cards;
  if (std::find(names.begin(), names.end(), "all") == names.end()) request.cards = names;
  if (!arguments.shapes.empty()) request.sizes = sizes_from(arguments.shapes);
  request.text_tokens = arguments.text_tokens;
  check_outputs(flags, arguments.svg.empty() ? std::vector<std::string>{}
                                             : std::vector<std::string>{arguments.svg});
  Prediction prediction{.text_tokens = request.text_tokens,
                        .cards = predict_cards(request),
                        .memory = predict_memory(request.sizes),
                        .figures = check_public_figures()};
  if (arguments.check) prediction.check = leave_one_out();
  if (!arguments.svg.empty()) {
    write_text_file(arguments.svg, heat_map_svg(heat_map_of(prediction.cards)));
  }
  show(flags, to_text(prediction), to_json(prediction));
}

}  // namespace octet::cli
