// What it costs to read a weight in plain rows, where it lies, instead of a packed one: the same
// GEMMs by the kernel that the planner chooses for each, in turns. Random data; cold: each run
// after flushing the L2, medians; load: each without pause for 0.17 s, four times, as often before
// the other as after it, since a GPU that warms up lowers its clock.
//
//   plain_rows [cuda:0] [M...]       default: 512 2048 4096 4608 16384
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "backend/gemm_tuning.h"
#include "devices/select.h"

namespace octet {
namespace {

struct LinearShape {
  const char* name;
  int64_t n, k;
};

constexpr LinearShape kShapes[] = {
    {"qkv", 13824, 4608}, {"o", 4608, 4608}, {"w13", 24576, 4608}, {"w2", 4608, 12288}};
constexpr double kSliceMicroseconds = 165'000;
constexpr int kLoadOrder[] = {0, 1, 1, 0, 1, 0, 0, 1};
constexpr int kRounds = 11;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// About normal, as codes are.
std::vector<int8_t> random_codes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int8_t> codes(count);
  for (int8_t& code : codes) {
    const uint32_t bits = random();
    const int sum = static_cast<int>(bits & 63) + static_cast<int>(bits >> 6 & 63) +
                    static_cast<int>(bits >> 12 & 63) + static_cast<int>(bits >> 18 & 63);
    code = static_cast<int8_t>(std::clamp(sum - 126, -127, 127));
  }
  return codes;
}

Buffer send(Backend& backend, const void* data, size_t bytes) {
  Buffer there = backend.allocate(bytes);
  backend.copy_to_device(there.data(), static_cast<const std::byte*>(data), bytes);
  return there;
}

struct Times {
  double cold = 0, load = 0;
};

void compare(Backend& backend, const LinearShape& shape, int64_t m,
             const std::vector<int8_t>& codes) {
  const auto [name, n, k] = shape;
  const std::vector<float> scales(static_cast<size_t>(std::max(m, n)), 0.01f);
  const Buffer scales_there = send(backend, scales.data(), scales.size() * sizeof(float));
  const Buffer a = send(backend, codes.data(), static_cast<size_t>(m * k));
  const Buffer w = send(backend, codes.data() + 4096, static_cast<size_t>(n * k));
  const Buffer out = backend.allocate(bytes_of(DType::bf16, {m, n}));
  const TensorView host_rows(reinterpret_cast<std::byte*>(const_cast<int8_t*>(codes.data()) + 4096),
                             DType::i8, {n, k});
  const TensorView host_scales(reinterpret_cast<std::byte*>(const_cast<float*>(scales.data())),
                               DType::f32, {n});
  const QWeight packed = backend.pack({host_rows, host_scales}, {}, {});
  const QWeight plain = backend.borrow(
      {.codes = w.view(DType::i8, {n, k}), .scales = scales_there.view(DType::f32, {n})});
  const QTensor rows{a.view(DType::i8, {m, k}), scales_there.view(DType::f32, {m})};
  const TensorView y = out.view(DType::bf16, {m, n});
  const QWeight* const weights[] = {&packed, &plain};
  std::string kernels[2];
  std::vector<double> cold[2], load[2];
  for (int i = 0; i < 2; ++i) {
    kernels[i] = backend.gemm({rows, weights[i], y}, Fusion::none);
  }
  for (int round = 0; round < kRounds; ++round) {
    for (int turn = 0; turn < 2; ++turn) {
      const int i = (round + turn) % 2;
      cold[i].push_back(backend.tuning().time_us([&] {
        backend.gemm({rows, weights[i], y}, Fusion::none);
      }));
    }
  }
  for (const int i : kLoadOrder) {
    const int runs = std::max(1, static_cast<int>(kSliceMicroseconds / median(cold[i])));
    load[i].push_back(backend.tuning().time_us([&] {
      for (int run = 0; run < runs; ++run) backend.gemm({rows, weights[i], y}, Fusion::none);
    }) / runs);
  }
  Times times[2];
  for (int i = 0; i < 2; ++i) {
    times[i] = {median(cold[i]), mean(load[i])};
  }
  const double operations = 2e-6 * static_cast<double>(m) * static_cast<double>(n * k);
  fmt::print("| {} | {} | {:.0f} / {:.0f} | {:.0f} / {:.0f} | {:.3f} / {:.3f} | {} | {} |\n", m,
             name, operations / times[0].cold, operations / times[0].load,
             operations / times[1].cold, operations / times[1].load, times[1].cold / times[0].cold,
             times[1].load / times[0].load, kernels[0], kernels[1]);
  std::fflush(stdout);
}

void run(const std::string& device, const std::vector<int64_t>& rows) {
  const auto backend = select_backend({.device = device});
  fmt::print("{}\n\n", backend->description());
  fmt::print(
      "| m | shape | packed TOPS cold / load | plain TOPS cold / load |"
      " time plain : packed | packed by | plain by |\n|---|---|---|---|---|---|---|\n");
  const int64_t most = std::max<int64_t>(*std::max_element(rows.begin(), rows.end()), 24576);
  const std::vector<int8_t> codes = random_codes(static_cast<size_t>(most) * 12288 + 4096, 1);
  for (const int64_t m : rows) {
    for (const LinearShape& shape : kShapes) compare(*backend, shape, m, codes);
  }
}

}  // namespace
}  // namespace octet

int main(int argc, char** argv) {
  std::vector<int64_t> rows;
  for (int i = 2; i < argc; ++i) rows.push_back(std::atoll(argv[i]));
  if (rows.empty()) rows = {512, 2048, 4096, 4608, 16384};
  try {
    octet::run(argc > 1 ? argv[1] : "cuda:0", rows);
  } catch (const std::exception& error) {
    fmt::print(stderr, "plain_rows: {}\n", error.what());
    return 1;
  }
  return 0;
}
