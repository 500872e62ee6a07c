// octet bench gemm
#include "octet/bench.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "commands.h"
#include "octet/error.h"
#include "octet/progress.h"
#include "output.h"

namespace octet::cli {
namespace {

nlohmann::ordered_json to_json(const GemmBench& bench) {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& row : bench.rows) {
    nlohmann::ordered_json entry = {{"m", row.shape.m},
                                    {"n", row.shape.n},
                                    {"k", row.shape.k},
                                    {"kernel", row.kernel},
                                    {"us", row.us},
                                    {"tops", row.tops},
                                    {"ceiling_tops", row.ceiling_tops},
                                    {"ceiling_share", row.ceiling_share},
                                    {"quantize_us", row.quantize_us},
                                    {"linear_us", row.linear_us},
                                    {"ratio", nlohmann::ordered_json::object()}};
    if (row.unquantized_us > 0) {
      entry["ratio"] = {{"unquantized", row.ratio_unquantized()},
                        {"fake_int8", row.ratio_fake_int8()}};
    }
    rows.push_back(std::move(entry));
  }
  return {{"device", bench.device}, {"date", bench.date},       {"commit", bench.commit},
          {"dtype", bench.dtype},   {"threads", bench.threads}, {"rows", rows}};
}

std::string to_text(const GemmBench& bench) {
  Table table({"kernel", "m", "n", "k", "gemm us", "GOPS", "of peak", "quantize us", "linear us",
               "vs unquantized", "vs fake INT8"},
              1);
  for (const auto& row : bench.rows) {
    const bool compared = row.unquantized_us > 0;
    table.add({row.kernel, std::to_string(row.shape.m), std::to_string(row.shape.n),
               std::to_string(row.shape.k), fmt::format("{:.0f}", row.us),
               fmt::format("{:.0f}", row.tops * 1e3),
               row.ceiling_share > 0 ? fmt::format("{:.0f} %", row.ceiling_share * 100) : "-",
               fmt::format("{:.0f}", row.quantize_us), fmt::format("{:.0f}", row.linear_us),
               compared ? fmt::format("{:.2f}x", row.ratio_unquantized()) : "-",
               compared ? fmt::format("{:.2f}x", row.ratio_fake_int8()) : "-"});
  }
  return fmt::format(
      "{}\nactivations and outputs {}\n\n{}"
      "\nMedians, all paths in turns. Peak: the multiply instruction on registers alone.\n"
      "Linear: quantizing the activations + gemm. vs: how many times faster the linear is.\n",
      bench.device, bench.dtype, table.text());
}

// A wrong list is wrong usage, not a failure of the work.
std::vector<GemmShape> shapes_from(const std::string& text) {
  try {
    return parse_shapes(text);
  } catch (const Error& error) {
    throw CLI::ValidationError(error.what());
  }
}

}  // namespace

void add_bench(CLI::App& program, CommonFlags& flags) {
  CLI::App* bench = program.add_subcommand("bench", "Measure speed");
  bench->require_subcommand(1);
  CLI::App* gemm = bench->add_subcommand("gemm",
                                         "INT8 linears against the unquantized and the "
                                         "fake INT8 path");
  add_device_flags(*gemm, flags);
  add_output_flags(*gemm, flags);
  const auto request = std::make_shared<GemmBenchRequest>();
  const auto shapes = std::make_shared<std::string>("ideogram4@1024");
  const auto only_native = std::make_shared<bool>(false);
  gemm->add_option("--shapes", *shapes, "m,n,k[;m,n,k...] or ideogram4@<pixels>[,<pixels>...]")
      ->capture_default_str();
  gemm->add_option("--dtype", request->dtype, "Of activations and outputs: bf16 or f32")
      ->capture_default_str()
      ->check([](const std::string& name) {
        if (name == "bf16" || name == "f32") return std::string();
        return fmt::format("'{}' is not a type to measure with, expected bf16 or f32", name);
      });
  constexpr double kMostSeconds = 3600;
  add_seconds(*gemm, "--seconds", request->seconds, kMostSeconds, "At least this long per shape");
  gemm->add_flag("--only-native", *only_native, "Leave out the paths that are compared with");
  gemm->callback([&flags, request, shapes, only_native] {
    request->shapes = shapes_from(*shapes);
    request->device = flags.device;
    request->threads = flags.threads;
    request->compare = !*only_native;
    check_json_target(flags);
    // Begun by the first report, so that a device that is absent gives its sentence alone.
    std::optional<Progress> progress;
    const GemmBench result = bench_gemm(*request, [&](int done, int total) {
      if (flags.quiet) return;
      if (!progress) progress.emplace("bench gemm", total, "shapes");
      progress->update(done);
    });
    progress.reset();
    show(flags, to_text(result), to_json(result));
  });
}

}  // namespace octet::cli
