// Kernels that were chosen for a device by measuring.
#include <fmt/format.h>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/json.h"
#include "report/text.h"

namespace octet {

using namespace report;

static void to_json(Json& json, const TuneRow& row) {
  json = joined({OCTET_FIELDS(row, m, n, k, out, fusion, kernel), field("plan", row.source),
                 OCTET_KNOWN_FIELDS(row, date, us), OCTET_FIELDS(row, under_load),
                 OCTET_KNOWN_FIELDS(row, tops, runner_up, runner_up_us, unquantized_us, quantize_us,
                                    faster)});
}

namespace {

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

}  // namespace

std::string to_json(const TuneReport& report) try {
  return document("octet.tune/1",
                  joined({OCTET_FIELDS(report, device, date, commit, mode, has_choice),
                          OCTET_KNOWN_FIELDS(report, plan_file), OCTET_FIELDS(report, rows)}));
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const TuneReport& report) try {
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
      "Plan: tuned was measured now, file by an earlier run. Where measuring failed, shipped was\n"
      "measured on another card of this kind, predicted comes from a model of it, and an estimate\n"
      "guesses the kernel from the shape.\n"
      "Plan file: {}\n",
      report.device, table.text(),
      report.plan_file.empty() ? "none, set OCTET_CACHE_DIR to store the plans"
                               : printable(report.plan_file));
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
