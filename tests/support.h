// What op tests share: the CPU kernels present, random data, matrices with guard bytes around them,
// and the way to a backend's own memory and back.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "cpu/cpu_backend.h"
#include "cpu/gemm/table.h"
#include "ref/ref_backend.h"

namespace octet::test {

// A matrix in host memory whose rows are `stride` apart, with guard bytes before it, after it and
// between its rows. Starts poisoned, so that an element nobody wrote is seen.
class GuardedMatrix {
 public:
  GuardedMatrix(DType dtype, int64_t rows, int64_t columns, int64_t stride = 0)
      : dtype_(dtype), rows_(rows), columns_(columns), stride_(std::max(stride, columns)) {
    const auto bytes = static_cast<size_t>(rows_ * stride_ * element_bytes());
    memory_.assign(bytes + 2 * kGuard, kPoison);
  }

  TensorView view() {
    return TensorView::rows(memory_.data() + kGuard, dtype_, rows_, columns_, stride_);
  }

  std::span<std::byte> bytes() { return memory_; }  // guards and all

  testing::AssertionResult guards_intact() const {
    const auto row = static_cast<size_t>(columns_ * element_bytes());
    const auto pitch = static_cast<size_t>(stride_ * element_bytes());
    size_t begin = 0;  // of the guard that ends where the next row begins
    for (int64_t i = 0; i <= rows_; ++i) {
      const size_t end = i < rows_ ? kGuard + static_cast<size_t>(i) * pitch : memory_.size();
      for (size_t at = begin; at < end; ++at) {
        if (memory_[at] == kPoison) continue;
        return testing::AssertionFailure() << "byte " << at << " of " << memory_.size()
                                           << ", outside of the matrix, was overwritten";
      }
      begin = end + row;
    }
    return testing::AssertionSuccess();
  }

 private:
  static constexpr size_t kGuard = 256;
  static constexpr std::byte kPoison{0xA5};

  int64_t element_bytes() const { return bits_of(dtype_) / 8; }

  DType dtype_;
  int64_t rows_, columns_, stride_;
  std::vector<std::byte> memory_;
};

// A copy of host bytes in a backend's memory. Outputs travel with their guard bytes, so that a
// device's stray write is seen as well.
class OnDevice {
 public:
  OnDevice(Backend& backend, std::span<std::byte> host)
      : backend_(backend), host_(host), device_(backend.allocate(host.size())) {
    backend_.copy_to_device(device_.data(), host_.data(), host_.size());
  }
  OnDevice(Backend& backend, GuardedMatrix& host) : OnDevice(backend, host.bytes()) {}
  OnDevice(Backend& backend, std::vector<float>& host)
      : OnDevice(backend, std::as_writable_bytes(std::span(host))) {}

  // What the view shows of the host's bytes, of their copy.
  TensorView operator()(TensorView host_view) const {
    if (host_view.data != nullptr) {
      host_view.data = device_.data() + (host_view.data - host_.data());
    }
    return host_view;
  }
  void download() { backend_.copy_to_host(host_.data(), device_.data(), host_.size()); }

 private:
  Backend& backend_;
  std::span<std::byte> host_;
  Buffer device_;
};

inline float read_element(const ConstTensorView& view, int64_t i, int64_t j) {
  switch (view.dtype) {
    case DType::bf16: return to_f32(view.row<bf16_t>(i)[j]);
    case DType::f16: return to_f32(view.row<f16_t>(i)[j]);
    case DType::i8: return static_cast<float>(view.row<int8_t>(i)[j]);
    case DType::i32: return static_cast<float>(view.row<int32_t>(i)[j]);
    default: return view.row<float>(i)[j];
  }
}

inline void write_element(const TensorView& view, int64_t i, int64_t j, float value) {
  switch (view.dtype) {
    case DType::bf16: view.row<bf16_t>(i)[j] = from_f32<bf16_t>(value); break;
    case DType::f16: view.row<f16_t>(i)[j] = from_f32<f16_t>(value); break;
    case DType::i8: view.row<int8_t>(i)[j] = static_cast<int8_t>(value); break;
    default: view.row<float>(i)[j] = value;
  }
}

// Equal bits, where any NaN equals any NaN: payloads are not part of the contract.
inline testing::AssertionResult same_bits(const ConstTensorView& got, const ConstTensorView& want) {
  const auto bytes = static_cast<size_t>(bits_of(want.dtype) / 8);
  for (int64_t i = 0; i < want.shape[0]; ++i) {
    const auto* got_row = got.data + i * got.row_stride() * static_cast<int64_t>(bytes);
    const auto* want_row = want.data + i * want.row_stride() * static_cast<int64_t>(bytes);
    const auto row_bytes = static_cast<size_t>(want.shape[1]) * bytes;
    if (row_bytes == 0 || std::memcmp(got_row, want_row, row_bytes) == 0) continue;
    for (int64_t j = 0; j < want.shape[1]; ++j) {
      const int64_t at = j * static_cast<int64_t>(bytes);
      if (std::memcmp(got_row + at, want_row + at, bytes) == 0) continue;
      const float a = read_element(got, i, j);
      const float b = read_element(want, i, j);
      if (want.dtype != DType::i32 && std::isnan(a) && std::isnan(b)) continue;
      return testing::AssertionFailure()
             << "element (" << i << ", " << j << ") is " << a << ", expected " << b;
    }
  }
  return testing::AssertionSuccess();
}

// Fills with normally distributed values, some channels 30 times larger, as activations have.
inline void fill_activations(const TensorView& view, std::mt19937& random) {
  std::normal_distribution<float> normal(0.0f, 1.0f);
  for (int64_t i = 0; i < view.shape[0]; ++i) {
    for (int64_t j = 0; j < view.shape[1]; ++j) {
      write_element(view, i, j, normal(random) * (j % 37 == 5 ? 30.0f : 1.0f));
    }
  }
}

inline void fill_int8(const TensorView& view, std::mt19937& random, int lowest = -127) {
  std::uniform_int_distribution<int> uniform(lowest, 127);
  for (int64_t i = 0; i < view.shape[0]; ++i) {
    for (int64_t j = 0; j < view.shape[1]; ++j) {
      view.row<int8_t>(i)[j] = static_cast<int8_t>(uniform(random));
    }
  }
}

inline std::vector<float> random_floats(int64_t count, std::mt19937& random, float low,
                                        float high) {
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = uniform(random);
  return values;
}

inline TensorView vector_view(std::vector<float>& values) {
  return TensorView(reinterpret_cast<std::byte*>(values.data()), DType::f32,
                    {static_cast<int64_t>(values.size())});
}

// Names of all int8 kernels of this architecture, runnable here or not.
inline std::vector<std::string> all_kernel_names() {
  std::vector<std::string> names;
  for (const auto* kernel : cpu::micro_kernels()) names.emplace_back(kernel->name);
  return names;
}

// The reason why this machine cannot run a kernel; empty if it can.
inline std::string why_not(const std::string& kernel_name) {
  for (const auto* kernel : cpu::micro_kernels()) {
    if (kernel->name == kernel_name) return cpu::refusal(*kernel);
  }
  return "there is no such kernel";
}

inline std::string print_name(const testing::TestParamInfo<std::string>& info) {
  return info.param;
}

}  // namespace octet::test
