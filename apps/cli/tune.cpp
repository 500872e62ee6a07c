// octet tune

#include <memory>

#include "commands.h"
#include "octet/tools/report.h"
#include "output.h"

namespace octet::cli {
void add_tune(CLI::App& program, CommonFlags& flags) {
  CLI::App& command = add_computing_command(program, flags, "tune",
                                            "Measure the kernels of a device and store the choice");
  const auto request = std::make_shared<TuneRequest>();
  const auto shapes = std::make_shared<std::string>(model_shapes("768,1024,2048"));
  add_shapes(command, *shapes);
  add_choice(command, "--tune", request->mode,
             "Measure what the plan file lacks, or everything again",
             {Tuning::missing, Tuning::all});
  set_examples(command, {"octet tune --shapes " + model_shapes("1024"), "octet tune --tune all"});
  command.callback([&flags, request, shapes] {
    request->shapes = shapes_from(*shapes);
    measure<ProgressReports>(flags, *request, tune_gemm, "tune", "problems");
  });
}

}  // namespace octet::cli
