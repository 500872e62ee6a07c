#include "octet/bench.h"

#include <ctime>

#include "base/error.h"
#include "devices/select.h"
#include "measure/linear_case.h"
#include "measure/timing.h"
#include "octet/version.h"

namespace octet {
namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

DType bench_dtype(const std::string& name) {
  if (name == "bf16") return DType::bf16;
  if (name == "f32") return DType::f32;
  fail("bench: dtype '{}' is not one of bf16, f32", name);
}

GemmBenchRow bench_shape(Backend& backend, const GemmShape& shape, DType dtype, double seconds,
                         bool compare) {
  measure::LinearCase linear(backend, shape, dtype, compare);
  GemmBenchRow row;
  row.shape = shape;
  backend.set_gemm_observer(
      [&row](const GemmProblem&, std::string_view kernel) { row.kernel = kernel; });
  std::vector<double> ceilings;
  std::vector<std::function<void()>> works = {
      [&] { linear.native(); },
      [&] { linear.quantize(); },
      [&] { linear.gemm(); },
      // In turns with the rest: on shared machines the ceiling itself changes from second to
      // second.
      [&] { ceilings.push_back(backend.int8_ceiling()); },
  };
  if (compare) {
    works.emplace_back([&] { linear.unquantized(); });
    works.emplace_back([&] { linear.fake(); });
  }
  const auto times = measure::time_in_turns(backend, works, seconds);
  backend.set_gemm_observer({});
  row.linear_us = times[0];
  row.quantize_us = times[1];
  row.us = times[2];
  if (compare) {
    row.unquantized_us = times[4];
    row.fake_int8_us = times[5];
  }
  const double operations = 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
                            static_cast<double>(shape.k);
  row.tops = operations / row.us * 1e-6;
  row.ceiling_tops = measure::median(ceilings) * 1e-12;
  row.ceiling_share = row.ceiling_tops > 0 ? row.tops / row.ceiling_tops : 0;
  return row;
}

}  // namespace

GemmBench bench_gemm(const GemmBenchRequest& request,
                     const std::function<void(int, int)>& progress) {
  const DType dtype = bench_dtype(request.dtype);
  check(request.seconds >= 0 && request.seconds <= 3600,
        "bench: {} seconds per shape, expected 0 to 3600", request.seconds);
  const auto backend = select_backend({.device = request.device, .threads = request.threads});
  if (progress) progress(0, static_cast<int>(request.shapes.size()));
  GemmBench bench;
  bench.device = backend->description();
  bench.date = utc_now();
  bench.commit = commit();
  bench.dtype = request.dtype;
  bench.threads = backend->threads();
  for (const GemmShape& shape : request.shapes) {
    bench.rows.push_back(bench_shape(*backend, shape, dtype, request.seconds, request.compare));
    if (progress) {
      progress(static_cast<int>(bench.rows.size()), static_cast<int>(request.shapes.size()));
    }
  }
  return bench;
}

LinearDemo demo_linear(const std::string& device, int threads) {
  constexpr int kErrorSamples = 4096;
  constexpr double kSeconds = 2.0;
  const auto backend = select_backend({.device = device, .threads = threads});
  LinearDemo demo;
  demo.device = backend->description();
  demo.shape = {512, 4608, 4608};
  measure::LinearCase linear(*backend, demo.shape, DType::bf16, true);
  backend->set_gemm_observer(
      [&demo](const GemmProblem&, std::string_view kernel) { demo.kernel = kernel; });
  struct Way {
    const char* name;
    const char* how;
    std::function<void()> run;
  };
  const Way ways[] = {
      {"fake INT8", "quantize, dequantize both to bf16, multiply in bf16", [&] { linear.fake(); }},
      {"unquantized", "multiply in bf16", [&] { linear.unquantized(); }},
      {"native INT8", "quantize, multiply int8 x int8 -> int32, scale", [&] { linear.native(); }},
  };
  std::vector<std::function<void()>> works;
  for (const Way& way : ways) {
    way.run();
    demo.paths.push_back({way.name, way.how, 0, linear.relative_error(kErrorSamples)});
    works.push_back(way.run);
  }
  const auto times = measure::time_in_turns(*backend, works, kSeconds);
  for (size_t i = 0; i < times.size(); ++i) demo.paths[i].us = times[i];
  return demo;
}

}  // namespace octet
