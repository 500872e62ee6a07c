// octet bench quantize

#include <functional>
#include <memory>

#include "commands.h"
#include "help_page.h"
#include "octet/tools/report.h"
#include "output.h"
#include "output_files.h"

namespace octet::cli {
void add_bench_quantize(CLI::App& bench, CommonFlags& flags) {
  CLI::App* quantize =
      bench.add_subcommand("quantize", "Quantizing activations against copying them");
  add_device_flags(*quantize, flags);
  add_output_flags(*quantize, flags);
  const auto request = std::make_shared<QuantizeBenchRequest>();
  const auto rows = std::make_shared<std::vector<int64_t>>(1, request->rows);
  constexpr int64_t kMostRows = int64_t{1} << 24;
  constexpr int64_t kMostK = 132'104;
  constexpr size_t kMostItems = 64;
  constexpr double kMostSeconds = 3600;
  add_whole_numbers(*quantize, "--rows", *rows, 1, kMostRows, "Rows of activations");
  add_whole_numbers(*quantize, "--k", request->ks, kMostItems, kMostK,
                    "Channels of a row (default: those of the model's linears)");
  add_seconds(*quantize, "--seconds", request->seconds, kMostSeconds, "At least this long per k");
  set_examples(*quantize, {"octet bench quantize --rows 4096 --k 2048,8192"});
  quantize->callback([&flags, request, rows] {
    request->rows = rows->front();
    request->device = flags.device;
    request->threads = flags.threads;
    check_outputs(flags);
    const QuantizeBench result = [&] {
      ProgressReports progress(flags, "bench quantize", "sizes");
      return bench_quantize(*request, std::ref(progress));
    }();
    show(flags, to_text(result), to_json(result));
  });
}

}  // namespace octet::cli
