// octet bench gemm
#include <fmt/format.h>

#include <functional>
#include <memory>

#include "commands.h"
#include "help_page.h"
#include "octet/tools/report.h"
#include "output.h"
#include "output_files.h"

namespace octet::cli {
void add_bench_gemm(CLI::App& bench, CommonFlags& flags) {
  CLI::App* gemm = bench.add_subcommand("gemm",
                                        "INT8 linears against the unquantized and the "
                                        "fake INT8 path");
  add_device_flags(*gemm, flags);
  add_output_flags(*gemm, flags);
  const auto request = std::make_shared<GemmBenchRequest>();
  const auto shapes = std::make_shared<std::string>(model_shapes("1024"));
  const auto only_native = std::make_shared<bool>(false);
  add_shapes(*gemm, *shapes);
  add_choice(
      *gemm, "--dtype", request->dtype, word_list<Activations>(),
      "Type of activations and outputs; f32 is compared with full-precision F32, also on a GPU");
  add_choice(*gemm, "--path", request->path, {"auto", "int8", "bf16"},
             "Path of the linear; auto is the faster one");
  add_choice(*gemm, "--tune", request->tune,
             "Measure the kernels first: never, if the plan file lacks a shape, or always");
  constexpr double kMostSeconds = 3600;
  add_seconds(*gemm, "--seconds", request->seconds, kMostSeconds, "At least this long per shape");
  CLI::Option* native =
      gemm->add_flag("--only-native", *only_native, "Measure only the native path");
  gemm->add_flag("--peers", request->peers,
                 "Also compare with the INT8 GEMM of the device's own library")
      ->excludes(native);
  set_examples(*gemm, {"octet bench gemm --shapes '4096,5120,5120;1,5120,5120'",
                       "octet bench gemm --device cuda --peers --json gemm.json"});
  gemm->callback([&flags, request, shapes, only_native] {
    request->shapes = shapes_from(*shapes);
    request->device = flags.device;
    request->threads = flags.threads;
    request->compare = !*only_native;
    if (request->path != "int8" && request->dtype != "bf16") {
      throw CLI::ValidationError(fmt::format("--path {} needs --dtype bf16, got --dtype {}",
                                             request->path, request->dtype));
    }
    if (request->peers && request->path == "bf16") {
      throw CLI::ValidationError(
          "--peers compares INT8 GEMMs, expected --path int8 or auto, got --path bf16");
    }
    check_outputs(flags);
    const GemmBench result = [&] {
      ProgressReports progress(flags, "bench gemm", "shapes");
      return bench_gemm(*request, std::ref(progress));
    }();
    show(flags, to_text(result), to_json(result));
  });
}

}  // namespace octet::cli
