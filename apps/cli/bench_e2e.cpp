// octet bench e2e
#include "octet/tools/bench_e2e.h"

#include <fmt/format.h>

#include <functional>
#include <memory>

#include "commands.h"
#include "help_page.h"
#include "model_flags.h"
#include "output.h"
#include "output_files.h"
#include "power_text.h"
#include "steadiness.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const E2eTimes& times) {
  return {{"text_s", times.text_s},
          {"prepare_s", times.prepare_s},
          {"denoise_s", times.denoise_s},
          {"decode_s", times.decode_s},
          {"whole_s", times.whole_s}};
}

Json to_json(const E2eBench& bench) {
  Json pictures = Json::array();
  for (const E2eTimes& picture : bench.pictures) pictures.push_back(to_json(picture));
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
  json.update(to_json(bench.median));
  json["ms_per_step"] = bench.ms_per_step();
  add_steadiness(json, bench.steadiness);
  json.update({{"joules_per_picture", known(bench.joules_per_picture())},
               {"power", power_json(bench.power)},
               {"peak_bytes", bench.peak_bytes},
               {"pictures", pictures}});
  return json;
}

std::string to_text(const E2eBench& bench) {
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
}

}  // namespace

void add_bench_e2e(CLI::App& bench, CommonFlags& flags) {
  CLI::App* e2e = bench.add_subcommand(
      "e2e", "Whole pictures, from caption to pixels, by default with random weights");
  add_device_flags(*e2e, flags);
  add_output_flags(*e2e, flags);
  const auto request = std::make_shared<E2eBenchRequest>();
  const auto steps = std::make_shared<int64_t>(request->steps);
  const auto pictures = std::make_shared<int64_t>(request->pictures);
  e2e->add_option("--model", request->model,
                  "A model's folder, instead of random weights of the published sizes")
      ->type_name("FOLDER");
  add_image_size(*e2e, request->size.width, request->size.height);
  add_whole_number(*e2e, "--steps", *steps, 1, 1000, "Steps per picture");
  add_whole_number(*e2e, "--pictures", *pictures, 1, 100,
                   "Pictures to measure, after one that is not counted");
  add_whole_number(*e2e, "--text-tokens", request->text_tokens, 1, 2048,
                   "Tokens of the caption; a --model has its own caption");
  add_whole_number(*e2e, "--layers", request->layers, 1, request->layers,
                   "Fewer layers, for random weights");
  add_choice(*e2e, "--dtype", request->activations,
             "Type of activations, and of weights that are not INT8");
  add_choice(*e2e, "--linears", request->linears, "Precision of the large linears",
             {Linears::int8, Linears::floating});
  add_choice(*e2e, "--attention", request->attention,
             "Precision of attention: int8 for its scores, int8-full for all of it");
  add_require_int8(*e2e, request->require_int8);
  add_choice(*e2e, "--tune", request->tuning,
             "Measure the kernels first: never, if the plan file lacks a shape, or always");
  set_examples(*e2e, {"octet bench e2e --device cuda --size 1024 --steps 48",
                      "octet bench e2e --model ideogram-4-int8 --steps 20 --pictures 5"});
  e2e->callback([&flags, request, steps, pictures] {
    request->device = flags.device;
    request->threads = flags.threads;
    request->steps = static_cast<int>(*steps);
    request->pictures = static_cast<int>(*pictures);
    check_outputs(flags);
    const E2eBench result = [&] {
      PhaseReports progress(flags, "bench e2e");
      return bench_e2e(*request, std::ref(progress));
    }();
    show(flags, to_text(result), to_json(result));
  });
}

}  // namespace octet::cli
