// octet demo
#include "octet/demo.h"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>

#include "commands.h"
#include "help_page.h"
#include "octet/text.h"
#include "output.h"
#include "output_files.h"
#include "picture_flags.h"
#include "rendering.h"
#include "stop_signal.h"

namespace octet::cli {
namespace {

struct DemoArguments {
  std::string out = "demo.png";
  SeedArgument seed{.seed = 7};
};

void render_demo(const CommonFlags& flags, const DemoArguments& arguments) {
  check_outputs(flags, {arguments.out});
  GenerateRequest request = [] {
    const StopSignal whole;  // a signal meanwhile stops the rendering, and no folder stays behind
    return demo_request();
  }();
  request.device = flags.device;
  request.threads = flags.threads;
  request.seed = seed_from(arguments.seed, flags);
  const GenerateReport report = [&] {
    RenderingProgress progress(flags);
    return generate(request, std::ref(progress),
                    [&](const Picture& picture) { write_picture(arguments.out, picture); });
  }();
  nlohmann::ordered_json json = request_json(request, report);
  json.update(report_json(report));
  json["pictures"] = {arguments.out};
  const std::string text = fmt::format(
      "{}\n{} ({}, seed {}), from the model of random weights in {}\n\n"
      "With the weights of Ideogram 4: octet generate --model FOLDER --caption FILE -o out.png\n",
      report_text(report), printable(arguments.out), request.size, request.seed,
      printable(request.model));
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
  set_examples(*command, {"octet demo", "octet demo --seed random -o shapes.png --device cpu"});
  command->callback([&flags, arguments] { render_demo(flags, *arguments); });
}

}  // namespace octet::cli
