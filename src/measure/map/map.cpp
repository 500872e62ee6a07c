#include "octet/tools/map.h"

#include <algorithm>
#include <sstream>

#include "backend/gemm_tuning.h"
#include "backend/host_backend.h"
#include "base/error.h"
#include "base/invalid_request.h"
#include "base/utc.h"
#include "devices/select.h"
#include "formats/boundary.h"
#include "measure/bench/problems.h"
#include "measure/bench/step.h"
#include "measure/map/map.h"
#include "models/block_shape.h"
#include "octet/tools/shapes.h"
#include "octet/version.h"

namespace octet {
namespace {

// Where nobody names shapes: a model's pictures on a GPU, and elsewhere its linears with the tokens
// of a caption.
std::string usual_shapes(bool on_host) {
  if (!on_host) return model_shapes("768,1024,2048");
  constexpr int64_t kCaptionTokens = 128;
  std::string shapes;
  for (const auto& spec : models::block_shape(*models::families().front()).linears) {
    shapes +=
        fmt::format("{}{},{},{}", shapes.empty() ? "" : ";", kCaptionTokens, spec.n(), spec.k);
  }
  return shapes;
}

// What --shapes and its like mean: rows to measure, and the sizes of a family among them.
struct MapPlan {
  std::vector<MapRow> rows;
  const models::Family* family = nullptr;
  std::vector<int> sizes;
};

void add_family_rows(MapPlan& plan, int pixels, int64_t text_tokens) {
  const int64_t tokens = models::image_tokens(*plan.family, pixels) + text_tokens;
  for (const nn::LinearSpec& spec : models::block_shape(*plan.family).linears) {
    MapRow& row = plan.rows.emplace_back();
    row.shape = models::shape_of(spec, tokens);
    row.layer = spec.layer;
    row.pixels = pixels;
    row.text_tokens = text_tokens;
  }
}

void add_size(MapPlan& plan, int pixels, const MapRequest& request) {
  if (std::find(plan.sizes.begin(), plan.sizes.end(), pixels) != plan.sizes.end()) return;
  plan.sizes.push_back(pixels);
  add_family_rows(plan, pixels, 0);
  if (request.with_text && request.text_tokens > 0) {
    add_family_rows(plan, pixels, request.text_tokens);
  }
}

MapPlan plan_of(const std::string& shapes, const MapRequest& request) {
  MapPlan plan;
  parse_shapes(shapes);  // what is wrong is said here
  std::istringstream items(shapes);
  for (std::string item; std::getline(items, item, ';');) {
    const size_t at = item.find('@');
    if (at == std::string::npos) {
      plan.rows.emplace_back().shape = parse_shapes(item).front();
      continue;
    }
    const models::Family& family = models::family_named(item.substr(0, at));
    check(plan.family == nullptr || plan.family == &family,
          "shapes: '{}' names a second model, expected sizes of one", shapes);
    plan.family = &family;
    std::istringstream sizes(item.substr(at + 1));
    for (std::string pixels; std::getline(sizes, pixels, ',');) {
      add_size(plan, std::stoi(pixels), request);
    }
  }
  return plan;
}

void check_map_request(const MapRequest& request) {
  check(request.seconds >= 0 && request.seconds <= 60,
        "map: {} seconds for each path, expected 0 to 60", request.seconds);
  check_value(request.text_tokens >= 0 && request.text_tokens <= 2048, "text_tokens",
              "`text_tokens` is {}, expected 0 to 2048", request.text_tokens);
  check_value(!request.layers || *request.layers == 0 || *request.layers >= 2, "layers",
              "`layers` is {}, expected 0 for no steps, or at least 2: what a layer takes is a "
              "difference",
              request.layers.value_or(0));
}

// Whether the plan file has its times.
bool measure_row(Backend& backend, const measure::MapTiming& timing, MapRow& row,
                 std::vector<MapWay>& ways) {
  const measure::LinearTimes times = measure::measure_ways(backend, row.shape, timing);
  row.kernel = times.plan.kernel;
  row.plan = name_of(times.plan.source);
  for (const measure::WayTimes& way : times.ways) {
    row.cells.push_back({way.way, way.cold_us, way.load_us, way.error, 0});
    const bool is_new = std::none_of(ways.begin(), ways.end(),
                                     [&](const MapWay& each) { return each.name == way.way; });
    if (is_new) ways.push_back({way.way, way.how});
  }
  const double bf16_us = row.cell(measure::kBf16)->load_us;
  for (MapCell& cell : row.cells) cell.ratio = bf16_us / cell.load_us;
  row.fastest = measure::fastest_way(times.ways);
  row.path = measure::own_path(times.ways);
  return times.kept;
}

}  // namespace

const MapCell* MapRow::cell(const std::string& way) const {
  for (const MapCell& each : cells) {
    if (each.way == way) return &each;
  }
  return nullptr;
}

DeploymentMap map_device(const MapRequest& request, const StepProgress& progress) try {
  constexpr int64_t kTimedLayers = 5;
  check_map_request(request);
  DeploymentMap map;
  MapPlan plan;
  bool on_host = false;
  {  // The backend and its memory are gone before steps make their own.
    const auto backend = select_backend(
        {.device = request.device, .threads = request.threads, .tune = request.tuning});
    on_host = keeps_data_on_host(*backend);
    plan = plan_of(request.shapes.empty() ? usual_shapes(on_host) : request.shapes, request);
    map.device = backend->description();
    map.threads = backend->threads();
    map.plan_file = backend->tuning().plan_file();
    const measure::MapTiming timing{.seconds = request.seconds, .rounds = on_host ? 3 : 7};
    const int total = static_cast<int>(plan.rows.size());
    int done = 0;
    if (progress) progress("linears", done, total);
    for (MapRow& row : plan.rows) {
      if (measure_row(*backend, timing, row, map.ways)) ++map.kept_rows;
      if (progress) progress("linears", ++done, total);
    }
  }
  map.rows = std::move(plan.rows);
  map.date = utc_now();
  map.commit = commit();
  map.text_tokens = request.text_tokens;
  if (plan.family == nullptr) return map;
  map.layers = models::block_shape(*plan.family).layers;
  const int64_t timed = request.layers.value_or(on_host ? 0 : kTimedLayers);
  measure::MapSteps steps;
  if (timed > 0) {
    map.timed_layers = std::min(timed, map.layers);
    MapRequest asked_steps = request;
    asked_steps.layers = timed;
    std::function<StepBench(const StepBenchRequest&)> bench;
    StepBenchRequest benched;
    const auto run = [&](const StepBenchRequest& asked) {
      if (!bench || asked.layers != benched.layers || asked.linears != benched.linears) {
        bench = {};  // its weights are given back before others are made
        bench = step_bencher(asked, progress);
        benched = asked;
      }
      return bench(asked);
    };
    steps = measure::map_steps(*plan.family, plan.sizes, asked_steps, map.layers, map.rows, run);
    map.steps = std::move(steps.steps);
  }
  std::vector<std::string> names;
  for (const MapWay& way : map.ways) names.push_back(way.name);
  map.memory =
      measure::map_memory(*plan.family, plan.sizes, names, request.text_tokens, steps.work);
  return map;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
