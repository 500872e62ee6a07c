// octet bench linear

#include <functional>
#include <memory>

#include "commands.h"
#include "help_page.h"
#include "octet/tools/report.h"
#include "output.h"
#include "output_files.h"

namespace octet::cli {

void add_bench_linear(CLI::App& bench, CommonFlags& flags) {
  CLI::App* command =
      bench.add_subcommand("linear", "One DiT-sized linear: fake INT8, unquantized, native INT8");
  add_device_flags(*command, flags);
  add_output_flags(*command, flags);
  const auto request = std::make_shared<LinearRequest>();
  const auto shape = std::make_shared<std::string>();
  command
      ->add_option("--shape", *shape,
                   "Tokens, output and input channels (default: a linear of the model, with 128 "
                   "tokens on a CPU and those of a picture on a GPU)")
      ->type_name("m,n,k");
  constexpr double kMostSeconds = 3600;
  add_seconds(*command, "--seconds", request->seconds, kMostSeconds, "At least this long");
  set_examples(*command, {"octet bench linear", "octet bench linear --shape 512,4096,12800"});
  command->callback([&flags, request, shape] {
    if (!shape->empty()) request->shape = one_shape_from("--shape", *shape);
    request->device = flags.device;
    request->threads = flags.threads;
    check_outputs(flags);
    const LinearComparison comparison = [&] {
      ProgressReports progress(flags, "bench linear", "parts");
      return compare_linear(*request, std::ref(progress));
    }();
    show(flags, to_text(comparison), to_json(comparison));
  });
}

}  // namespace octet::cli
