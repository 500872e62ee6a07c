// Times of whole pictures, stage by stage.
#include <fmt/format.h>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/json.h"
#include "report/text.h"

namespace octet {

using namespace report;

OCTET_JSON(E2eTimes, text_s, prepare_s, denoise_s, decode_s, whole_s)

std::string to_json(const E2eBench& bench) try {
  return document(
      "octet.bench.e2e/1",
      joined({OCTET_FIELDS(bench, device, date, commit), OCTET_KNOWN_FIELDS(bench, model),
              field("dtype", bench.activations), OCTET_FIELDS(bench, linears, attention),
              OCTET_FIELDS(bench.size, width, height),
              OCTET_FIELDS(bench, steps, text_tokens, places), bench.median,
              field("ms_per_step", bench.ms_per_step()), bench.steadiness,
              field("joules_per_picture", known(bench.joules_per_picture())),
              OCTET_FIELDS(bench, power, peak_bytes, pictures)}));
} catch (...) {
  rethrow_as_error();
}

std::string to_text(const E2eBench& bench) try {
  Table table({"stage", "seconds", "share"}, 1);
  const E2eTimes& median = bench.median;
  const auto add = [&](const char* stage, double seconds) {
    table.add({stage, short_number(seconds), short_percent(seconds / median.whole_s)});
  };
  add("text encoder", median.text_s);
  add("preparing", median.prepare_s);
  add("denoising", median.denoise_s);
  add("decoding", median.decode_s);
  table.add({"picture", marked(short_number(median.whole_s), bench.steadiness), ""});
  const std::string energy =
      bench.power.is_known() ? fmt::format(", {:.0f} J", bench.joules_per_picture()) : "";
  return fmt::format(
      "{}\n{} x {} pixels, {} steps, {} text tokens, {}; linears {}, activations {}\n{}\n\n"
      "{}\nMedians of {} after one that is not counted; {} ms per step{}; at most {} in "
      "use.\n{}{}",
      bench.device, bench.size.width, bench.size.height, bench.steps, bench.text_tokens,
      bench.model.empty() ? "random weights" : bench.model, word_of(bench.linears),
      word_of(bench.activations), bench.places, table.text(),
      counted(bench.pictures.size(), "picture"), short_number(bench.ms_per_step()), energy,
      human_bytes(bench.peak_bytes), power_line(bench.power),
      bench.steadiness.reliable ? "" : kUnreliableLine);
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
