#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>

#include "backend/host_backend.h"
#include "base/error.h"
#include "measure/bench/linear_case.h"
#include "measure/bench/problems.h"
#include "measure/map/map.h"
#include "measure/timing.h"

namespace octet::measure {
namespace {

constexpr int kErrorSamples = 64;
constexpr double kMostRuns = 1e6;  // of a slice, however short a run seemed to be
// Sets of operands that follow each other under load hold more than the last-level cache of any
// GPU: in a model, no linear finds its weight there.
constexpr double kCacheBytes = 160e6;
constexpr int kMostSets = 4;

struct MappedWay {
  std::string name, how;
  double least_error = 0, most_error = 0;
  std::vector<std::function<void()>> runs = {};  // one for each set of operands
};

// The operands of a linear, several times over, and the ways to run them.
class MappedLinear {
 public:
  MappedLinear(Backend& backend, const GemmShape& shape) {
    const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n),
               k = static_cast<double>(shape.k);
    const double int8_bytes = m * k + n * k + 2 * m * n;
    const bool on_host = keeps_data_on_host(backend);
    const int sets =
        on_host ? 1 : std::clamp(static_cast<int>(kCacheBytes / int8_bytes) + 1, 1, kMostSets);
    // Rows of codes err by half a step of their largest value: some percent with large channels.
    constexpr double kInt8Most = 0.2, kBf16Most = 0.02;
    ways_ = {{kInt8, "quantize, multiply int8 x int8 -> int32, scale", 0, kInt8Most},
             {kBf16, "multiply in bf16", 0, kBf16Most}};
    for (int i = 0; i < sets; ++i) {
      cases_.push_back(std::make_unique<LinearCase>(backend, shape, DType::bf16,
                                                    OtherWays{.unquantized = true, .fake = true}));
      LinearCase& linear = *cases_.back();
      ways_[0].runs.push_back([&linear] { linear.native(); });
      ways_[1].runs.push_back([&linear] { linear.unquantized(); });
      for (const LinearPeer& peer : linear.linear_peers()) add_peer(linear, peer);
    }
    MappedWay fake{kFakeInt8, "quantize, dequantize both to bf16, multiply in bf16", 0, kInt8Most};
    for (const auto& linear : cases_) {
      fake.runs.push_back([at = linear.get()] { at->fake(); });
    }
    ways_.push_back(std::move(fake));
  }

  const std::vector<MappedWay>& ways() const { return ways_; }

  double checked_error(const MappedWay& way, const GemmShape& shape) {
    const double error = cases_.front()->relative_error(way.runs.front(), kErrorSamples);
    // Written so that a NaN, an output that was never written, is refused as well.
    check(error >= way.least_error && error <= way.most_error,
          "map: the outputs of {} are off by {:.3g} for m={} n={} k={}, expected {} to {}: this is "
          "another product",
          way.name, error, shape.m, shape.n, shape.k, way.least_error, way.most_error);
    return error;
  }

 private:
  void add_peer(LinearCase& linear, const LinearPeer& peer) {
    auto way = std::find_if(ways_.begin(), ways_.end(),
                            [&](const MappedWay& each) { return each.name == peer.name; });
    if (way == ways_.end()) {
      ways_.push_back({peer.name, peer.how, peer.least_error, peer.most_error});
      way = ways_.end() - 1;
    }
    way->runs.push_back([&linear, peer] { linear.peer(peer); });
  }

  std::vector<std::unique_ptr<LinearCase>> cases_;  // before the ways, which run them
  std::vector<MappedWay> ways_;
};

// Microseconds per run of one way without pause, for about so long.
double slice_us(Backend& backend, const MappedWay& way, double expected_us, double seconds) {
  const auto runs = static_cast<int>(std::clamp(seconds * 1e6 / expected_us, 1.0, kMostRuns));
  const double us = backend.tuning().time_us([&] {
    for (int i = 0; i < runs; ++i) way.runs[static_cast<size_t>(i) % way.runs.size()]();
  });
  return us / runs;
}

void time_under_load(Backend& backend, const std::vector<MappedWay>& ways, double seconds,
                     std::vector<WayTimes>& times) {
  constexpr double kSettling = 0.2;  // of `seconds`, before each half
  const bool many = seconds > 0;
  // To the power limit: whoever ran first would else have the clock of an idle device.
  if (many) slice_us(backend, ways[1], times[1].cold_us, seconds);
  const auto measure = [&](size_t i) {
    if (many) slice_us(backend, ways[i], times[i].cold_us, kSettling * seconds);
    times[i].load_us += slice_us(backend, ways[i], times[i].cold_us, seconds / 2) / 2;
  };
  for (size_t i = 0; i < ways.size(); ++i) measure(i);
  for (size_t i = ways.size(); i-- > 0;) measure(i);
}

const char* reference_name(const std::string& way) {
  if (way == kInt8) return kInt8Linear;
  if (way == kBf16) return kBf16Linear;
  if (way == kFp8) return kFp8Linear;
  return way == kNf4 ? kNf4Linear : kFakeLinear;
}

const WayTimes* faster_of(const WayTimes* best, const WayTimes& way) {
  return best == nullptr || way.load_us < best->load_us ? &way : best;
}

}  // namespace

LinearTimes measure_ways(Backend& backend, const GemmShape& shape, const MapTiming& timing) {
  LinearTimes result;
  GemmTuning& tuning = backend.tuning();
  const GemmProblem problem = plain_problem(shape, DType::bf16);
  result.plan = tuning.plan_gemm(problem);
  MappedLinear linear(backend, shape);
  std::vector<std::function<void()>> works;
  for (const MappedWay& way : linear.ways()) {
    works.push_back(way.runs.front());
    result.ways.push_back(
        {.way = way.name, .how = way.how, .error = linear.checked_error(way, shape)});
  }
  const auto cold = time_in_turns(backend, works, 0, timing.rounds);
  for (size_t i = 0; i < cold.size(); ++i) result.ways[i].cold_us = cold[i].median;
  time_under_load(backend, linear.ways(), timing.seconds, result.ways);
  std::map<std::string, double> references;
  for (const WayTimes& way : result.ways) references[reference_name(way.way)] = way.load_us;
  result.kept = tuning.keep_references(problem, references);
  return result;
}

std::string own_path(const std::vector<WayTimes>& ways) {
  const WayTimes* best = nullptr;
  for (const WayTimes& way : ways) {
    if (way.way == kInt8 || way.way == kBf16) best = faster_of(best, way);
  }
  return best == nullptr ? "" : best->way;
}

std::string fastest_way(const std::vector<WayTimes>& ways) {
  const WayTimes* best = nullptr;
  for (const WayTimes& way : ways) best = faster_of(best, way);
  return best == nullptr ? "" : best->way;
}

}  // namespace octet::measure
