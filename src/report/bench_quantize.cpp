// Times of quantizing activations.
#include <fmt/format.h>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/json.h"
#include "report/text.h"

namespace octet {
namespace {

using namespace report;

Json json_of(const QuantizeBenchRow& row) {
  Json json = {{"rows", row.rows},
               {"k", row.k},
               {"transform", row.transform},
               {"us", row.us},
               {"bytes", row.bytes},
               {"gb_per_s", row.gb_per_s},
               {"copy_us", row.copy_us},
               {"copy_gb_per_s", row.copy_gb_per_s},
               {"share_of_copy", row.share_of_copy}};
  add_steadiness(json, row.steadiness);
  return json;
}

}  // namespace

std::string to_json(const QuantizeBench& bench) try {
  return document("octet.bench.quantize/1", {{"device", bench.device},
                                             {"date", bench.date},
                                             {"commit", bench.commit},
                                             {"dtype", bench.dtype},
                                             {"threads", bench.threads},
                                             {"rows", list_of(bench.rows, json_of)}});
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const QuantizeBench& bench) try {
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
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
