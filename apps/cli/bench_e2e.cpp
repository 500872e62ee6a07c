// octet bench e2e

#include <functional>
#include <memory>

#include "commands.h"
#include "help_page.h"
#include "model_flags.h"
#include "octet/tools/report.h"
#include "output.h"
#include "output_files.h"

namespace octet::cli {
void add_bench_e2e(CLI::App& bench, CommonFlags& flags) {
  CLI::App* e2e = bench.add_subcommand(
      "e2e", "Whole pictures, from caption to pixels, by default with random weights");
  add_device_flags(*e2e, flags);
  add_output_flags(*e2e, flags);
  const auto request = std::make_shared<E2eBenchRequest>();
  const auto steps = std::make_shared<int64_t>(request->steps);
  const auto pictures = std::make_shared<int64_t>(request->pictures);
  e2e->add_option("--model", request->model,
                  "A model's folder, instead of random weights of the published sizes")
      ->type_name("FOLDER");
  add_image_size(*e2e, request->size.width, request->size.height);
  add_whole_number(*e2e, "--steps", *steps, 1, 1000, "Steps per picture");
  add_whole_number(*e2e, "--pictures", *pictures, 1, 100,
                   "Pictures to measure, after one that is not counted");
  add_whole_number(*e2e, "--text-tokens", request->text_tokens, 1, 2048,
                   "Tokens of the caption; a --model has its own caption");
  add_whole_number(*e2e, "--layers", request->layers, 1, request->layers,
                   "Fewer layers, for random weights");
  add_choice(*e2e, "--dtype", request->activations,
             "Type of activations, and of weights that are not INT8");
  add_choice(*e2e, "--linears", request->linears, "Precision of the large linears",
             {Linears::int8, Linears::floating});
  add_choice(*e2e, "--attention", request->attention,
             "Precision of attention: int8 for its scores, int8-full for all of it");
  add_require_int8(*e2e, request->require_int8);
  add_choice(*e2e, "--tune", request->tuning,
             "Measure the kernels first: never, if the plan file lacks a shape, or always");
  set_examples(*e2e, {"octet bench e2e --device cuda --size 1024 --steps 48",
                      "octet bench e2e --model ideogram-4-int8 --steps 20 --pictures 5"});
  e2e->callback([&flags, request, steps, pictures] {
    request->device = flags.device;
    request->threads = flags.threads;
    request->steps = static_cast<int>(*steps);
    request->pictures = static_cast<int>(*pictures);
    check_outputs(flags);
    const E2eBench result = [&] {
      PhaseReports progress(flags, "bench e2e");
      return bench_e2e(*request, std::ref(progress));
    }();
    show(flags, to_text(result), to_json(result));
  });
}

}  // namespace octet::cli
