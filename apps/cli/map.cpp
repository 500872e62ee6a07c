// octet map

#include <functional>
#include <memory>

#include "commands.h"
#include "help_page.h"
#include "map_predict.h"
#include "model_flags.h"
#include "octet/tools/files.h"
#include "octet/tools/report.h"
#include "output.h"
#include "output_files.h"

namespace octet::cli {
namespace {

struct MapArguments {
  MapRequest request;
  int64_t layers = -1;  // not given
  std::string svg, page;
  std::vector<std::string> cards;  // to predict; none: the device is measured
  bool check = false;
};

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
