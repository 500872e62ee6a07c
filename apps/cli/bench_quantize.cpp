// octet bench quantize
#include <fmt/format.h>

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

using Json = nlohmann::ordered_json;

Json to_json(const QuantizeBench& bench) {
  Json rows = Json::array();
  for (const auto& row : bench.rows) {
    rows.push_back({{"rows", row.rows},
                    {"k", row.k},
                    {"transform", row.transform},
                    {"us", row.us},
                    {"bytes", row.bytes},
                    {"gb_per_s", row.gb_per_s},
                    {"copy_us", row.copy_us},
                    {"copy_gb_per_s", row.copy_gb_per_s},
                    {"share_of_copy", row.share_of_copy}});
    add_steadiness(rows.back(), row.steadiness);
  }
  return {{"device", bench.device}, {"date", bench.date},       {"commit", bench.commit},
          {"dtype", bench.dtype},   {"threads", bench.threads}, {"rows", rows}};
}

std::string to_text(const QuantizeBench& bench) {
  Table table({"transform", "rows", "k", "us", "GB/s", "copy us", "copy GB/s", "of the copy"}, 1);
  for (const auto& row : bench.rows) {
    const auto figure = [&row](const std::string& text) { return marked(text, row.steadiness); };
    table.add({row.transform, std::to_string(row.rows), std::to_string(row.k),
               figure(short_number(row.us)), figure(short_number(row.gb_per_s)),
               figure(short_number(row.copy_us)), figure(short_number(row.copy_gb_per_s)),
               figure(short_percent(row.share_of_copy))});
  }
  return fmt::format(
      "{}\nrows of {} to int8\n\n{}\nMedians, interleaved. GB/s: bytes read and written. Copy: one "
      "that reads and writes as many.\n{}",
      bench.device, bench.dtype, table.text(), unreliable_line(bench.rows));
}

}  // namespace

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
