// Linears as PyTorch runs them, for traces made in memory. Names are those of its kernels.
#pragma once

#include "audit/examine.h"
#include "audit/made_trace.h"

namespace octet::test {

inline constexpr const char* kBf16Gemm =
    "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn";
inline constexpr const char* kInt8Gemm =
    "cutlass_80_tensorop_i16832gemm_s8_256x128_64x3_tn_align16";
inline constexpr const char* kCast =
    "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda("
    "at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#12}::operator()() const"
    "::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>, 4, at::native::memory::LoadWithCast<1> "
    ">(int)";
inline constexpr const char* kMultiply =
    "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::BFloat16, "
    "c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> > >(int)";

inline AuditReport examined(const audit::Trace& trace) {
  audit::Examination examination;
  examination.add(trace);
  return examination.finish({});
}

inline void bf16_linear(MadeTrace& made, int64_t m, int64_t n, int64_t k) {
  const uint32_t op =
      made.op("aten::mm", {{audit::ScalarType::bf16, {m, k}}, {audit::ScalarType::bf16, {k, n}}});
  made.kernel(kBf16Gemm, op, 100);
}

// Codes become numbers, and are multiplied by their scales.
inline void widened(MadeTrace& made, audit::ScalarType stored, const std::vector<int64_t>& dims,
                    uint32_t outer = audit::kNone) {
  using Type = audit::ScalarType;
  made.kernel(kCast, made.op("aten::copy_", {{Type::bf16, dims}, {stored, dims}}, outer), 30);
  std::vector<int64_t> scales = dims;
  scales.back() = 1;
  made.kernel(kMultiply, made.op("aten::mul", {{Type::bf16, dims}, {Type::bf16, scales}}, outer),
              20);
}

inline void widened(MadeTrace& made, audit::ScalarType stored, int64_t n, int64_t k) {
  widened(made, stored, {n, k});
}

inline void int8_linear(MadeTrace& made, int64_t m, int64_t n, int64_t k) {
  made.kernel(kCast,
              made.op("aten::copy_",
                      {{audit::ScalarType::int8, {m, k}}, {audit::ScalarType::bf16, {m, k}}}),
              5);
  made.kernel(kInt8Gemm,
              made.op("aten::_int_mm",
                      {{audit::ScalarType::int8, {m, k}}, {audit::ScalarType::int8, {k, n}}}),
              50);
}

// An op of arithmetic with its kernel.
inline void run_op(MadeTrace& made, const char* op, const audit::Signature& operands,
                   const char* kernel = kMultiply) {
  made.kernel(kernel, made.op(op, operands), 10);
}

inline constexpr int kMadeLayers = 4;

template <class Layer>
AuditReport of_layers(const Layer& layer) {
  MadeTrace made;
  for (int i = 0; i < kMadeLayers; ++i) layer(made);
  return examined(made.trace);
}

}  // namespace octet::test
