// octet tune
#include "octet/tools/tune.h"

#include <fmt/format.h>

#include <functional>
#include <memory>

#include "commands.h"
#include "help_page.h"
#include "octet/tools/text.h"
#include "output.h"
#include "output_files.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const TuneReport& report) {
  Json rows = Json::array();
  for (const auto& row : report.rows) {
    rows.push_back({{"m", row.m},
                    {"n", row.n},
                    {"k", row.k},
                    {"out", row.out},
                    {"fusion", row.fusion},
                    {"kernel", row.kernel},
                    {"plan", row.source},
                    {"date", known(row.date)},
                    {"us", known(row.us)},
                    {"under_load", row.under_load},
                    {"tops", known(row.tops)},
                    {"runner_up", known(row.runner_up)},
                    {"runner_up_us", known(row.runner_up_us)},
                    {"unquantized_us", known(row.unquantized_us)},
                    {"quantize_us", known(row.quantize_us)},
                    {"faster", known(row.faster)}});
  }
  return {{"device", report.device},
          {"date", report.date},
          {"commit", report.commit},
          {"mode", word_of(report.mode)},
          {"has_choice", report.has_choice},
          {"plan_file", known(report.plan_file)},
          {"rows", rows}};
}

std::string runner_up_of(const TuneRow& row) {
  if (row.runner_up.empty()) return "-";
  const double behind = row.us > 0 ? (row.runner_up_us / row.us - 1) * 100 : 0;
  return fmt::format("{} (+{:.1f} %)", row.runner_up, behind);
}

std::string without_choice(const TuneReport& report) {
  if (report.is_forced) {
    return fmt::format("{}\n\nOCTET_FORCE_KERNEL names the kernel; unset it to tune.\n",
                       report.device);
  }
  return fmt::format(
      "{}\n\nThis device has one kernel for everything, {}; there is nothing to tune.\n",
      report.device, report.rows.empty() ? "" : report.rows.front().kernel);
}

std::string to_text(const TuneReport& report) {
  if (!report.has_choice) return without_choice(report);
  Table table({"kernel", "fusion", "plan", "faster", "runner-up", "m", "n", "k", "us", "TOPS",
               "bf16 us", "quantize us"},
              5);
  for (const auto& row : report.rows) {
    table.add({row.kernel, row.fusion, row.source, row.faster.empty() ? "-" : row.faster,
               runner_up_of(row), std::to_string(row.m), std::to_string(row.n),
               std::to_string(row.k), short_number(row.us), short_number(row.tops),
               short_number(row.unquantized_us), short_number(row.quantize_us)});
  }
  return fmt::format(
      "{}\nbf16 outputs\n\n{}"
      "\nFaster: int8 when us + quantize us is less than the bf16 us of the same product.\n"
      "Times are medians of the final runs between the fastest few: without pause, the GPU\n"
      "at its power limit, or one by one if a run is short or nothing came close.\n"
      "Plan: tuned was measured now, file by an earlier run. An estimate was not measured, "
      "because\n"
      "measuring failed: the kernel is guessed from the shape.\n"
      "Plan file: {}\n",
      report.device, table.text(),
      report.plan_file.empty() ? "none, set OCTET_CACHE_DIR to store the plans"
                               : printable(report.plan_file));
}

}  // namespace

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
