// octet::bench_quantize: row quantization compared with a copy of as many bytes.
#include <set>
#include <vector>

#include "backend/gemm.h"
#include "backend/host_backend.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/utc.h"
#include "devices/select.h"
#include "formats/boundary.h"
#include "measure/bench/linear_case.h"
#include "measure/timing.h"
#include "models/block_shape.h"
#include "octet/tools/bench.h"
#include "octet/version.h"

namespace octet {
namespace {

constexpr DType kDType = DType::bf16;
constexpr int64_t kGroup = 256;  // of the rotation: ConvRot's own

struct NamedTransform {
  std::string name;
  ActivationTransform transform;
  double extra_bytes = 0;  // read once per call besides the rows
};

Buffer smooth_vector(Backend& backend, int64_t k) {
  std::vector<float> host(static_cast<size_t>(k));
  for (size_t j = 0; j < host.size(); ++j) host[j] = 0.5f + static_cast<float>(j % 16) / 16.0f;
  Buffer device = backend.allocate(host.size() * sizeof(float));
  backend.copy_to_device(device.data(), reinterpret_cast<const std::byte*>(host.data()),
                         device.bytes());
  return device;
}

std::vector<QuantizeBenchRow> measure_k(Backend& backend, int64_t rows, int64_t k, double seconds) {
  // The rows as they are made and as they are kept, int8, and the two buffers of the copy; for a
  // GPU only the rows as they are made.
  const double bytes_per_element = keeps_data_on_host(backend) ? 8 : 2;
  check_free_memory(fmt::format("bench: rows={} k={}", rows, k),
                    bytes_per_element * static_cast<double>(rows) * static_cast<double>(k));
  const Buffer input = measure::random_matrix(backend, kDType, rows, k, measure::activation);
  const Buffer values = backend.allocate(bytes_of(DType::i8, {rows, k}));
  const Buffer scales = backend.allocate(bytes_of(DType::f32, {rows}));
  const Buffer smooth = smooth_vector(backend, k);
  const QTensor out{values.view(DType::i8, {rows, k}), scales.view(DType::f32, {rows})};

  std::vector<NamedTransform> transforms = {
      {"none", {}, 0},
      {"smooth",
       {.kind = Transform::smooth, .smooth = smooth.view(DType::f32, {k})},
       static_cast<double>(smooth.bytes())},
  };
  if (k % kGroup == 0) {
    transforms.push_back(
        {fmt::format("rotate {}", kGroup), {.kind = Transform::rotate, .group = kGroup}, 0});
  }

  // A copy reads and writes each byte: half of what a quantization moves is as much work. The few
  // bytes of the smoothing vector make no difference to it.
  const size_t moved = input.bytes() + values.bytes() + scales.bytes();
  const Buffer from = backend.allocate(moved / 2);
  const Buffer to = backend.allocate(moved / 2);
  const std::vector<std::byte> noise(from.bytes(), std::byte{0x5a});
  backend.copy_to_device(from.data(), noise.data(), noise.size());

  std::vector<std::function<void()>> works = {
      [&] { backend.copy(to.data(), from.data(), from.bytes()); }};
  for (const NamedTransform& named : transforms) {
    works.emplace_back([&, transform = named.transform] {
      backend.quantize_rows(input.view(kDType, {rows, k}), transform, out);
    });
  }
  const auto times = measure::time_in_turns(backend, works, seconds);

  std::vector<QuantizeBenchRow> result;
  for (size_t i = 0; i < transforms.size(); ++i) {
    QuantizeBenchRow row;
    row.rows = rows;
    row.k = k;
    row.transform = transforms[i].name;
    row.us = times[i + 1].median;
    row.bytes = static_cast<double>(moved) + transforms[i].extra_bytes;
    row.copy_us = times[0].median;
    row.steadiness = measure::steadiness_of({times[0], times[i + 1]});
    row.gb_per_s = row.us > 0 ? row.bytes / row.us * 1e-3 : 0;
    row.copy_gb_per_s = row.copy_us > 0 ? static_cast<double>(moved) / row.copy_us * 1e-3 : 0;
    row.share_of_copy = row.copy_gb_per_s > 0 ? row.gb_per_s / row.copy_gb_per_s : 0;
    result.push_back(std::move(row));
  }
  return result;
}

}  // namespace

QuantizeBench bench_quantize(const QuantizeBenchRequest& request,
                             const std::function<void(int, int)>& progress) try {
  constexpr int64_t kMostRows = int64_t{1} << 24;
  check(request.seconds >= 0 && request.seconds <= 3600,
        "bench: {} seconds per k, expected 0 to 3600", request.seconds);
  check(request.rows > 0 && request.rows <= kMostRows, "bench: {} rows, expected 1 to {}",
        request.rows, kMostRows);
  std::set<int64_t> usual;
  for (const auto& spec : models::block_shape(*models::families().front()).linears) {
    usual.insert(spec.k);
  }
  const std::vector<int64_t> ks =
      request.ks.empty() ? std::vector<int64_t>(usual.begin(), usual.end()) : request.ks;
  for (const int64_t k : ks) {
    check(k > 0 && k <= kMaxK, "bench: k={}, expected 1 to {}", k, kMaxK);
  }
  const auto backend = select_backend({.device = request.device, .threads = request.threads});
  const int total = static_cast<int>(ks.size());
  if (progress) progress(0, total);
  QuantizeBench bench;
  bench.device = backend->description();
  bench.date = utc_now();
  bench.commit = commit();
  bench.dtype = "bf16";
  bench.threads = backend->threads();
  int done = 0;
  for (const int64_t k : ks) {
    for (auto& row : measure_k(*backend, request.rows, k, request.seconds)) {
      bench.rows.push_back(std::move(row));
    }
    if (progress) progress(++done, total);
  }
  return bench;
} catch (...) {
  rethrow_as_error();
}

}  // namespace octet
