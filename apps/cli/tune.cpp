// octet tune
#include "octet/tune.h"

#include <fmt/format.h>

#include <functional>
#include <memory>

#include "commands.h"
#include "output.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

Json known(double us) { return us > 0 ? Json(us) : Json(nullptr); }
Json known(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

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
                    {"tops", known(row.tops)},
                    {"runner_up", known(row.runner_up)},
                    {"runner_up_us", known(row.runner_up_us)},
                    {"unquantized_us", known(row.unquantized_us)},
                    {"quantize_us", known(row.quantize_us)},
                    {"faster", known(row.faster)}});
  }
  return {{"device", report.device},         {"date", report.date},
          {"commit", report.commit},         {"mode", report.mode},
          {"has_choice", report.has_choice}, {"rows", rows}};
}

std::string runner_up_of(const TuneRow& row) {
  if (row.runner_up.empty()) return "-";
  const double behind = row.us > 0 ? (row.runner_up_us / row.us - 1) * 100 : 0;
  return fmt::format("{} (+{:.1f} %)", row.runner_up, behind);
}

std::string to_text(const TuneReport& report) {
  if (!report.has_choice) {
    return fmt::format(
        "{}\n\nThis device has one kernel for everything, {}; there is nothing to tune.\n",
        report.device, report.rows.empty() ? "" : report.rows.front().kernel);
  }
  Table table({"kernel", "fusion", "plan", "faster", "runner-up", "m", "n", "k", "us", "TOPS",
               "bf16 us", "quantize us"},
              5);
  for (const auto& row : report.rows) {
    table.add({row.kernel, row.fusion, row.source, row.faster.empty() ? "-" : row.faster,
               runner_up_of(row), std::to_string(row.m), std::to_string(row.n),
               std::to_string(row.k), short_us(row.us),
               row.tops > 0 ? fmt::format("{:.0f}", row.tops) : "-", short_us(row.unquantized_us),
               short_us(row.quantize_us)});
  }
  return fmt::format(
      "{}\nbf16 outputs\n\n{}"
      "\nFaster: int8 when us + quantize us is less than the bf16 us of the same product.\n"
      "Plan: file is a measurement of an earlier run, estimate one that could not be made.\n",
      report.device, table.text());
}

}  // namespace

void add_tune(CLI::App& program, CommonFlags& flags) {
  CLI::App* command = program.add_subcommand(
      "tune", "Choose the kernels of a device by measuring them, and keep the choice");
  add_device_flags(*command, flags);
  add_output_flags(*command, flags);
  const auto request = std::make_shared<TuneRequest>();
  const auto shapes = std::make_shared<std::string>("ideogram4@768,1024,2048");
  add_shapes(*command, *shapes);
  add_choice(*command, "--tune", request->mode, {"missing", "all"},
             "What is measured, of the plan file");
  command->callback([&flags, request, shapes] {
    request->shapes = shapes_from(*shapes);
    request->device = flags.device;
    request->threads = flags.threads;
    check_json_target(flags);
    const TuneReport report = [&] {
      ProgressReports progress(flags, "tune", "problems");
      return tune_gemm(*request, std::ref(progress));
    }();
    show(flags, to_text(report), to_json(report));
  });
}

}  // namespace octet::cli
