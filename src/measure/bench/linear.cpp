// octet::compare_linear: one linear in three ways.
#include <algorithm>
#include <functional>

#include "backend/host_backend.h"
#include "backend/kernel_watch.h"
#include "base/error.h"
#include "devices/select.h"
#include "formats/boundary.h"
#include "measure/bench/linear_case.h"
#include "measure/timing.h"
#include "models/block_shape.h"
#include "octet/tools/bench.h"

namespace octet {
namespace {

// A CPU shows it in seconds with the tokens of a caption; a GPU is filled by those of a picture.
GemmShape shape_for(const Backend& backend) {
  constexpr int64_t kCaptionTokens = 128;
  GemmShape shape = models::usual_linear(*models::families().front());
  if (keeps_data_on_host(backend)) shape.m = kCaptionTokens;
  return shape;
}

struct Way {
  const char* name;
  const char* how;
  std::function<void()> run;
};

}  // namespace

LinearComparison compare_linear(const LinearRequest& request,
                                const std::function<void(int, int)>& progress) try {
  constexpr int kErrorSamples = 4096;
  constexpr int kRounds = 5;
  check(request.seconds >= 0 && request.seconds <= 3600, "bench: {} seconds, expected 0 to 3600",
        request.seconds);
  const auto backend = select_backend({.device = request.device, .threads = request.threads});
  LinearComparison comparison;
  comparison.device = backend->description();
  comparison.shape = request.shape.m > 0 ? request.shape : shape_for(*backend);

  // What is reported: the operands, each way's first run, and the rounds of turns.
  constexpr int kWays = 3;
  constexpr int kTotal = 1 + kWays + kRounds;
  int done = 0;
  const auto report = [&] {
    if (progress) progress(std::min(done++, kTotal), kTotal);
  };
  report();
  measure::LinearCase linear(*backend, comparison.shape, DType::bf16,
                             {.unquantized = true, .fake = true});
  report();
  const KernelWatch watch(*backend);
  const Way ways[kWays] = {
      {"fake INT8", "quantize, dequantize both to bf16, multiply in bf16", [&] { linear.fake(); }},
      {"unquantized", "multiply in bf16", [&] { linear.unquantized(); }},
      {"native INT8", "quantize, multiply int8 x int8 -> int32, scale", [&] { linear.native(); }},
  };
  std::vector<std::function<void()>> works;
  for (const Way& way : ways) {
    way.run();
    comparison.paths.push_back({way.name, way.how, 0, linear.relative_error(kErrorSamples)});
    works.push_back(way.run);
    report();
  }
  const auto times =
      measure::time_in_turns(*backend, works, request.seconds, kRounds, [&] { report(); });
  for (size_t i = 0; i < times.size(); ++i) comparison.paths[i].us = times[i].median;
  comparison.kernel = watch.kernel();
  comparison.steadiness = measure::steadiness_of(times);
  return comparison;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
