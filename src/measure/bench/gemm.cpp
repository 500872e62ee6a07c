#include "backend/gemm_tuning.h"
#include "backend/kernel_watch.h"
#include "base/error.h"
#include "base/log.h"
#include "base/utc.h"
#include "devices/select.h"
#include "formats/boundary.h"
#include "measure/bench/linear_case.h"
#include "measure/bench/problems.h"
#include "measure/timing.h"
#include "octet/tools/bench.h"
#include "octet/version.h"

namespace octet {
namespace {

constexpr const char* kAutoPath = "auto";

DType bench_dtype(const std::string& name) {
  if (name == "bf16") return DType::bf16;
  if (name == "f32") return DType::f32;
  fail("bench: dtype '{}' is not one of bf16, f32", name);
}

void check_request(const GemmBenchRequest& request) {
  check(request.seconds >= 0 && request.seconds <= 3600,
        "bench: {} seconds per shape, expected 0 to 3600", request.seconds);
  check(
      request.path == measure::kInt8 || request.path == measure::kBf16 || request.path == kAutoPath,
      "bench: path '{}' is not one of auto, int8, bf16", request.path);
  check(request.path == measure::kInt8 || request.dtype == "bf16",
        "bench: the path {} goes with the dtype bf16, got {}; use the path int8", request.path,
        request.dtype);
  check(
      !request.peers || request.path != measure::kBf16,
      "bench: peers multiply int8, expected the path int8 or auto, got bf16; leave the peers out");
  check(!request.peers || request.compare,
        "bench: peers were requested without a comparison; leave them out or compare");
}

// One backend and everything that does not change from shape to shape.
class GemmBencher {
 public:
  explicit GemmBencher(const GemmBenchRequest& request)
      : request_(request),
        dtype_(bench_dtype(request.dtype)),
        backend_(select_backend(
            {.device = request.device, .threads = request.threads, .tune = request.tune})) {
    if (!request.peers) return;
    peers_ = backend_->tuning().gemm_peers();
    if (peers_.empty()) {
      log::warning(
          "bench: {} has no library with an INT8 GEMM, so there are no peers to compare "
          "with; leave `peers` out",
          backend_->name());
    }
  }

  Backend& backend() { return *backend_; }

  GemmBenchRow measure_shape(const GemmShape& shape);

 private:
  // A time to be measured, and where it goes.
  struct Timed {
    double* us;
    std::function<void()> run;
  };

  std::string faster_measured(measure::LinearCase& linear);
  void time(const std::vector<Timed>& timed, GemmBenchRow& row);

  const GemmBenchRequest& request_;
  DType dtype_;
  std::unique_ptr<Backend> backend_;
  std::vector<GemmPeer> peers_;
};

// Where no plan says which path is faster.
std::string GemmBencher::faster_measured(measure::LinearCase& linear) {
  const auto times = measure::time_in_turns(
      *backend_, {[&] { linear.native(); }, [&] { linear.unquantized(); }}, 0);
  return times[0].median < times[1].median ? measure::kInt8 : measure::kBf16;
}

void GemmBencher::time(const std::vector<Timed>& timed, GemmBenchRow& row) {
  std::vector<std::function<void()>> works;
  for (const Timed& one : timed) works.push_back(one.run);
  std::vector<double> ceilings;
  // In turns with the rest: on shared machines the ceiling itself changes from second to second.
  const auto ask_ceiling = [&] {
    if (row.path == measure::kInt8) ceilings.push_back(backend_->tuning().int8_ceiling());
  };
  auto times =
      measure::time_in_turns(*backend_, works, request_.seconds, /*min_rounds=*/7, ask_ceiling);
  for (size_t i = 0; i < timed.size(); ++i) *timed[i].us = times[i].median;
  times.push_back(measure::timing_of(std::move(ceilings)));
  row.ceiling_tops = times.back().median * 1e-12;
  row.steadiness = measure::steadiness_of(times);
}

GemmBenchRow GemmBencher::measure_shape(const GemmShape& shape) {
  GemmBenchRow row;
  row.shape = shape;
  row.path = request_.path;
  GemmPlan plan;
  // Before the operands are there: measuring kernels takes memory of its own.
  if (row.path != measure::kBf16) {
    plan = backend_->tuning().plan_gemm(measure::plain_problem(shape, dtype_));
  }
  measure::LinearCase linear(*backend_, shape, dtype_,
                             {.unquantized = request_.compare || row.path != measure::kInt8,
                              .fake = request_.compare,
                              .peers = !peers_.empty()});
  if (row.path == kAutoPath) {
    row.path = measure::faster_path(plan);
    if (row.path.empty()) row.path = faster_measured(linear);
  }
  const bool is_int8 = row.path == measure::kInt8;
  row.kernel = is_int8 ? plan.kernel : "bf16 matmul";
  row.plan = is_int8 ? name_of(plan.source) : "";
  std::vector<const GemmPeer*> able;
  for (const GemmPeer& peer : peers_) {
    // It multiplies int8: a comparison with a bf16 product would make no sense.
    if (!is_int8 || !linear.try_peer(peer)) continue;
    able.push_back(&peer);
    row.peers.push_back({peer.name, 0});
  }

  std::vector<Timed> timed;
  if (is_int8) {
    timed.push_back({&row.linear_us, [&] { linear.native(); }});
    timed.push_back({&row.quantize_us, [&] { linear.quantize(); }});
    timed.push_back({&row.us, [&] { linear.gemm(); }});
    if (request_.compare) timed.push_back({&row.unquantized_us, [&] { linear.unquantized(); }});
  } else {
    timed.push_back({&row.us, [&] { linear.unquantized(); }});
  }
  if (request_.compare) timed.push_back({&row.fake_int8_us, [&] { linear.fake(); }});
  for (size_t i = 0; i < able.size(); ++i) {
    timed.push_back({&row.peers[i].us, [&linear, peer = able[i]] { linear.peer(*peer); }});
  }
  const KernelWatch watch(*backend_);
  time(timed, row);
  if (is_int8) row.kernel = watch.kernel();

  if (!is_int8) {
    row.linear_us = row.us;
    if (request_.compare) row.unquantized_us = row.us;
  }
  row.tops = measure::operations_of(shape.m, shape.n, shape.k) / row.us * 1e-6;
  row.ceiling_share = row.ceiling_tops > 0 ? row.tops / row.ceiling_tops : 0;
  if (!measure::is_possible(row.ceiling_share)) row.steadiness.reliable = false;
  return row;
}

}  // namespace

GemmBench bench_gemm(const GemmBenchRequest& request,
                     const std::function<void(int, int)>& progress) try {
  check_request(request);
  GemmBencher bencher(request);
  if (progress) progress(0, static_cast<int>(request.shapes.size()));
  GemmBench bench;
  bench.device = bencher.backend().description();
  bench.date = utc_now();
  bench.commit = commit();
  bench.dtype = request.dtype;
  bench.threads = bencher.backend().threads();
  for (const GemmShape& shape : request.shapes) {
    bench.rows.push_back(bencher.measure_shape(shape));
    if (progress) {
      progress(static_cast<int>(bench.rows.size()), static_cast<int>(request.shapes.size()));
    }
  }
  return bench;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
