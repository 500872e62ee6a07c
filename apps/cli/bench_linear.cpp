// octet bench linear
#include <fmt/format.h>

#include <algorithm>

#include "commands.h"
#include "octet/bench.h"
#include "output.h"

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
  for (const auto& path : comparison.paths) {
    table.add(
        {path.name, bar(path.us / longest), path.how, fmt::format("{:.2f}", path.us * 1e-3),
         &path == &comparison.paths.back() ? "-" : fmt::format("{:.2f}x faster", path.us / native),
         fmt::format("{:.2f} %", path.relative_error * 100)});
  }
  return fmt::format(
      "One linear of a diffusion transformer, {} tokens, {} -> {} channels, on\n{}\n\n{}"
      "\nThe native path ran the kernel {}. Error: against the exact product.\n",
      comparison.shape.m, comparison.shape.k, comparison.shape.n, comparison.device, table.text(),
      comparison.kernel);
}

nlohmann::ordered_json to_json(const LinearComparison& comparison) {
  auto paths = nlohmann::ordered_json::array();
  for (const auto& path : comparison.paths) {
    paths.push_back(
        {{"name", path.name}, {"us", path.us}, {"relative_error", path.relative_error}});
  }
  return {{"device", comparison.device}, {"kernel", comparison.kernel}, {"m", comparison.shape.m},
          {"n", comparison.shape.n},     {"k", comparison.shape.k},     {"paths", paths}};
}

}  // namespace

void add_bench_linear(CLI::App& bench, CommonFlags& flags) {
  CLI::App* command =
      bench.add_subcommand("linear", "One DiT-sized linear: fake INT8, unquantized, native INT8");
  add_device_flags(*command, flags);
  add_output_flags(*command, flags);
  command->callback([&flags] {
    check_json_target(flags);
    const LinearComparison comparison = compare_linear(flags.device, flags.threads);
    show(flags, to_text(comparison), to_json(comparison));
  });
}

}  // namespace octet::cli
