// Times of whole pictures.
#include <fmt/format.h>

#include "formats/boundary.h"
#include "octet/tools/report.h"
#include "report/json.h"
#include "report/text.h"

namespace octet {
namespace {

using namespace report;

Json json_of(const E2eTimes& times) {
  return {{"text_s", times.text_s},
          {"prepare_s", times.prepare_s},
          {"denoise_s", times.denoise_s},
          {"decode_s", times.decode_s},
          {"whole_s", times.whole_s}};
}

}  // namespace

std::string to_json(const E2eBench& bench) try {
  Json json = {{"device", bench.device},
               {"date", bench.date},
               {"commit", bench.commit},
               {"model", known(bench.model)},
               {"dtype", word_of(bench.activations)},
               {"linears", word_of(bench.linears)},
               {"attention", word_of(bench.attention)},
               {"width", bench.size.width},
               {"height", bench.size.height},
               {"steps", bench.steps},
               {"text_tokens", bench.text_tokens},
               {"places", bench.places}};
  json.update(json_of(bench.median));
  json["ms_per_step"] = bench.ms_per_step();
  add_steadiness(json, bench.steadiness);
  json.update({{"joules_per_picture", known(bench.joules_per_picture())},
               {"power", json_of(bench.power)},
               {"peak_bytes", bench.peak_bytes},
               {"pictures", list_of(bench.pictures, json_of)}});
  return document("octet.bench.e2e/1", json);
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
