// FP8 and NF4 on the GPU, which linears are compared with: codes, products, and what a map keeps.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <random>

#include "backend/gemm_tuning.h"
#include "cuda/cuda_support.h"
#include "cuda/rows/peer_kernels.h"
#include "formats/temporary_folder.h"
#include "measure/bench/problems.h"
#include "measure/map/map.h"

namespace octet::test {
namespace {

using CudaPeers = OnGpu;

template <class T>
std::vector<T> downloaded(Backend& backend, const Buffer& buffer, size_t count) {
  std::vector<T> values(count);
  backend.copy_to_host(reinterpret_cast<std::byte*>(values.data()), buffer.data(),
                       count * sizeof(T));
  return values;
}

// The nearest code of E4M3; of two, the even one.
uint8_t nearest_fp8(float value) {
  uint8_t best = 0;
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7f) == 0x7f) continue;
    const float off = std::abs(f8_e4m3_to_f32(static_cast<uint8_t>(code)) - value);
    const float best_off = std::abs(f8_e4m3_to_f32(best) - value);
    if (off < best_off || (off == best_off && code % 2 == 0)) best = static_cast<uint8_t>(code);
  }
  return best;
}

// Dense rows of bf16, with large channels and a row of zeros.
struct DenseRows {
  DenseRows(Backend& backend, int64_t row_count, int64_t columns)
      : rows(row_count),
        k(columns),
        memory(backend.allocate(bytes_of(DType::bf16, {row_count, columns}))) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < rows * k; ++i) {
      const float value = i / k == 1 ? 0 : normal(random) * (i % k == 7 ? 20.0f : 1.0f);
      values.push_back(from_f32<bf16_t>(value));
    }
    backend.copy_to_device(memory.data(), reinterpret_cast<const std::byte*>(values.data()),
                           memory.bytes());
    backend.synchronize();  // kernels here run on a stream of their own
  }
  float at(int64_t i, int64_t j) const { return to_f32(values[static_cast<size_t>(i * k + j)]); }
  float amax(int64_t row) const {
    float most = 0;
    for (int64_t j = 0; j < k; ++j) most = std::max(most, std::abs(at(row, j)));
    return most;
  }

  int64_t rows, k;
  std::vector<bf16_t> values;
  Buffer memory;
};

TEST_F(CudaPeers, Fp8CodesAreTheNearest) {
  const auto backend = make_gpu();
  for (const int64_t k : {64, 4608, 12288, 16384}) {
    const int64_t rows = 5;
    const DenseRows activations(*backend, rows, k);
    const TensorView x = activations.memory.view(DType::bf16, {rows, k});
    const Buffer codes = backend->allocate(static_cast<size_t>(rows * k));
    const Buffer scales = backend->allocate(static_cast<size_t>(rows) * sizeof(float));
    const Buffer amax = backend->allocate(sizeof(float));
    const auto expect_codes = [&](const std::function<float(int64_t)>& scale_of) {
      const auto got = downloaded<uint8_t>(*backend, codes, static_cast<size_t>(rows * k));
      for (int64_t i = 0; i < rows; ++i) {
        const float most = scale_of(i);
        for (int64_t j = 0; j < k; j += 61) {
          const float factor = most > 0 ? cuda::kFp8Most / most : 0;
          const float scaled = activations.at(i, j) * factor;
          const uint8_t code = got[static_cast<size_t>(i * k + j)];
          ASSERT_EQ(f8_e4m3_to_f32(code), f8_e4m3_to_f32(nearest_fp8(scaled)))
              << "row " << i << " column " << j;
        }
      }
    };
    backend->synchronize();  // until the memory is there
    cuda::launch_quantize_fp8_rows(x, reinterpret_cast<uint8_t*>(codes.data()),
                                   reinterpret_cast<float*>(scales.data()), nullptr);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const auto by_rows = downloaded<float>(*backend, scales, static_cast<size_t>(rows));
    for (int64_t i = 0; i < rows; ++i) {
      EXPECT_EQ(by_rows[static_cast<size_t>(i)], activations.amax(i) / cuda::kFp8Most);
    }
    expect_codes([&](int64_t row) { return activations.amax(row); });

    cuda::launch_quantize_fp8_tensor(x, reinterpret_cast<uint8_t*>(codes.data()),
                                     reinterpret_cast<float*>(scales.data()),
                                     reinterpret_cast<float*>(amax.data()), nullptr);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    float most = 0;
    for (int64_t i = 0; i < rows; ++i) most = std::max(most, activations.amax(i));
    EXPECT_EQ(downloaded<float>(*backend, scales, 1)[0], most / cuda::kFp8Most);
    expect_codes([&](int64_t) { return most; });
  }
}

