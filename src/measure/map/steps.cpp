// Steps and pictures of a map: measured where a path is Octet's own, computed from the measured
// linears where it is not.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "base/log.h"
#include "measure/bench/problems.h"
#include "measure/map/map.h"
#include "models/block_shape.h"

namespace octet::measure {
namespace {

// Parts of a step's time, or of the difference of two.
struct StepParts {
  double ms = 0, linears = 0, attention = 0;
};

StepParts parts_of(const StepBench& bench) {
  StepParts parts{.ms = bench.ms()};
  for (const StepBranch& branch : bench.branches) {
    // Ops were watched in passes of their own, a little slower than those that count.
    const double scale = branch.watched_ms > 0 ? branch.ms / branch.watched_ms : 1;
    for (const StepOp& op : branch.ops) {
      if (op.op == "gemm" || op.op == "matmul" || op.op == "quantize") {
        parts.linears += scale * op.ms;
      } else if (op.op == "attention") {
        parts.attention += scale * op.ms;
      }
    }
  }
  return parts;
}

// A step of `layers` by those of few: `many` of so many layers, `one` of a single one. The first
// and the last layer may differ from those between them; the difference of the two has neither.
StepParts counted_up(const StepParts& one, const StepParts& many, int64_t timed, int64_t layers) {
  const double more = static_cast<double>(layers - timed) / static_cast<double>(timed - 1);
  const auto grown = [more](double from, double to) { return to + more * (to - from); };
  return {grown(one.ms, many.ms), std::max(0.0, grown(one.linears, many.linears)),
          std::max(0.0, grown(one.attention, many.attention))};
}

const char* way_word(Linears linears) {
  return linears == Linears::int8 ? measure::kInt8 : measure::kBf16;
}

class StepMapper {
 public:
  StepMapper(const models::Family& family, const MapRequest& request, int64_t layers,
             const std::vector<MapRow>& rows, const RunStep& run)
      : family_(family),
        request_(request),
        layers_(layers),
        timed_(std::min(request.layers.value_or(layers), layers)),
        rows_(rows),
        run_(run),
        block_(models::block_shape(family)) {}

  // Networks with the same weights one after the other: making them takes longer than a step.
  void measure(const std::vector<int>& sizes) {
    for (const Linears linears : {Linears::floating, Linears::int8}) {
      for (const int64_t layers : {timed_, int64_t{1}}) {
        if (layers != timed_ && timed_ == layers_) continue;  // nothing to count up
        for (const int pixels : sizes) {
          for (const AttentionMode attention : kAttentionModes) {
            // In bf16 all else is, too: as others run it.
            if (linears == Linears::floating && attention != AttentionMode::floating) continue;
            // Useful only together with the one of more layers.
            if (layers != timed_ && !bench({pixels, linears, attention, timed_})) continue;
            run({pixels, linears, attention, layers});
          }
        }
      }
    }
  }

  void add(int pixels, MapSteps& into) const {
    const auto bf16 = measured(pixels, Linears::floating, AttentionMode::floating, into);
    for (const AttentionMode attention : kAttentionModes) {
      auto int8 = measured(pixels, Linears::int8, attention, into);
      if (!int8) continue;
      if (bf16 && attention == AttentionMode::floating) {
        int8->computed_ms = computed(*bf16, measure::kInt8).value_or(0);
      }
      into.steps.push_back(*int8);
    }
    if (!bf16) return;
    into.steps.push_back(*bf16);
    for (const char* way : {measure::kFp8, measure::kNf4, measure::kFakeInt8}) {
      const auto ms = computed(*bf16, way);
      if (!ms) continue;
      MapStep& step = into.steps.emplace_back();
      step.pixels = pixels;
      step.way = way;
      step.attention = word_of(AttentionMode::floating);
      step.ms = *ms;
    }
  }

 private:
  static constexpr AttentionMode kAttentionModes[] = {AttentionMode::floating, AttentionMode::int8,
                                                      AttentionMode::int8_full};
  using Key = std::tuple<int, Linears, AttentionMode, int64_t>;  // pixels, ..., layers

  // One that the device cannot run is left out with a log line.
  void run(const Key& key) {
    const auto& [pixels, linears, attention, layers] = key;
    StepBenchRequest asked;
    asked.width = asked.height = pixels;
    asked.text_tokens = request_.text_tokens;
    asked.layers = layers;
    asked.device = request_.device;
    asked.threads = request_.threads;
    asked.linears = linears;
    asked.attention = attention;
    asked.tuning = request_.tuning;
    asked.family = std::string(family_.name);
    // About a second of a GPU, without pause; one where nobody wants to wait.
    constexpr int64_t kTokens = 100'000;
    const int64_t steps =
        std::clamp<int64_t>(kTokens / models::image_tokens(family_, pixels), 5, 50);
    asked.steps = request_.seconds > 0 ? static_cast<int>(steps) : 1;
    try {
      benches_.emplace(key, run_(asked));
    } catch (const Error& error) {
      log::warning("map: the step at {} pixels with {} linears and attention in {} is left out: {}",
                   pixels, way_word(linears), word_of(attention), error.sentence());
    }
  }

