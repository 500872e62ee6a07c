// cuBLASLt, opened when a matmul or tuning first needs it: its library has half a gigabyte, and
// INT8 itself does not need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "cuda/device.h"
#include "tensor/tensor.h"

namespace octet::cuda {

class CublasLt {
 public:
  // Why the library cannot be used here; empty when it can.
  static std::string unavailable();

  explicit CublasLt(Device& device);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  // out[m, n] = a[m, k] times b[n, k] transposed: BF16 or F32 accumulated in f32 and rounded once,
  // to BF16 or F32, or I8 to I32. False if the library has no algorithm for these types, shapes
  // or strides.
  bool matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out) {
    return multiply(a, b, out, nullptr);
  }

  // F32 factors of F8 operands in device memory: one for each row, or one for all of them.
  struct Scales {
    const float* a = nullptr;
    const float* b = nullptr;
    bool by_rows = true;
  };
  // F8_E4M3 to BF16 with scales, and with the fast accumulation that inference stacks use; false
  // likewise, and if the GPU or the library has no such scales.
  bool matmul_fp8(const ConstTensorView& a, const ConstTensorView& b, const Scales& scales,
                  const TensorView& out) {
    return multiply(a, b, out, &scales);
  }

 private:
  struct Api;
  struct Plan;
  // Types, shape, strides, alignments and kind of scales: what an algorithm is chosen for.
  using Key = std::tuple<DType, DType, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                         uint32_t, uint32_t, uint32_t, bool>;

  static const Api& api();
  Plan make_plan(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                 const Scales* scales);
  static bool set_scales(const Plan& plan, const Scales& scales);
  bool multiply(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                const Scales* scales);

  Device& device_;
  void* handle_ = nullptr;
  Buffer workspace_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace octet::cuda
