// octet bench linear
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "commands.h"
#include "help_page.h"
#include "octet/tools/bench.h"
#include "output.h"
#include "output_files.h"
#include "steadiness.h"

namespace octet::cli {
namespace {

std::string to_text(const LinearComparison& comparison) {
  double longest = 0;
  double native = 0;
  for (const auto& path : comparison.paths) {
    longest = std::max(longest, path.us);
    native = path.us;  // the last one
  }
  Table table({"path", "", "how", "ms", "native is", "error"}, 3);
  const auto figure = [&](const std::string& text) { return marked(text, comparison.steadiness); };
  for (const auto& path : comparison.paths) {
    table.add({path.name, bar(path.us / longest), path.how,
               figure(fmt::format("{:.2f}", path.us * 1e-3)),
               &path == &comparison.paths.back()
                   ? "-"
                   : figure(fmt::format("{:.2f}x faster", path.us / native)),
               fmt::format("{:.2f} %", path.relative_error * 100)});
  }
  return fmt::format(
      "One linear of a diffusion transformer, {} tokens, {} -> {} channels, on\n{}\n\n{}"
      "\nThe native path ran the kernel {}. Error: against the exact product.\n{}",
      comparison.shape.m, comparison.shape.k, comparison.shape.n, comparison.device, table.text(),
      comparison.kernel, comparison.steadiness.reliable ? "" : kUnreliableLine);
}

nlohmann::ordered_json to_json(const LinearComparison& comparison) {
  auto paths = nlohmann::ordered_json::array();
  for (const auto& path : comparison.paths) {
    paths.push_back(
        {{"name", path.name}, {"us", path.us}, {"relative_error", path.relative_error}});
  }
  nlohmann::ordered_json json = {{"device", comparison.device}, {"kernel", comparison.kernel},
                                 {"m", comparison.shape.m},     {"n", comparison.shape.n},
                                 {"k", comparison.shape.k},     {"paths", paths}};
  add_steadiness(json, comparison.steadiness);
  return json;
}

}  // namespace

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