  const StepBench* bench(const Key& key) const {
    const auto found = benches_.find(key);
    return found == benches_.end() ? nullptr : &found->second;
  }

  std::optional<MapStep> measured(int pixels, Linears linears, AttentionMode attention,
                                  MapSteps& into) const {
    const StepBench* many = bench({pixels, linears, attention, timed_});
    const StepBench* one = bench({pixels, linears, attention, 1});
    if (many == nullptr || (one == nullptr && timed_ < layers_)) return std::nullopt;
    if (one != nullptr && timed_ < layers_ && many->ms() <= one->ms()) {
      log::warning(
          "map: the step at {} pixels is left out: {} layers took {:.1f} ms and one {:.1f}, "
          "expected less; is the device busy?",
          pixels, timed_, many->ms(), one->ms());
      return std::nullopt;
    }
    if (attention == AttentionMode::floating) {
      MapMemory& work = into.work.emplace_back();
      work.way = way_word(linears);
      work.pixels = pixels;
      work.work_bytes = std::max(many->peak_bytes, many->weight_bytes) - many->weight_bytes;
    }
    StepParts parts = parts_of(*many);
    if (timed_ < layers_) parts = counted_up(parts_of(*one), parts, timed_, layers_);
    MapStep step;
    step.pixels = pixels;
    step.way = way_word(linears);
    step.attention = word_of(attention);
    step.measured = true;
    step.ms = parts.ms;
    step.linears_ms = parts.linears;
    step.attention_ms = parts.attention;
    step.rest_ms = std::max(0.0, parts.ms - parts.linears - parts.attention);
    return step;
  }

  // A measured step in bf16 with the linears of another path instead of its own. All stacks that
  // run these ways have their other ops in common with it.
  std::optional<double> computed(const MapStep& bf16, const std::string& way) const {
    double us = 0;
    for (const bool sees_text : block_.sees_text) {
      const int64_t m =
          models::image_tokens(family_, bf16.pixels) + (sees_text ? request_.text_tokens : 0);
      for (const nn::LinearSpec& spec : block_.linears) {
        const double theirs = linear_us_at(rows_, way, m, spec.n(), spec.k);
        const double ours = linear_us_at(rows_, measure::kBf16, m, spec.n(), spec.k);
        if (theirs <= 0 || ours <= 0) return std::nullopt;
        us += static_cast<double>(layers_) * (theirs - ours);
      }
    }
    return bf16.ms + us * 1e-3;
  }

  const models::Family& family_;
  const MapRequest& request_;
  int64_t layers_, timed_;
  const std::vector<MapRow>& rows_;
  const RunStep& run_;
  models::BlockShape block_;
  std::map<Key, StepBench> benches_;
};

}  // namespace

double linear_us_at(const std::vector<MapRow>& rows, const std::string& way, int64_t m, int64_t n,
                    int64_t k) {
  std::vector<std::pair<double, double>> points;  // m, us
  for (const MapRow& row : rows) {
    const MapCell* cell = row.cell(way);
    if (row.shape.n != n || row.shape.k != k || cell == nullptr) continue;
    points.emplace_back(static_cast<double>(row.shape.m), cell->load_us);
  }
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end(),
                           [](const auto& a, const auto& b) { return a.first == b.first; }),
               points.end());
  const auto at = static_cast<double>(m);
  if (points.empty()) return 0;
  if (points.size() == 1) return points.front().second * at / points.front().first;
  size_t above = 1;  // of two neighbours; the outer two also serve what lies beyond them
  while (above + 1 < points.size() && points[above].first < at) ++above;
  const auto [m0, us0] = points[above - 1];
  const auto [m1, us1] = points[above];
  return std::max(0.0, us0 + (us1 - us0) * (at - m0) / (m1 - m0));
}

MapSteps map_steps(const models::Family& family, const std::vector<int>& sizes,
                   const MapRequest& request, int64_t layers, const std::vector<MapRow>& rows,
                   const RunStep& run) {
  MapSteps steps;
  StepMapper mapper(family, request, layers, rows, run);
  mapper.measure(sizes);
  for (const int pixels : sizes) mapper.add(pixels, steps);
  return steps;
}

}  // namespace octet::measure