TEST_F(CudaPeers, Nf4IsItsBookTimesItsFactors) {
  const auto backend = make_gpu();
  const int64_t rows = 3, k = 640, count = rows * k;
  const DenseRows x(*backend, rows, k);
  const Buffer codes = backend->allocate(static_cast<size_t>(count / 2));
  const Buffer absmax =
      backend->allocate(static_cast<size_t>(count / cuda::kNf4Block) * sizeof(float));
  const Buffer back = backend->allocate(static_cast<size_t>(count) * 2);
  backend->synchronize();
  cuda::launch_quantize_nf4(reinterpret_cast<const bf16_t*>(x.memory.data()),
                            reinterpret_cast<uint8_t*>(codes.data()),
                            reinterpret_cast<float*>(absmax.data()), count, nullptr);
  cuda::launch_dequantize_nf4(reinterpret_cast<const uint8_t*>(codes.data()),
                              reinterpret_cast<const float*>(absmax.data()),
                              reinterpret_cast<bf16_t*>(back.data()), count, nullptr);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto got_codes = downloaded<uint8_t>(*backend, codes, static_cast<size_t>(count / 2));
  const auto got_absmax =
      downloaded<float>(*backend, absmax, static_cast<size_t>(count / cuda::kNf4Block));
  const auto got = downloaded<uint16_t>(*backend, back, static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const float factor = got_absmax[static_cast<size_t>(i / cuda::kNf4Block)];
    const uint8_t byte = got_codes[static_cast<size_t>(i / 2)];
    const int code = i % 2 == 0 ? byte >> 4 : byte & 15;
    // To the bit, as weights/dialects/nf4.cpp forms it and as a bf16 holds it.
    ASSERT_EQ(got[static_cast<size_t>(i)], from_f32<bf16_t>(cuda::kNf4Book[code] * factor).bits);
    const float value = x.at(i / k, i % k);
    ASSERT_LE(std::abs(value), factor);
    for (const float other : cuda::kNf4Book) {
      ASSERT_LE(std::abs(cuda::kNf4Book[code] * factor - value),
                std::abs(other * factor - value) + 1e-5f * factor)
          << i;
    }
  }
}

// measure_ways() refuses a way whose outputs are not those of the product.
TEST_F(CudaPeers, EveryWayGivesTheProduct) {
  const auto backend = make_gpu();
  const bool has_fp8 =
      find_cuda_devices().devices[0].major * 10 + find_cuda_devices().devices[0].minor >= 89;
  for (const octet::GemmShape shape :
       {octet::GemmShape{512, 1024, 768}, octet::GemmShape{333, 512, 4608}}) {
    const auto times = measure::measure_ways(*backend, shape, {.seconds = 0, .rounds = 1});
    std::map<std::string, double> errors;
    for (const measure::WayTimes& way : times.ways) errors[way.way] = way.error;
    EXPECT_EQ(errors.contains(measure::kFp8), has_fp8);
    EXPECT_TRUE(errors.contains(measure::kNf4));
    EXPECT_TRUE(errors.contains(measure::kFakeInt8));
    if (has_fp8) {
      EXPECT_NEAR(errors.at(measure::kFp8), 0.037, 0.02);
    }
    EXPECT_NEAR(errors.at(measure::kFakeInt8), errors.at(measure::kInt8), 0.01);
  }
}

TEST_F(CudaPeers, ShapesThatAWayLacksAreLeftOut) {
  const auto backend = make_gpu();
  const auto times = measure::measure_ways(*backend, {8, 24, 40}, {.seconds = 0, .rounds = 1});
  EXPECT_EQ(times.ways.size(), 3u) << "neither FP8 nor NF4 have these";
}

TEST_F(CudaPeers, AMapsDecisionIsFoundByTheNextBackend) {
  const TemporaryFolder folder;
  ::setenv("OCTET_CACHE_DIR", folder.file("cache").c_str(), 1);
  const GemmProblem problem = measure::plain_problem({64, 128, 256}, DType::bf16);
  const auto make = [](tune::TuneMode mode) { return make_cuda_backend({.tune = mode}); };
  {
    const auto backend = make(tune::TuneMode::missing);
    EXPECT_EQ(backend->tuning().plan_gemm(problem).source, GemmPlan::Source::tuned);
    EXPECT_TRUE(backend->tuning().keep_references(problem, {{kInt8Linear, 5}, {kBf16Linear, 9}}));
    EXPECT_FALSE(backend->tuning().is_faster_in_bf16(64, 128, 256));
    EXPECT_TRUE(backend->tuning().keep_references(problem, {{kInt8Linear, 5}, {kBf16Linear, 4}}));
    EXPECT_TRUE(backend->tuning().is_faster_in_bf16(64, 128, 256));
  }
  EXPECT_TRUE(make(tune::TuneMode::off)->tuning().is_faster_in_bf16(100, 128, 256));
  EXPECT_FALSE(make(tune::TuneMode::off)->tuning().is_faster_in_bf16(100, 256, 128));
  ::unsetenv("OCTET_CACHE_DIR");
}

}  // namespace
}  // namespace octet::test
