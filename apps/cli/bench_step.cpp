// octet bench step

#include <functional>
#include <memory>

#include "commands.h"
#include "help_page.h"
#include "model_flags.h"
#include "octet/tools/report.h"
#include "output.h"
#include "output_files.h"

namespace octet::cli {
void add_bench_step(CLI::App& bench, CommonFlags& flags) {
  CLI::App* step = bench.add_subcommand(
      "step", "One denoising step of the full-size model, with random weights");
  add_device_flags(*step, flags);
  add_output_flags(*step, flags);
  const auto request = std::make_shared<StepBenchRequest>();
  const auto steps = std::make_shared<int64_t>(request->steps);
  // Weights are always random. Earlier versions wanted this said: accepted, and not shown.
  step->add_flag("--random")->group("");
  add_image_size(*step, request->width, request->height);
  add_whole_number(*step, "--text-tokens", request->text_tokens, 0, 2048, "Tokens of the caption");
  add_whole_number(*step, "--layers", request->layers, 1, request->layers,
                   "Fewer layers, to save memory or time");
  add_choice(*step, "--dtype", request->activations,
             "Type of activations, and of weights that are not INT8");
  add_choice(*step, "--linears", request->linears, "Precision of the large linears",
             {Linears::int8, Linears::floating});
  add_choice(*step, "--attention", request->attention,
             "Precision of attention: int8 for its scores, int8-full for all of it");
  add_require_int8(*step, request->require_int8);
  add_choice(*step, "--tune", request->tuning,
             "Measure the kernels first: never, if the plan file lacks a shape, or always");
  add_whole_number(*step, "--steps", *steps, 1, 1000, "Steps to measure");
  set_examples(*step, {"octet bench step --device cuda --size 1024",
                       "octet bench step --size 256 --layers 2 --steps 3"});
  step->callback([&flags, request, steps] {
    request->device = flags.device;
    request->threads = flags.threads;
    request->steps = static_cast<int>(*steps);
    check_outputs(flags);
    const StepBench result = [&] {
      PhaseReports progress(flags, "bench step");
      return bench_step(*request, std::ref(progress));
    }();
    show(flags, to_text(result), to_json(result));
  });
}

}  // namespace octet::cli
