// octet bench
#include <fmt/format.h>

#include <functional>
#include <memory>

#include "commands.h"
#include "octet/tools/files.h"
#include "octet/tools/report.h"
#include "output.h"

namespace octet::cli {
namespace {

constexpr double kMostSeconds = 3600;

void add_bench_gemm(CLI::App& bench, CommonFlags& flags) {
  CLI::App& gemm = add_computing_command(
      bench, flags, "gemm", "INT8 linears against the unquantized and the fake INT8 path");
  const auto request = std::make_shared<GemmBenchRequest>();
  const auto shapes = std::make_shared<std::string>(model_shapes("1024"));
  const auto only_native = std::make_shared<bool>(false);
  add_shapes(gemm, *shapes);
  add_choice(
      gemm, "--dtype", request->dtype, word_list<Activations>(),
      "Type of activations and outputs; f32 is compared with full-precision F32, also on a GPU");
  add_choice(gemm, "--path", request->path, {"auto", "int8", "bf16"},
             "Path of the linear; auto is the faster one");
  add_first_tuning(gemm, request->tune);
  add_seconds(gemm, "--seconds", request->seconds, kMostSeconds, "At least this long per shape");
  CLI::Option* native =
      gemm.add_flag("--only-native", *only_native, "Measure only the native path");
  gemm.add_flag("--peers", request->peers,
                "Also compare with the INT8 GEMM of the device's own library")
      ->excludes(native);
  set_examples(gemm, {"octet bench gemm --shapes '4096,5120,5120;1,5120,5120'",
                      "octet bench gemm --device cuda --peers --json gemm.json"});
  gemm.callback([&flags, request, shapes, only_native] {
    request->shapes = shapes_from(*shapes);
    request->compare = !*only_native;
    if (request->path != "int8" && request->dtype != "bf16") {
      throw CLI::ValidationError(fmt::format("--path {} needs --dtype bf16, got --dtype {}",
                                             request->path, request->dtype));
    }
    if (request->peers && request->path == "bf16") {
      throw CLI::ValidationError(
          "--peers compares INT8 GEMMs, expected --path int8 or auto, got --path bf16");
    }
    measure<ProgressReports>(flags, *request, bench_gemm, "bench gemm", "shapes");
  });
}

void add_bench_linear(CLI::App& bench, CommonFlags& flags) {
  CLI::App& linear = add_computing_command(
      bench, flags, "linear", "One DiT-sized linear: fake INT8, unquantized, native INT8");
  const auto request = std::make_shared<LinearRequest>();
  const auto shape = std::make_shared<std::string>();
  add_value(linear, "--shape", "m,n,k", *shape,
            "Tokens, output and input channels (default: a linear of the model, with 128 tokens on "
            "a CPU and those of a picture on a GPU)");
  add_seconds(linear, "--seconds", request->seconds, kMostSeconds, "At least this long");
  set_examples(linear, {"octet bench linear", "octet bench linear --shape 512,4096,12800"});
  linear.callback([&flags, request, shape] {
    if (!shape->empty()) request->shape = one_shape_from("--shape", *shape);
    measure<ProgressReports>(flags, *request, compare_linear, "bench linear", "parts");
  });
}

void add_bench_quantize(CLI::App& bench, CommonFlags& flags) {
  CLI::App& quantize = add_computing_command(bench, flags, "quantize",
                                             "Quantizing activations against copying them");
  const auto request = std::make_shared<QuantizeBenchRequest>();
  const auto rows = std::make_shared<std::vector<int64_t>>(1, request->rows);
  constexpr int64_t kMostRows = int64_t{1} << 24;
  constexpr int64_t kMostK = 132'104;
  constexpr size_t kMostItems = 64;
  add_whole_numbers(quantize, "--rows", *rows, 1, kMostRows, "Rows of activations");
  add_whole_numbers(quantize, "--k", request->ks, kMostItems, kMostK,
                    "Channels of a row (default: those of the model's linears)");
  add_seconds(quantize, "--seconds", request->seconds, kMostSeconds, "At least this long per k");
  set_examples(quantize, {"octet bench quantize --rows 4096 --k 2048,8192"});
  quantize.callback([&flags, request, rows] {
    request->rows = rows->front();
    measure<ProgressReports>(flags, *request, bench_quantize, "bench quantize", "sizes");
  });
}

// How a step runs, for the benchmarks of it and of whole pictures.
template <class Request>
void add_step_flags(CLI::App& command, Request& request) {
  add_choice(command, "--dtype", request.activations,
             "Type of activations, and of weights that are not INT8");
  add_choice(command, "--linears", request.linears, "Precision of the large linears",
             {Linears::int8, Linears::floating});
  add_choice(command, "--attention", request.attention,
             "Precision of attention: int8 for its scores, int8-full for all of it");
  add_require_int8(command, request.require_int8);
  add_first_tuning(command, request.tuning);
}

void add_bench_step(CLI::App& bench, CommonFlags& flags) {
  CLI::App& step = add_computing_command(
      bench, flags, "step", "One denoising step of the full-size model, with random weights");
  const auto request = std::make_shared<StepBenchRequest>();
  // Weights are always random. Earlier versions had a flag for it: accepted, but not shown.
  step.add_flag("--random")->group("");
  add_image_size(step, request->width, request->height);
  add_whole_number(step, "--text-tokens", request->text_tokens, 0, 2048, "Tokens of the caption");
  add_whole_number(step, "--layers", request->layers, 1, request->layers,
                   "Fewer layers, to save memory or time");
  add_step_flags(step, *request);
  add_whole_number(step, "--steps", request->steps, 1, 1000, "Steps to measure");
  add_max_memory(step, request->max_memory,
                 "Device memory to use at most, such as 8GB: layers that do not fit come from host "
                 "memory while others run");
  const auto timeline = std::make_shared<std::string>();
  add_value(step, "--timeline", "FILE", *timeline,
            "Draw when layers came and ran in the last step, as SVG")
      ->needs(step.get_option("--max-memory"));
  set_examples(step, {"octet bench step --device cuda --size 1024",
                      "octet bench step --max-memory 8GB --timeline step.svg",
                      "octet bench step --size 256 --layers 2 --steps 3"});
  step.callback([&flags, request, timeline] {
    request->device = flags.device;
    request->threads = flags.threads;
    check_outputs(flags, {*timeline});
    const StepBench bench = [&] {
      PhaseReports progress(flags, "bench step");
      return bench_step(*request, std::ref(progress));
    }();
    show(flags, to_text(bench), json_of(flags, bench));
    if (!timeline->empty()) write_text_file(*timeline, timeline_svg(bench));
  });
}

void add_bench_e2e(CLI::App& bench, CommonFlags& flags) {
  CLI::App& e2e = add_computing_command(
      bench, flags, "e2e",
      "Whole pictures, from caption to pixels, by default with random weights");
  const auto request = std::make_shared<E2eBenchRequest>();
  add_value(e2e, "--model", "FOLDER", request->model,
            "A model's folder, instead of random weights of the published sizes");
  add_image_size(e2e, request->size.width, request->size.height);
  add_whole_number(e2e, "--steps", request->steps, 1, 1000, "Steps per picture");
  add_whole_number(e2e, "--pictures", request->pictures, 1, 100,
                   "Pictures to measure, after one that is not counted");
  add_whole_number(e2e, "--text-tokens", request->text_tokens, 1, 2048,
                   "Tokens of the caption; a --model has its own caption");
  add_whole_number(e2e, "--layers", request->layers, 1, request->layers,
                   "Fewer layers, for random weights");
  add_step_flags(e2e, *request);
  set_examples(e2e, {"octet bench e2e --device cuda --size 1024 --steps 48",
                     "octet bench e2e --model ideogram-4-int8 --steps 20 --pictures 5"});
  e2e.callback(
      [&flags, request] { measure<PhaseReports>(flags, *request, bench_e2e, "bench e2e"); });
}

}  // namespace

void add_bench(CLI::App& program, CommonFlags& flags) {
  CLI::App* bench = program.add_subcommand("bench", "Measure speed");
  bench->require_subcommand(1);
  add_bench_gemm(*bench, flags);
  add_bench_linear(*bench, flags);
  add_bench_quantize(*bench, flags);
  add_bench_step(*bench, flags);
  add_bench_e2e(*bench, flags);
}

}  // namespace octet::cli
