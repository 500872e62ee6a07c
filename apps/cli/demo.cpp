// octet demo
#include <fmt/format.h>

#include <algorithm>

#include "commands.h"
#include "octet/bench.h"
#include "output.h"

namespace octet::cli {
namespace {

std::string to_text(const LinearDemo& demo) {
  double longest = 0;
  double native = 0;
  for (const auto& path : demo.paths) {
    longest = std::max(longest, path.us);
    native = path.us;  // the last one
  }
  Table table({"path", "", "how", "ms", "native is", "error"}, 3);
  for (const auto& path : demo.paths) {
    table.add({path.name, bar(path.us / longest), path.how, fmt::format("{:.2f}", path.us * 1e-3),
               &path == &demo.paths.back() ? "-" : fmt::format("{:.2f}x faster", path.us / native),
               fmt::format("{:.2f} %", path.relative_error * 100)});
  }
  return fmt::format(
      "One linear of a diffusion transformer, {} tokens, {} -> {} channels, on\n{}\n\n{}"
      "\nThe native path ran the kernel {}. Error: against the exact product.\n",
      demo.shape.m, demo.shape.k, demo.shape.n, demo.device, table.text(), demo.kernel);
}

nlohmann::ordered_json to_json(const LinearDemo& demo) {
  auto paths = nlohmann::ordered_json::array();
  for (const auto& path : demo.paths) {
    paths.push_back(
        {{"name", path.name}, {"us", path.us}, {"relative_error", path.relative_error}});
  }
  return {{"device", demo.device}, {"kernel", demo.kernel}, {"m", demo.shape.m},
          {"n", demo.shape.n},     {"k", demo.shape.k},     {"paths", paths}};
}

}  // namespace

void add_demo(CLI::App& program, CommonFlags& flags) {
  CLI::App* command =
      program.add_subcommand("demo", "One DiT-sized linear: fake INT8, unquantized, native INT8");
  add_device_flags(*command, flags);
  add_output_flags(*command, flags);
  command->callback([&flags] {
    check_json_target(flags);
    const LinearDemo demo = demo_linear(flags.device, flags.threads);
    show(flags, to_text(demo), to_json(demo));
  });
}

}  // namespace octet::cli
