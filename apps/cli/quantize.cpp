// octet quantize

#include <fstream>
#include <memory>
#include <optional>

#include "commands.h"
#include "octet/tools/files.h"
#include "octet/tools/report.h"
#include "output.h"
#include "rendering.h"

namespace octet::cli {
namespace {

struct QuantizeArguments {
  QuantizeRequest request;
  std::string recipe = "convrot", protect = "none";
  std::optional<std::string> calibration_size;  // none: the model's
  std::string report;
  bool unconditional = false;
  bool no_clip = false;
};

void run(const CommonFlags& flags, QuantizeArguments& arguments) {
  QuantizeRequest& request = arguments.request;
  request.device = flags.device;
  request.threads = flags.threads;
  request.recipe = parse_recipe(arguments.recipe);
  request.protect = parse_protection(arguments.protect);
  if (arguments.calibration_size) {
    request.calibration_size = parse_size(*arguments.calibration_size);
  }
  if (arguments.unconditional) request.network = "unconditional";
  request.clip = !arguments.no_clip;
  request.measure = request.measure || !arguments.report.empty();
  if (request.verify && request.out.empty()) {
    throw CLI::ValidationError("--verify needs an output to read back; give one after the source");
  }
  std::vector<std::string> others = request.captions;
  others.insert(others.end(),
                {request.source, request.base, request.out, statistics_path(request)});
  check_outputs(flags, {arguments.report}, others);
  const QuantizeReport report = [&] {
    RenderingProgress progress(flags);
    return quantize(request, [&](const QuantizeStep& step) {
      const std::string of = step.network.empty() ? "" : " " + step.network;
      return progress.show({.title = word_of(step.stage) + of,
                            .unit = step.stage == QuantizeStage::calibrate ? "steps" : "bytes",
                            .done = step.done,
                            .total = step.total});
    });
  }();
  if (!arguments.report.empty()) write_text_file(arguments.report, error_page(report));
  show(flags, to_text(report, request, detail_of(flags)), json_of(flags, report));
}

}  // namespace

void add_quantize(CLI::App& program, CommonFlags& flags) {
  CLI::App& command = add_computing_command(program, flags, "quantize",
                                            "Make an INT8 checkpoint, or measure the error of one");
  const auto arguments = std::make_shared<QuantizeArguments>();
  QuantizeRequest& request = arguments->request;
  add_value(command, "source", "MODEL", request.source,
            "A model's folder in Hugging Face's layout, owner/name of a pulled one, or a "
            "single network, in any dialect")
      ->required();
  add_value(command, "out", "FILE|FOLDER", request.out,
            "A folder, or a .safetensors file for a single network; without it errors are "
            "measured and nothing is written");
  add_value(command, "--base", "MODEL", request.base,
            "A model that supplies what the source lacks");
  command.add_flag("--unconditional", arguments->unconditional,
                   "The single network is the unconditional one");
  add_value(command, "--recipe", "RECIPE", arguments->recipe,
            "rowwise, smoothquant[:alpha] or convrot[:group]")
      ->capture_default_str();
  add_value(command, "--protect", "none|auto:N|NAMES", arguments->protect,
            "Large linears to keep in floating point: none, auto:N (the N with the largest "
            "error in each network), or names with *, separated by commas")
      ->capture_default_str();
  command.add_flag("--no-clip", arguments->no_clip,
                   "Scale weights by their largest value instead of searching for the best scale");
  add_choice(command, "--dialect", request.dialect,
             "Dialect of the output: one file per network, or one for both");
  add_value(command, "--captions", "FILE|FOLDER", request.captions,
            "Calibrate with these: JSON captions, folders of them, or .jsonl files");
  command.add_flag("--any-caption", request.any_caption,
                   "Run captions despite errors, with warnings");
  add_value(command, "--statistics", "FILE", request.statistics,
            "Activation statistics to read; with --captions, to write (default: "
            "OUT.activations.safetensors)");
  add_whole_number(command, "--calibration-steps", request.calibration_steps, 1, 1000,
                   "Calibration steps per caption (default: those of the shortest preset)")
      ->default_str("");
  add_value(command, "--calibration-size", "SIZE", arguments->calibration_size,
            "Size of the calibration images (default: 512x512, or what the model's folder says)");
  add_whole_number(command, "--seed", request.seed, 0, std::numeric_limits<int64_t>::max(),
                   "Seed of the calibration noise");
  add_max_memory(command, request.max_memory, "Memory to use at most, such as 4G or 800M");
  command.add_flag("--measure", request.measure,
                   "Measure the error of each large linear under every recipe");
  add_value(command, "--report", "FILE", arguments->report, "Write these errors as an HTML page");
  command.add_flag("--verify", request.verify,
                   "Read the output back and compare it with the source");
  // Without captions nothing is calibrated.
  for (const char* flag :
       {"--any-caption", "--calibration-steps", "--calibration-size", "--seed"}) {
    command.get_option(flag)->needs("--captions");
  }
  set_group(command, "Calibration",
            {"--captions", "--any-caption", "--statistics", "--calibration-steps",
             "--calibration-size", "--seed"});
  set_group(command, "Checks", {"--measure", "--report", "--verify"});
  set_examples(
      command,
      {"octet quantize ideogram-ai/ideogram-4-fp8 ideogram-4-int8 --recipe convrot --verify",
       "octet quantize ideogram-ai/ideogram-4-fp8 --captions captions/ "
       "--statistics seen.safetensors --report errors.html"});
  command.callback([&flags, arguments] { run(flags, *arguments); });
}

}  // namespace octet::cli
