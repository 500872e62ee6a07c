// Calls of octet/octet.h on a GPU, with streams and memory of a caller.
#pragma once

#include <cuda_runtime_api.h>

#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "cuda/check.h"
#include "cuda/cuda_support.h"
#include "octet/octet.h"

namespace octet::test {

using cuda::check_cuda;

// Memory of the device that a caller's framework would have.
class Memory {
 public:
  explicit Memory(size_t bytes) {
    check_cuda(cudaMalloc(&data_, bytes), "allocating");
    check_cuda(cudaMemset(data_, 0, bytes), "clearing");
    check_cuda(cudaDeviceSynchronize(), "waiting");
  }
  ~Memory() { cudaFree(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  template <class T>
  explicit Memory(const std::vector<T>& values) : Memory(values.size() * sizeof(T)) {
    check_cuda(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
               "copying");
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::vector<float> floats(size_t count) const {
    std::vector<float> values(count);
    check_cuda(cudaDeviceSynchronize(), "waiting");
    check_cuda(cudaMemcpy(values.data(), data_, count * 4, cudaMemcpyDeviceToHost), "copying");
    return values;
  }

 private:
  void* data_ = nullptr;
};

struct Problem {
  int64_t m, n, k;
  bool gate_up = false;
  bool one_scale = false;
  octet_dtype bias_dtype = OCTET_F32;
  octet_dtype x_dtype = OCTET_F32;
  bool stepwise = false;  // with rows of equal negative values, some of whose codes are -128
};

inline std::vector<std::byte> as_dtype(const std::vector<float>& values, octet_dtype dtype) {
  std::vector<std::byte> bytes(values.size() * (dtype == OCTET_F32 ? 4 : 2));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == OCTET_F32) {
      std::memcpy(&bytes[i * 4], &values[i], 4);
      continue;
    }
    const uint16_t bits =
        dtype == OCTET_BF16 ? from_f32<bf16_t>(values[i]).bits : from_f32<f16_t>(values[i]).bits;
    std::memcpy(&bytes[i * 2], &bits, 2);
  }
  return bytes;
}

// Host data, its result on ref, and the same on the device.
class Linear {
 public:
  explicit Linear(const Problem& problem) : problem_(problem) {
    std::mt19937 random(static_cast<uint32_t>(problem.m * 31 + problem.n));
    const auto count = [](int64_t a, int64_t b) { return static_cast<size_t>(a * b); };
    std::vector<float> x(count(problem.m, problem.k));
    std::vector<float> bias(problem.gate_up ? 0 : count(problem.n, 1));
    codes_.resize(count(problem.n, problem.k));
    scales_.resize(problem.one_scale ? 1 : count(problem.n, 1));
    for (float& value : x) value = static_cast<float>(random() % 2001) * 0.01f - 10.0f;
    for (size_t i = 0; problem.stepwise && i < x.size(); ++i) {
      x[i] = -0.5f - 0.013f * static_cast<float>(i / static_cast<size_t>(problem.k));
    }
    for (int8_t& value : codes_) value = static_cast<int8_t>(random());
    for (float& value : scales_) value = static_cast<float>(random() % 100 + 1) * 0.001f;
    for (float& value : bias) value = static_cast<float>(random() % 100) * 0.1f;
    x_ = as_dtype(x, problem.x_dtype);
    bias_ = as_dtype(bias, problem.bias_dtype);
    columns_ = problem.gate_up ? problem.n / 2 : problem.n;
    outputs_ = count(problem.m, columns_);
    expected_.resize(outputs_);
    // The CPU's codes of the lowest value are its own; all else has the bits of ref, and is faster.
    octet_device* ref = nullptr;
    const char* const host = problem.stepwise ? "ref" : "cpu";
    EXPECT_EQ(octet_device_open(host, nullptr, 0, OCTET_TUNE_OFF, &ref), OCTET_OK);
    octet_call call = octet_call_init();
    EXPECT_EQ(
        run(ref, call, x_.data(), codes_.data(), scales_.data(), bias_.data(), expected_.data()),
        OCTET_OK)
        << octet_last_error();
    octet_device_free(ref);
    x_there_ = std::make_unique<Memory>(x_);
    codes_there_ = std::make_unique<Memory>(codes_);
    scales_there_ = std::make_unique<Memory>(scales_);
    if (!problem.gate_up) bias_there_ = std::make_unique<Memory>(bias_);
    y_there_ = std::make_unique<Memory>(outputs_ * sizeof(float));
  }

