// octet tune

#include <functional>
#include <memory>

#include "commands.h"
#include "help_page.h"
#include "octet/tools/report.h"
#include "output.h"
#include "output_files.h"

namespace octet::cli {
void add_tune(CLI::App& program, CommonFlags& flags) {
  CLI::App* command =
      program.add_subcommand("tune", "Measure the kernels of a device and store the choice");
  add_device_flags(*command, flags);
  add_output_flags(*command, flags);
  const auto request = std::make_shared<TuneRequest>();
  const auto shapes = std::make_shared<std::string>(model_shapes("768,1024,2048"));
  add_shapes(*command, *shapes);
  add_choice(*command, "--tune", request->mode,
             "Measure what the plan file lacks, or everything again",
             {Tuning::missing, Tuning::all});
  set_examples(*command, {"octet tune --shapes " + model_shapes("1024"), "octet tune --tune all"});
  command->callback([&flags, request, shapes] {
    request->shapes = shapes_from(*shapes);
    request->device = flags.device;
    request->threads = flags.threads;
    check_outputs(flags);
    const TuneReport report = [&] {
      ProgressReports progress(flags, "tune", "problems");
      return tune_gemm(*request, std::ref(progress));
    }();
    show(flags, to_text(report), to_json(report));
  });
}

}  // namespace octet::cli
