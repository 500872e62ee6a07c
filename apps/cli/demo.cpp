// octet demo
#include "octet/demo.h"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>

#include "commands.h"
#include "help_page.h"
#include "model_flags.h"
#include "octet/text.h"
#include "output.h"
#include "output_files.h"
#include "picture_flags.h"
#include "picture_paths.h"
#include "rendering.h"
#include "stop_signal.h"

namespace octet::cli {
namespace {

struct DemoArguments {
  std::string out = "demo.png";
  SeedArgument seed{.seed = 7};
  ModelOptions memory;  // no more of a model than this is asked for
};

void render_demo(const CommonFlags& flags, const DemoArguments& arguments) {
  check_outputs(flags, {arguments.out});
  GenerateRequest request = [] {
    const StopSignal whole;  // a signal meanwhile stops the rendering, and no folder stays behind
    return demo_request();
  }();
  request.model.device = flags.device;
  request.model.threads = flags.threads;
  request.model.keep = arguments.memory.keep;
  request.model.max_memory = arguments.memory.max_memory;
  request.picture.seed = seed_from(arguments.seed, flags);
  const RenderReport report = [&] {
    RenderingProgress progress(flags);
    RenderCallbacks callbacks;
    callbacks.progress = std::ref(progress);
    callbacks.picture = [&](const Picture& picture) { write_picture(arguments.out, picture); };
    return generate(request, callbacks);
  }();
  nlohmann::ordered_json json = request_json(request, report);
  json.update(report_json(report));
  json["pictures"] = {arguments.out};
  const std::string text = fmt::format(
      "{}\n{} ({}x{}, seed {}), from the model of random weights in {}\n\n"
      "With the weights of Ideogram 4: octet generate --model FOLDER --caption FILE -o out.png\n",
      report_text(report), printable(arguments.out), report.width, report.height,
      request.picture.seed, printable(request.model.model));
  show(flags, flags.quiet ? printable(arguments.out) + "\n" : text, json);
}

}  // namespace

void add_demo(CLI::App& program, CommonFlags& flags) {
  CLI::App* command =
      program.add_subcommand("demo", "Render a picture with a small model of random weights");
  add_device_flags(*command, flags);
  add_output_flags(*command, flags);
  const auto arguments = std::make_shared<DemoArguments>();
  add_picture_path(*command, arguments->out, "PNG file");
  add_seed(*command, arguments->seed, "Seed of the noise, or random");
  add_memory_flags(*command, arguments->memory);
  set_examples(*command, {"octet demo", "octet demo --seed random -o shapes.png --device cpu"});
  command->callback([&flags, arguments] { render_demo(flags, *arguments); });
}

}  // namespace octet::cli