  octet_status run_on_gpu(octet_device* device, octet_call& call) {
    return run(device, call, x_there_->as<void>(), codes_there_->as<int8_t>(),
               scales_there_->as<float>(), bias_there_ ? bias_there_->as<void>() : nullptr,
               y_there_->as<float>());
  }
  // By a packed copy of the same weight, which has F32 biases and a scale for each row.
  octet_status run_packed_on_gpu(octet_device* device, octet_call& call) {
    octet_weight_rows rows = octet_weight_rows_init();
    rows.codes = codes_.data();
    rows.scales = scales_.data();
    rows.bias = problem_.gate_up ? nullptr : reinterpret_cast<const float*>(bias_.data());
    rows.n = problem_.n;
    rows.k = problem_.k;
    rows.on_host = 1;
    rows.gate_up = problem_.gate_up ? 1 : 0;
    octet_weight* packed = nullptr;
    EXPECT_EQ(octet_weight_create(device, &rows, &packed), OCTET_OK) << octet_last_error();
    const octet_matrix from = {x_there_->as<void>(), problem_.m, problem_.k, 0,
                               problem_.x_dtype,     0};
    const octet_matrix to = {y_there_->as<float>(), problem_.m, columns_, 0, OCTET_F32, 0};
    const octet_status status = octet_call_linear(device, &call, nullptr, packed, &from, &to);
    check_cuda(cudaDeviceSynchronize(), "waiting");
    octet_weight_free(packed);
    return status;
  }
  size_t memory_bytes() const { return octet_linear_memory(problem_.m, problem_.k); }
  // Streams that do not wait for the default one must not meet what it clears.
  void forget() {
    check_cuda(cudaMemset(y_there_->as<float>(), 0, outputs_ * 4), "clearing");
    check_cuda(cudaDeviceSynchronize(), "waiting");
  }
  bool is_right() const { return y_there_->floats(outputs_) == expected_; }

 private:
  octet_status run(octet_device* device, octet_call& call, void* x, const int8_t* codes,
                   const float* scales, const void* bias, float* y) const {
    octet_plain_weight weight = octet_plain_weight_init();
    weight.codes = codes;
    weight.n = problem_.n;
    weight.k = problem_.k;
    weight.scales = scales;
    weight.scale_count = problem_.one_scale ? 1 : problem_.n;
    weight.bias = problem_.gate_up ? nullptr : bias;
    weight.bias_dtype = problem_.bias_dtype;
    weight.gate_up = problem_.gate_up ? 1 : 0;
    call.stepwise = problem_.stepwise ? 1 : 0;
    const octet_matrix from = {x, problem_.m, problem_.k, 0, problem_.x_dtype, 0};
    const octet_matrix to = {y, problem_.m, columns_, 0, OCTET_F32, 0};
    return octet_call_linear(device, &call, &weight, nullptr, &from, &to);
  }

  Problem problem_;
  int64_t columns_ = 0;
  size_t outputs_ = 0;
  std::vector<std::byte> x_, bias_;
  std::vector<float> scales_, expected_;
  std::vector<int8_t> codes_;
  std::unique_ptr<Memory> x_there_, codes_there_, scales_there_, bias_there_, y_there_;
};

// What a caller gives besides; all of it stays until the end.
class Givings {
 public:
  static void* allocate(void* self, size_t bytes) {
    return static_cast<Givings*>(self)->more(bytes);
  }
  void* more(size_t bytes) { return given_.emplace_back(bytes).as<void>(); }
  size_t count() const { return given_.size(); }

 private:
  std::deque<Memory> given_;
};

}  // namespace octet::test
