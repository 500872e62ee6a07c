#include "cuda/matmul/matmul.h"

#include "base/log.h"
#include "cuda/check.h"
#include "cuda/matmul/plain_matmul.h"

namespace octet::cuda {

CublasLt* Matmul::library() {
  if (!library_ && CublasLt::unavailable().empty()) library_.emplace(device_);
  return library_ ? &*library_ : nullptr;
}

void Matmul::run(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out,
                 const ConstTensorView& bias) {
  // The library does not support products with k = 0.
  CublasLt* lt = a.shape[1] > 0 ? library() : nullptr;
  if (lt != nullptr && bias.data == nullptr && lt->matmul(a, b, out)) return;
  if (lt != nullptr && bias.data != nullptr) {
    // The library rounds to bf16 before it adds a bias, both in its epilogue and when adding to
    // out: so the accumulators stay in f32 until then.
    Buffer acc;
    TensorView wide = out;
    if (out.dtype != DType::f32) {
      acc = device_.allocate_scratch(bytes_of(DType::f32, out.shape));
      wide = acc.view(DType::f32, out.shape);
    }
    if (lt->matmul(a, b, wide)) {
      launch_add_bias(wide, bias, out, device_.stream());
      check_launch("adding a bias");
      return;
    }
  }
  if (lt != nullptr) {
    log::debug("matmul: cuBLASLt has no {} x {} -> {}; a plain kernel runs, which is slow",
               a.to_string(), b.to_string(), out.to_string());
  }
  if (lt == nullptr && a.shape[1] > 0 && !told_of_missing_library_) {
    told_of_missing_library_ = true;
    log::warning("matmul: {}; a plain kernel is used, which is slow", CublasLt::unavailable());
  }
  launch_plain_matmul(a, b, out, bias, device_.stream());
  check_launch("matmul");
}

}  // namespace octet::cuda
